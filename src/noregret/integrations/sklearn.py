"""scikit-learn: noregret as a search over the parameters of an estimator (extra ``sklearn``).

>>> from sklearn.datasets import load_iris
>>> from sklearn.svm import SVC
>>> from noregret import Float
>>> from noregret.integrations.sklearn import NoRegretSearchCV
>>> X, y = load_iris(return_X_y=True)
>>> space = {"C": Float(0.01, 100, log=True), "gamma": Float(0.001, 10, log=True)}
>>> search = NoRegretSearchCV(SVC(), space, evaluations=12, rng=0).fit(X, y)
>>> search.best_score_ > 0.9
True

The scores of a setting on the folds are repeated observations of it, which differ by an effect of the fold, common to
all settings, and by noise. The `Optimizer` gets their mean. Effects cancel in a mean over all folds; they are
subtracted where a setting was given up after its first folds.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray
from scipy.special import stdtrit
from scipy.stats import rankdata
from sklearn import get_config
from sklearn.base import ClassifierMixin, RegressorMixin, clone, is_classifier
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv, cross_validate
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils import indexable
from sklearn.utils.metadata_routing import process_routing

from noregret.gp.posterior import Floats
from noregret.gp.seeds import seed_sequence
from noregret.optimizer import Optimizer, Trial

FIRST_FOLDS = 0.4
"""Part of the folds that a setting runs before it may be given up: 2 of 5, 4 of 10."""

HOPELESS = 3.0
"""Standard errors by which a setting is below the incumbent, on the folds that both have, if it is given up."""

FEWEST_FULL_SETTINGS = 3
"""Settings with all folds that the noise of a fold is estimated from, before any is given up."""

FAILED_SETTINGS = 3
"""Settings that fail on every fold, at the start, until the search stops with the error of the last one."""

LEAST_BATCHES = 10
"""Batches that the evaluations are split into at least: a larger batch learns less from the one before."""

SHARES = (
    *("accuracy", "average_precision", "balanced_accuracy", "completeness", "f1", "fowlkes", "homogeneity", "jaccard"),
    *("normalized_mutual", "precision", "rand_score", "recall", "roc_auc", "top_k", "v_measure"),
)
"""Beginnings of the names of scores from 0 to 1."""

BELOW_ONE = ("r2", "explained_variance", "matthews_corrcoef", "adjusted_rand_score", "adjusted_mutual_info_score")
"""Scores of at most 1 that may be negative."""

MOST_REPEATS = 20
"""Questions in a row for settings that have their scores already, until the search ends."""


class NoRegretSearchCV(BaseSearchCV):  # type: ignore[misc]
    """Search over the parameters of an estimator by cross-validation, with noregret's `Optimizer`.

    The recommended setting has the best lower confidence bound under a model of all scores, not the luckiest mean. A
    setting whose first folds are clearly worse than those of the incumbent is given up: ``cv_results_`` has nan for the
    folds that were not run, and means over the others.

    Parameters
    ----------
    estimator : estimator
    space : dict, or list of dicts
        ``{"C": Float(1e-3, 1e3, log=True), "kernel": Choice(["rbf", "poly"])}``, with names as for ``set_params``, such
        as ``"svc__C"``. A parameter that does not apply (``when=``) keeps the value that the estimator has. Or a list
        of the settings to choose from.
    evaluations : int
        Number of settings to try, those given up included; fewer if the space has no more.
    cv : int, splitter or iterable, optional
        As for scikit-learn's searches. The data are split once, so that all settings have the same folds.
    scoring : str, callable, list, tuple or dict, optional
        As for scikit-learn's searches. With several metrics, ``refit`` names the one to maximise.
    n_jobs : int, optional
        Number of fits at the same time. Settings are chosen in batches that keep the jobs busy.
    refit : bool, str or callable
        As for scikit-learn's searches.
    rng : None, int, SeedSequence or Generator
        The same seed, scores and ``n_jobs`` give the same settings.

    Attributes
    ----------
    best_params_ : dict
    best_score_ : float
        Estimate of the mean score of ``best_params_``.
    best_interval_ : (float, float)
        Interval of the score of ``best_params_`` on new data, nominally 95%; it held less often than that
        with folds of 20 to 40 rows.
    best_index_ : int
        Row of ``best_params_`` in ``cv_results_``.
    best_estimator_ : estimator
        The estimator with ``best_params_``, fitted to all data; with ``refit``.
    cv_results_ : dict of arrays
        Has the keys of scikit-learn's searches.
    optimizer_ : Optimizer
        Knows all scores, without the effects of folds.
    n_splits_ : int
    """

    optimizer_: Optimizer
    best_index_: int
    best_params_: dict[str, Any]
    cv_results_: dict[str, Any]
    n_splits_: int

    def __init__(
        self,
        estimator: Any,
        space: Any,
        *,
        evaluations: int = 50,
        cv: Any = None,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        rng: Any = None,
    ) -> None:
        super().__init__(
            estimator=estimator, scoring=scoring, n_jobs=n_jobs, refit=refit, cv=cv, return_train_score=False
        )
        self.space, self.evaluations, self.rng = space, evaluations, rng

    def fit(self, X: Any, y: Any = None, **params: Any) -> NoRegretSearchCV:
        """Run the search, then fit the estimator with the best setting to all data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like, optional
        **params
            For the ``fit`` of the estimator, the scorer and the splitter, as for scikit-learn's searches.
        """
        self._validate_params()
        if not isinstance(self.evaluations, Integral) or self.evaluations < 1:
            raise ValueError(f"evaluations must be a whole number from 1, got {self.evaluations!r}")
        X, y = indexable(X, y)
        if get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", **params)
            split_params, fit_params, score_params = routed.splitter.split, routed.estimator.fit, routed.scorer.score
        else:
            fit_params, score_params = dict(params), {}
            split_params = {"groups": fit_params.pop("groups", None)}
        splitter = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        splits = list(splitter.split(X, y, **split_params))
        self.n_splits_, self.scorer_ = len(splits), _scorer(self.estimator, self.scoring)
        with Parallel(n_jobs=self.n_jobs) as parallel:
            given = X, y, self.scorer_, {**fit_params, **score_params}

            def evaluate(cells: Sequence[tuple[Any, int]]) -> list[_Result]:
                """Results of some folds of some settings."""
                cloned = [(clone(self.estimator).set_params(**clone(point, safe=False)), fold) for point, fold in cells]
                return list(parallel(delayed(_result)(fresh, splits[fold], *given) for fresh, fold in cloned))

            scores = self._search(evaluate)
        self.cv_results_, self.multimetric_ = self._table(scores), scores.metrics != ["score"]
        self.best_index_ = self._best_index(scores)
        self.best_params_ = scores.params[self.best_index_]
        self.best_score_, self.best_interval_ = self._estimate(scores)
        if self.refit:
            self.best_estimator_ = clone(self.estimator).set_params(**clone(self.best_params_, safe=False))
            start = time.perf_counter()
            self.best_estimator_.fit(X, *(() if y is None else (y,)), **fit_params)
            self.refit_time_ = time.perf_counter() - start
            if hasattr(self.best_estimator_, "feature_names_in_"):
                self.feature_names_in_ = self.best_estimator_.feature_names_in_
        return self

    def _search(self, evaluate: Callable[[Sequence[tuple[Any, int]]], list[_Result]]) -> _Scores:
        """Ask for settings, run their folds and tell their scores, until the evaluations are spent."""
        seed, scores = seed_sequence(self.rng), _Scores(self.n_splits_, self.refit)
        possible = _possible(self.estimator, self.scoring, self.refit)
        optimizer = Optimizer(self.space, goal="maximize", rng=seed, possible=possible)
        first = max(1, round(FIRST_FOLDS * scores.folds))
        batch = min(math.ceil(effective_n_jobs(self.n_jobs) / first), max(1, self.evaluations // LEAST_BATCHES))
        evaluations = min(self.evaluations, optimizer.space.count)
        while (left := evaluations - len(scores.params)) > 0:
            trials = _new_trials(optimizer, scores, min(batch, int(left)), is_last=left == 1)
            if not trials:
                break
            rows = [scores.add(trial.params) for trial in trials]
            for folds in (range(first), range(first, scores.folds)):
                cells = [(row, fold) for row in rows if not scores.is_given_up(row) for fold in folds]
                scores.take(cells, evaluate([(scores.params[row], fold) for row, fold in cells]))
            if not scores.metrics and len(scores.params) >= min(FAILED_SETTINGS, evaluations):
                raise scores.errors[-1]
            for trial, row in zip(trials, rows, strict=True):
                _tell(optimizer, trial, scores.observation(row))
        if scores.errors:
            message = f"{len(scores.errors)} fits or scores failed, the last one with {scores.errors[-1]!r}"
            warnings.warn(message, FitFailedWarning, stacklevel=3)
        self.optimizer_ = Optimizer(self.space, goal="maximize", rng=seed, possible=possible)
        for row, params in enumerate(scores.params):  # all under the last estimate of the effects of folds
            _tell(self.optimizer_, params, scores.observation(row))
        return scores

    def _table(self, scores: _Scores) -> dict[str, Any]:
        """Return the table of scikit-learn's searches, with a row for each setting and means over the folds it ran."""
        shape, ran = (len(scores.params), scores.folds), scores.ran
        empty = _Result(dict.fromkeys(scores.metrics, math.nan))
        grid = [scores.results.get((row, fold), empty) for row in range(shape[0]) for fold in range(shape[1])]
        is_single = scores.metrics == ["score"]
        cells = []
        for result in grid:
            own_scores = result.scores or empty.scores
            times = {"fit_time": result.fit_time, "score_time": result.score_time}
            cells.append({**times, "test_scores": own_scores["score"] if is_single else own_scores})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # about means of nan, which are replaced below
            table: dict[str, Any] = self._format_results(scores.params, scores.folds, cells)
        for name in [key.removeprefix("mean_") for key in table if key.startswith("mean_")]:
            if name in ("fit_time", "score_time"):
                values = np.array([cell[name] for cell in cells]).reshape(shape)
            else:
                values = np.column_stack([table[f"split{fold}_{name}"] for fold in range(shape[1])])
            mean = table[f"mean_{name}"] = np.average(np.where(ran, values, 0.0), axis=1, weights=ran)
            squares = np.where(ran, values - mean[:, None], 0.0) ** 2
            table[f"std_{name}"] = np.sqrt(np.average(squares, axis=1, weights=ran))
            if f"rank_{name}" in table:
                table[f"rank_{name}"] = rankdata(np.nan_to_num(-mean, nan=math.inf), method="min").astype(np.int32)
        return table

    def _best_index(self, scores: _Scores) -> int:
        """Row of the recommended setting if that has all folds; else the best lower bound of those that have."""
        if callable(self.refit):
            return int(self._select_best_index(self.refit, scores.metric, self.cv_results_))
        rows, space = scores.complete, self.optimizer_.space
        if len(rows) < 2:
            return (*rows, 0)[0]
        keys = [space.key(scores.params[row]) for row in rows]
        if (recommended := space.key(self.optimizer_.best().params)) in keys:
            return rows[keys.index(recommended)]
        estimates = self.optimizer_.predict_many(scores.params[row] for row in rows)
        return rows[int(np.argmax([estimate.lower for estimate in estimates]))]

    def _estimate(self, scores: _Scores) -> tuple[float, tuple[float, float]]:
        """Score of the best setting, and its interval: uncertainty of the model, and of the data as a sample."""
        if len(scores.complete) < 2:
            return float(self.cv_results_[f"mean_test_{scores.metric}"][self.best_index_]), (-math.inf, math.inf)
        best, error = self.optimizer_.predict(self.best_params_), scores.error(self.best_index_)
        below, above = (math.hypot(end - best.estimate, error) for end in (best.lower, best.upper))
        ends = best.estimate - below, best.estimate + above
        lower, upper = np.clip(ends, *self.optimizer_.possible).tolist() if self.optimizer_.possible else ends
        return best.estimate, (lower, upper)


class _Result(NamedTuple):
    """One fold of one setting: scores by metric, none if it failed, and seconds."""

    scores: Mapping[str, float]
    fit_time: float = math.nan
    score_time: float = math.nan
    error: Exception | None = None


def _scorer(estimator: Any, scoring: Any) -> Any:
    """The scorer, or a dict of scorers, that a user describes."""
    if callable(scoring):
        return scoring
    if isinstance(scoring, Mapping):
        return {name: check_scoring(estimator, metric) for name, metric in scoring.items()}
    if isinstance(scoring, list | tuple | set):
        return {name: check_scoring(estimator, name) for name in scoring}
    return check_scoring(estimator, scoring)


def _possible(estimator: Any, scoring: Any, refit: Any) -> tuple[float | None, float] | None:
    """Range of the score that is maximised, None if it is unknown."""
    name = refit if isinstance(refit, str) and isinstance(scoring, list | tuple | set) else scoring
    if name is None:
        last = estimator[-1] if isinstance(estimator, Pipeline) else estimator
        name = {ClassifierMixin.score: "accuracy", RegressorMixin.score: "r2"}.get(getattr(type(last), "score", None))
    if not isinstance(name, str):
        return None
    if name.startswith("neg_"):
        return None, 0.0
    return (None, 1.0) if name in BELOW_ONE else (0.0, 1.0) if name.startswith(SHARES) else None


def _result(estimator: Any, split: Any, X: Any, y: Any, scorer: Any, params: Mapping[str, Any]) -> _Result:
    """Fit and score on one fold."""
    try:
        validated = cross_validate(estimator, X, y, cv=[split], scoring=scorer, params=params, error_score="raise")
    except Exception as error:
        return _Result({}, error=error)
    scores = {key.removeprefix("test_"): float(folds[0]) for key, folds in validated.items() if key.startswith("test_")}
    return _Result(scores, float(validated["fit_time"][0]), float(validated["score_time"][0]))


def _new_trials(optimizer: Optimizer, scores: _Scores, count: int, is_last: bool) -> list[Trial]:
    """Trials with settings that have no scores yet; the last one of a search is the recommended setting.

    A trial whose setting is known stays pending, so that the next question is another one.
    """
    key = optimizer.space.key
    known = {key(params) for params in scores.params}
    if is_last and scores.complete and key(best := optimizer.best().params) not in known:
        return [optimizer.expect(best)]
    trials: list[Trial] = []
    for _ in range(count + MOST_REPEATS):
        trial = optimizer.ask()
        if key(trial.params) not in known:
            known.add(key(trial.params))
            trials.append(trial)
        if len(trials) == count:
            break
    return trials


def _tell(optimizer: Optimizer, trial: Trial | Any, observation: tuple[float, float | None] | None) -> None:
    if observation is None:
        optimizer.fail(trial)
        return
    mean, error = observation
    # without the effects of its folds a mean may leave the range
    mean = float(np.clip(mean, *optimizer.possible)) if optimizer.possible else mean
    optimizer.tell(trial, mean, error)


class _Scores:
    """Scores of the settings so far, a row each.

    ``refit`` is the name of the metric to maximise, if there are several.
    """

    def __init__(self, folds: int, refit: Any) -> None:
        self.folds, self._refit = folds, refit
        self.params: list[Any] = []
        self.results: dict[tuple[int, int], _Result] = {}  # by row and fold
        self.errors: list[Exception] = []
        self.metrics: list[str] = []  # empty before the first score
        self.values: Floats = np.empty((0, folds))  # nan for folds that failed or were not run

    def add(self, params: Any) -> int:
        """Row of a new setting."""
        self.params.append(params)
        self.values = np.vstack([self.values, np.full(self.folds, np.nan)])
        return len(self.params) - 1

    def take(self, cells: Sequence[tuple[int, int]], results: Sequence[_Result]) -> None:
        """Results of these rows and folds."""
        for cell, result in zip(cells, results, strict=True):
            self.results[cell] = result
            if result.error is not None:
                self.errors.append(result.error)
                continue
            self.metrics = self.metrics or list(result.scores)
            self.values[cell] = result.scores[self.metric]

    @property
    def metric(self) -> str:
        """Name of the metric to maximise."""
        name = self._refit if isinstance(self._refit, str) and self.metrics != ["score"] else "score"
        if name not in self.metrics:
            raise ValueError(f"with several metrics, refit must name one of {self.metrics}, got {self._refit!r}")
        return name

    @property
    def ran(self) -> NDArray[np.bool_]:
        """Mask of the folds that were run, (settings, folds)."""
        mask = np.zeros((len(self.params), self.folds), dtype=bool)
        for cell in self.results:
            mask[cell] = True
        return mask

    @property
    def complete(self) -> list[int]:
        """Rows of the settings that have a score on every fold."""
        return [row for row, scores in enumerate(self.values) if np.isfinite(scores).all()]

    @property
    def effects(self) -> Floats:
        """Effect of each fold, (folds,): its mean over the complete settings, less that over all folds."""
        full = self.values[self.complete]
        return full.mean(axis=0) - full.mean() if len(full) else np.zeros(self.folds)

    @property
    def noise(self) -> float:
        """Standard deviation of a score without the effect of its fold: the median over the complete settings."""
        full = self.values[self.complete]
        residuals = full - full.mean(axis=1, keepdims=True) - self.effects
        freedom = max((self.folds - 1) * (len(full) - 1) / max(len(full), 1), 1.0)
        return math.sqrt(float(np.median((residuals**2).sum(axis=1))) / freedom) if len(full) else math.inf

    def is_given_up(self, row: int) -> bool:
        """Return True if a setting has failed, or is far worse than the best one on the folds that it has."""
        ran = self.ran[row]
        if not np.isfinite(self.values[row, ran]).all():
            return True
        full = self.values[self.complete]
        if len(full) < FEWEST_FULL_SETTINGS or not ran.any():
            return False
        incumbent = full[full.mean(axis=1).argmax()]
        behind = incumbent[ran] - self.values[row, ran]
        return bool(behind.mean() > HOPELESS * self.noise * math.sqrt(2 / ran.sum()))

    def observation(self, row: int) -> tuple[float, float | None] | None:
        """Mean score of a setting, without the effects of its folds, and its noise; None if it failed.

        The noise of means over all folds is left to the Optimizer: neighbouring settings err alike on one fold, so it
        is less than the residuals of single folds suggest.
        """
        ran = self.ran[row]
        scores = (self.values[row] - self.effects)[ran]
        if not np.isfinite(scores).all():
            return None
        noise = None if ran.all() or not self.complete else self.noise / math.sqrt(ran.sum())
        return float(scores.mean()), noise or None

    def error(self, row: int) -> float:
        """Half width of the 95% interval of a complete setting's mean, by Student's t over its folds.

        With the correction of Nadeau and Bengio (2003): folds share training data, so their scores vary less than those
        of new data would. 1 / folds becomes 1 / folds + 1 / (folds - 1), the ratio of test to training data.
        """
        if self.folds < 2:
            return math.inf
        spread = float(self.values[row].std(ddof=1)) * math.sqrt(1 / self.folds + 1 / (self.folds - 1))
        return spread * float(stdtrit(self.folds - 1, 0.975))
