"""NoRegretSearchCV: scikit-learn's own checks, folds, failures, and what is reported."""

import pickle

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_iris
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import GridSearchCV, GroupKFold, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from noregret import Choice, Float, Int
from noregret.integrations.sklearn import NoRegretSearchCV

X, Y = load_iris(return_X_y=True)
SPACE = {"C": Float(0.01, 100, log=True), "gamma": Float(0.001, 10, log=True)}


class Lucky(ClassifierMixin, BaseEstimator):
    """A score of its own for each setting and fold, from a table that depends on the size of the test data."""

    def __init__(self, level=0.0, fail=False):
        self.level, self.fail = level, fail

    def fit(self, X, y):
        if self.fail:
            raise RuntimeError("this setting never works")
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.zeros(len(X), int)

    def score(self, X, y):
        return self.level + float(X[0, 0])


FOLDS = np.repeat([0.0, 0.3, -0.1, 0.2, -0.4], 4)[:, None]
"""Data whose five folds have these effects on `Lucky`."""


@pytest.mark.slow
def test_finds_a_good_setting_and_reports_it_as_scikit_learn_does():
    pipeline = make_pipeline(StandardScaler(), SVC())
    space = {f"svc__{name}": its for name, its in SPACE.items()}
    search = NoRegretSearchCV(pipeline, space, evaluations=15, rng=0).fit(X, Y)
    grid = GridSearchCV(pipeline, {name: [1.0, 2.0] for name in space}).fit(X, Y)
    assert set(search.cv_results_) == set(grid.cv_results_)
    assert {name: its.dtype for name, its in search.cv_results_.items() if name != "params"} == {
        name: its.dtype for name, its in grid.cv_results_.items() if name != "params"
    }
    assert len(search.cv_results_["params"]) == 15
    assert search.cv_results_["params"][search.best_index_] == search.best_params_
    low, high = search.best_interval_
    assert low < search.best_score_ < high
    assert search.best_score_ > 0.9
    assert search.n_splits_ == 5
    assert search.score(X, Y) > 0.9
    assert (search.predict(X[:3]) == Y[:3]).all()
    assert search.best_params_["svc__C"] == search.best_estimator_["svc"].C
    again = clone(search).fit(X, Y)
    assert again.best_params_ == search.best_params_
    assert again.best_score_ == search.best_score_
    assert (pickle.loads(pickle.dumps(search)).predict(X) == search.predict(X)).all()


@pytest.mark.slow
def test_the_score_of_the_best_is_the_optimizers_estimate():
    search = NoRegretSearchCV(SVC(), SPACE, evaluations=12, rng=0).fit(X, Y)
    assert search.best_score_ == search.optimizer_.predict(search.best_params_).estimate
    assert len(search.optimizer_.measurements) == 12


@pytest.mark.slow
def test_bad_settings_are_given_up_after_their_first_folds():
    levels = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.9, 0.91, 0.92]
    rows = [{"level": level} for level in levels]
    search = NoRegretSearchCV(Lucky(), rows, evaluations=9, cv=_five(), rng=0).fit(FOLDS, np.zeros(20, int))
    table = search.cv_results_
    by_level = {params["level"]: row for row, params in enumerate(table["params"])}
    scores = np.column_stack([table[f"split{fold}_test_score"] for fold in range(5)])
    given_up = np.isnan(scores).any(axis=1)
    assert sorted(by_level) == levels
    assert not given_up[[by_level[0.9], by_level[0.92]]].any()
    assert given_up.sum() >= 2
    for row in np.flatnonzero(given_up):
        level = table["params"][row]["level"]
        assert (np.isnan(scores[row]) == [False, False, True, True, True]).all()
        assert table["mean_test_score"][row] == pytest.approx(level + 0.15)  # of the folds that were run
        told = next(its for its in search.optimizer_.answers if its.params["level"] == level)
        assert told.value == pytest.approx(level)  # without the effects of these folds
    assert search.best_params_ == {"level": 0.92}


def _five():
    return [(np.setdiff1d(np.arange(20), part), part) for part in np.split(np.arange(20), 5)]


@pytest.mark.slow
def test_settings_that_fail_are_not_recommended_and_a_warning_names_the_error():
    space = {"level": Float(0, 1), "fail": Choice([False, True])}
    search = NoRegretSearchCV(Lucky(), space, evaluations=8, cv=_five(), rng=0)
    with pytest.warns(FitFailedWarning, match="this setting never works"):
        search.fit(FOLDS, np.zeros(20, int))
    fails = np.array([params["fail"] for params in search.cv_results_["params"]])
    assert 0 < fails.sum() < 8
    assert (np.isnan(search.cv_results_["mean_test_score"]) == fails).all()
    assert search.best_params_["fail"] is False


def test_an_estimator_that_never_works_stops_the_search_with_its_error():
    with pytest.raises(RuntimeError, match="this setting never works"):
        NoRegretSearchCV(Lucky(fail=True), {"level": Float(0, 1)}, rng=0, cv=_five()).fit(FOLDS, np.zeros(20, int))


def test_names_that_the_estimator_does_not_have_are_an_error():
    with pytest.raises(ValueError, match="Invalid parameter 'depth'"):
        NoRegretSearchCV(SVC(), {"depth": Int(1, 3)}, rng=0).fit(X, Y)
    with pytest.raises(ValueError, match="evaluations must be a whole number from 1, got 0"):
        NoRegretSearchCV(SVC(), SPACE, evaluations=0).fit(X, Y)


@pytest.mark.slow
def test_several_metrics_need_the_name_of_one():
    search = NoRegretSearchCV(SVC(), SPACE, evaluations=3, cv=2, scoring=["accuracy", "f1_macro"], rng=0)
    with pytest.raises(ValueError, match=r"refit must name one of \['accuracy', 'f1_macro'\], got True"):
        search.fit(X, Y)
    search.set_params(refit="f1_macro").fit(X, Y)
    assert {"mean_test_accuracy", "rank_test_f1_macro"} <= set(search.cv_results_)
    assert search.score(X, Y) > 0.5
    search.set_params(scoring=None, refit=lambda table: 1).fit(X, Y)
    assert search.best_index_ == 1
    search.set_params(refit=False).fit(X, Y)
    assert not hasattr(search, "predict")
    assert search.best_params_


@pytest.mark.slow
def test_folds_are_split_once_and_groups_reach_the_splitter():
    groups = np.arange(len(Y)) % 4
    search = NoRegretSearchCV(SVC(), SPACE, evaluations=2, cv=GroupKFold(4), rng=0).fit(X, Y, groups=groups)
    assert search.n_splits_ == 4
    shuffled = NoRegretSearchCV(SVC(), {"C": Choice([1.0, 1.0 + 1e-12])}, cv=ShuffleSplit(3), rng=0).fit(X, Y)
    assert len(shuffled.cv_results_["params"]) == 2  # there are no more
    assert all(np.ptp(shuffled.cv_results_[f"split{fold}_test_score"]) == 0 for fold in range(3))
