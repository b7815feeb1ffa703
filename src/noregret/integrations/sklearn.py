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
import warnings
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from scipy.stats import rankdata
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection._search import BaseSearchCV

from noregret.belief.posterior import Floats
from noregret.decision.playing import seed_sequence
from noregret.optimizer import Optimizer, Trial

FIRST_FOLDS = 0.4
"""Part of the folds that a setting runs before it may be given up: 2 of 5, 4 of 10."""

HOPELESS = 3.0
"""Standard errors by which a setting is below the incumbent, on the folds that both have, if it is given up."""

WIDTH = 2.0
"""Standard errors on both sides of a mean over folds."""

FEWEST = 3
"""Settings with all folds that the noise of a fold is estimated from, before any is given up."""

FAILURES = 3
"""Settings that fail on every fold, at the start, until the search stops with their error."""

LEAST_BATCHES = 10
"""Batches that the evaluations are split into at least: a larger batch learns less from the one before."""

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
        The score of ``best_params_`` on new data lies between them with a probability of about 95%.
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
    _scores: _Scores  # while it is fitted

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
        try:
            super().fit(X, y, **params)
            if len(self._scores.complete) > 1:
                best, error = self.optimizer_.predict(self.best_params_), WIDTH * self._scores.error(self.best_index_)
                below, above = (math.hypot(end - best.estimate, error) for end in (best.lower, best.upper))
                self.best_score_, self.best_interval_ = best.estimate, (best.estimate - below, best.estimate + above)
            else:
                self.best_interval_ = (-math.inf, math.inf)
        finally:
            self.__dict__.pop("_scores", None)
        return self

    def _run_search(self, evaluate_candidates: Callable[..., Any]) -> None:
        """Ask for settings, run their folds and tell their scores, until the evaluations are spent."""
        if not isinstance(self.evaluations, Integral) or self.evaluations < 1:
            raise ValueError(f"evaluations must be a whole number from 1, got {self.evaluations!r}")
        seed = seed_sequence(self.rng)
        optimizer = Optimizer(self.space, goal="maximize", rng=seed)
        scores = self._scores = _Scores(_Folds(self._checked_cv_orig), self.n_splits_)
        first = max(1, round(FIRST_FOLDS * scores.folds))
        batch = min(math.ceil(effective_n_jobs(self.n_jobs) / first), max(1, self.evaluations // LEAST_BATCHES))
        evaluations = min(self.evaluations, optimizer.space.count)
        while (left := evaluations - len(scores.params)) > 0:
            trials = self._new_trials(optimizer, min(batch, int(left)), is_last=left == 1)
            if not trials:
                break
            rows = [scores.add(trial.params) for trial in trials]
            self._evaluate(evaluate_candidates, rows, range(first))
            hopeful = [row for row in rows if not scores.is_hopeless(row)]
            if hopeful and first < scores.folds:
                self._evaluate(evaluate_candidates, hopeful, range(first, scores.folds))
            for trial, row in zip(trials, rows, strict=True):
                _tell(optimizer, trial, scores.observation(row))
        if not scores.complete:
            warnings.warn("no setting has a score on all folds: the first one is taken", UserWarning, stacklevel=2)
        self.optimizer_ = Optimizer(self.space, goal="maximize", rng=seed)
        for row, params in enumerate(scores.params):  # all under the last estimate of the effects
            _tell(self.optimizer_, params, scores.observation(row))

    def _new_trials(self, optimizer: Optimizer, count: int, is_last: bool) -> list[Trial]:
        """Trials with settings that have no scores yet; the last one of a search is the recommended setting.

        A trial whose setting is known stays pending, so that the next question is another one.
        """
        keys = {optimizer.space.key(params) for params in self._scores.params}
        if is_last and self._scores.complete and optimizer.space.key(best := optimizer.best().params) not in keys:
            return [optimizer.expect(best)]
        found: list[Trial] = []
        for _ in range(count + MOST_REPEATS):
            trial = optimizer.ask()
            if (key := optimizer.space.key(trial.params)) not in keys:
                keys.add(key)
                found.append(trial)
            if len(found) == count:
                break
        return found

    def _evaluate(self, evaluate_candidates: Callable[..., Any], rows: Sequence[int], folds: Sequence[int]) -> None:
        """Run these folds of these settings.

        scikit-learn raises ValueError if every fit of a call fails. That may be the fault of one setting here, so it is
        a failure of these settings, unless no setting has worked yet.
        """
        scores, cells = self._scores, [(row, fold) for row in rows for fold in folds]
        scores.order += cells
        self.n_splits_ = len(folds)
        try:
            results = evaluate_candidates([scores.params[row] for row in rows], cv=scores.splits.only(folds))
        except ValueError as error:
            is_start = len(scores.order) == len(cells) and len(scores.params) >= min(FAILURES, self.evaluations)
            if "fits failed" not in str(error) or is_start:
                raise
            warnings.warn(str(error), FitFailedWarning, stacklevel=2)
            scores.order, scores.failed = scores.order[: -len(cells)], scores.failed | set(cells)
            return
        finally:
            self.n_splits_ = scores.folds
        metric = self.refit if isinstance(self.refit, str) else "score"
        if f"mean_test_{metric}" not in results:
            raise ValueError(f"with several metrics refit must name the one to maximise, got refit={self.refit!r}")
        scores.values = np.column_stack([results[f"split{fold}_test_{metric}"] for fold in range(scores.folds)])

    def _format_results(
        self, candidate_params: Any, n_splits: int, out: Sequence[dict[str, Any]], more_results: Any = None
    ) -> dict[str, Any]:
        """Return the table of scikit-learn, with a row for each setting and means over the folds that it ran."""
        scores, shape = self._scores, (len(self._scores.params), self._scores.folds)
        by_cell, empty = dict(zip(scores.order, out, strict=True)), _without_numbers(out[0])
        cells = [by_cell.get((row, fold), empty) for row in range(shape[0]) for fold in range(shape[1])]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # means of nan are replaced below
            results: dict[str, Any] = super()._format_results(scores.params, shape[1], cells, more_results)
        ran = scores.ran
        for name in [key.removeprefix("mean_") for key in results if key.startswith("mean_")]:
            if name in ("fit_time", "score_time"):
                values = np.array([cell[name] for cell in cells]).reshape(shape)
            else:
                values = np.column_stack([results[f"split{fold}_{name}"] for fold in range(shape[1])])
            mean = results[f"mean_{name}"] = np.average(np.where(ran, values, 0.0), axis=1, weights=ran)
            squares = np.where(ran, values - mean[:, None], 0.0) ** 2
            results[f"std_{name}"] = np.sqrt(np.average(squares, axis=1, weights=ran))
            if f"rank_{name}" in results:
                results[f"rank_{name}"] = rankdata(np.nan_to_num(-mean, nan=math.inf), method="min").astype(np.int32)
        return results

    def _select_best_index(self, refit: Any, refit_metric: str, results: Mapping[str, Any]) -> int:
        """Row of the recommended setting if that has all folds; else the best lower bound of those that have."""
        if callable(refit):
            return int(super()._select_best_index(refit, refit_metric, results))
        rows, space = self._scores.complete, self.optimizer_.space
        if len(rows) < 2:
            return (*rows, 0)[0]
        keys = [space.key(self._scores.params[row]) for row in rows]
        if (recommended := space.key(self.optimizer_.best().params)) in keys:
            return rows[keys.index(recommended)]
        estimates = self.optimizer_.predict_many(self._scores.params[row] for row in rows)
        return rows[int(np.argmax([its.lower for its in estimates]))]


class _Folds:
    """Splitter that splits once with another one, and yields the chosen folds only."""

    def __init__(self, splitter: Any) -> None:
        self.splitter = splitter
        self._all: list[Any] = []
        self._chosen: Sequence[int] = ()

    def only(self, folds: Sequence[int]) -> _Folds:
        """Choose the folds of the next split."""
        self._chosen = folds
        return self

    def split(self, X: Any, y: Any = None, **params: Any) -> list[Any]:
        """Chosen splits of the data."""
        self._all = self._all or list(self.splitter.split(X, y, **params))
        return [self._all[fold] for fold in self._chosen]


class _Scores:
    """Scores of the settings so far, a row each, with nan for folds that failed or were not run.

    Parameters
    ----------
    splits : _Folds
    folds : int
    """

    def __init__(self, splits: _Folds, folds: int) -> None:
        self.splits, self.folds = splits, folds
        self.params: list[Any] = []
        self.values: Floats = np.empty((0, folds))
        self.order: list[tuple[int, int]] = []  # row and fold of each of scikit-learn's results
        self.failed: set[tuple[int, int]] = set()  # those without a result, as all fits of a call failed

    def add(self, params: Any) -> int:
        """Row of a new setting."""
        self.params.append(params)
        self.values = np.vstack([self.values, np.full(self.folds, np.nan)])
        return len(self.params) - 1

    @property
    def ran(self) -> Any:
        """Mask of the folds that were run, (settings, folds)."""
        mask = np.zeros((len(self.params), self.folds), dtype=bool)
        for cell in (*self.order, *self.failed):
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

    def is_hopeless(self, row: int) -> bool:
        """Return True if a setting has failed, or is far worse than the best one on the folds that it has."""
        ran = self.ran[row]
        if not np.isfinite(self.values[row, ran]).all():
            return True
        full = self.values[self.complete]
        if len(full) < FEWEST:
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
        """Standard error of the mean score of a complete setting, with the correction of Nadeau and Bengio (2003).

        Folds share training data, so their scores vary less than those of new data would: 1 / folds becomes
        1 / folds + 1 / (folds - 1), the second part being the ratio of test to training data.
        """
        if self.folds < 2:
            return math.inf
        return float(self.values[row].std(ddof=1)) * math.sqrt(1 / self.folds + 1 / (self.folds - 1))


def _tell(optimizer: Optimizer, trial: Trial | Any, observation: tuple[float, float | None] | None) -> None:
    if observation is None:
        optimizer.fail(trial)
    else:
        optimizer.tell(trial, *observation)


def _without_numbers(result: Mapping[str, Any]) -> dict[str, Any]:
    """Result of scikit-learn with nan for scores and times."""
    scores = result["test_scores"]
    blank = dict.fromkeys(scores, math.nan) if isinstance(scores, Mapping) else math.nan
    return {**result, "test_scores": blank, "fit_time": math.nan, "score_time": math.nan}
