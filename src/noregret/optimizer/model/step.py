"""Level shift: the machine changed during the study, so that all values before one answer are shifted.

Each shift competes with the hypothesis that nothing changed, by log evidence in nats. With y the standardised values,
M their covariance under the fit, u = 1 for the first answers and 0 for the others, and a prior N(0, 1) on the shift, it
explains

    (u' M^-1 y)^2 / (2 (1 + u' M^-1 u)) - ln(1 + u' M^-1 u) / 2

nats more. That is a first look, since the fit may have taken the shift for noise or for an effect of the parameters. So
values are fitted again without the most likely shift, and must then be explained better by `REFUTED` and the logarithm
of the number of shifts that were tried. Questions change in the course of a study as well, and effects of parameters
look like time: only shifts are tried with measurements of the baseline before and after them. Heuristic.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from noregret.gp import functions as sp
from noregret.gp.posterior import Ints
from noregret.optimizer.model.evidence import FEWEST_OBSERVATIONS, MOST_FITTED, REFUTED, Evidence
from noregret.optimizer.model.hypotheses import Explained, FittedModels
from noregret.optimizer.model.kernel import CENTRE


@dataclass(frozen=True)
class LevelShift:
    """Shift of the values of the first ``until`` answers: they were larger by ``by``, larger being better."""

    until: int
    by: float

    def removed(self, evidence: Evidence) -> Evidence:
        """Evidence as if all had been measured after the shift."""
        assert evidence.when is not None
        return replace(evidence, values=evidence.values - self.by * (evidence.when < self.until))


def find_step(
    calibrated: Callable[[Evidence], FittedModels], evidence: Evidence, baseline: Ints, found: FittedModels
) -> tuple[FittedModels, LevelShift] | None:
    """Models without the most likely shift, and that shift; None if there is none.

    Parameters
    ----------
    calibrated : Evidence -> FittedModels
    evidence : Evidence
        All values, in their own units.
    baseline : ints
        Points of the evidence that are the baseline.
    found : FittedModels
        Fit of this evidence.
    """
    if evidence.bounds is not None or not 2 * FEWEST_OBSERVATIONS <= len(evidence) <= MOST_FITTED:
        return None
    assert evidence.when is not None
    repeats = np.sort(evidence.when[np.isin(evidence.where, baseline)])
    times = np.sort(evidence.when)[FEWEST_OBSERVATIONS:-FEWEST_OBSERVATIONS]
    if repeats.size < 2 or not (tried := times[(times > repeats[0]) & (times <= repeats[-1])]).size:
        return None
    plain = next((each for each in found.explained if each.hypothesis.values.logarithm is None), None)
    if plain is None:
        return None
    step, nats = _likeliest(plain, evidence, tried)
    if nats <= 0:
        return None
    cost = REFUTED + math.log(len(tried))
    without = calibrated(step.removed(evidence))
    return (without, step) if without.explained[0].nats - found.explained[0].nats >= cost else None


def _likeliest(plain: Explained, evidence: Evidence, tried: Ints) -> tuple[LevelShift, float]:
    """The shift that explains most under a fit, and how many nats more than none."""
    hypothesis, fit, _ = plain
    standard = hypothesis.values.standardised(evidence)
    each = standard.apart()
    noise = each.variance(fit.noise**2) / hypothesis.noise.trust(standard, fit)
    matrix = fit.covariance(each) + CENTRE**2 + np.diag(noise)
    before = (standard.when[:, None] < tried).astype(float)  # type: ignore[index]
    solved = sp.cho_solve((sp.cholesky(matrix, lower=True), True), before)
    size, agreed = np.einsum("ij,ij->j", before, solved), standard.values @ solved
    nats = 0.5 * agreed**2 / (1 + size) - 0.5 * np.log1p(size)
    best = int(np.argmax(nats))
    shift = float(agreed[best] / size[best])
    return LevelShift(int(tried[best]), shift * hypothesis.values.unit), float(nats[best])
