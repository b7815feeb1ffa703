"""More of `tests.integrations.test_sklearn`, nightly."""

import warnings

import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import check_estimator
from tests.integrations.test_sklearn import SPACE

from noregret import Float
from noregret.integrations.sklearn import NoRegretSearchCV


def test_passes_the_checks_of_scikit_learn():
    """As GridSearchCV does: only checks that need other packages are skipped."""
    search = NoRegretSearchCV(LogisticRegression(), {"C": Float(0.1, 10, log=True)}, evaluations=2, cv=2, rng=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = check_estimator(search, on_fail=None, on_skip=None)
    assert [(its["check_name"], its["exception"]) for its in found if its["status"] == "failed"] == []
    passed = {its["check_name"] for its in found if its["status"] == "passed"}
    assert {"check_fit_idempotent", "check_dtype_object", "check_estimators_nan_inf"} <= passed
    assert all("array_api" in its["check_name"] for its in found if its["status"] == "skipped")


def test_several_jobs_find_what_one_finds_if_the_batches_are_the_same():
    data = make_classification(60, 5, random_state=0)
    one, two = (NoRegretSearchCV(SVC(), SPACE, evaluations=3, cv=3, rng=0, n_jobs=n).fit(*data) for n in (1, 2))
    assert one.cv_results_["params"] == two.cv_results_["params"]
    assert one.best_score_ == two.best_score_
