"""Censoring: observations of which only a bound is known, as Gaussian observations that say the same about f.

A run that was cut short says that its value y = f(x) + e is at least, or at most, a bound b. Its likelihood is

    P(y >= b | f) = Phi((f(x) - b) / s),    s the noise of a value.

With N(m, v) the prediction of f(x) without it, z = (m - b) / sqrt(v + s^2) and r = phi(z) / Phi(z), the mean and the
variance of f(x) given the bound are m + v g and v - v^2 h, with g = r / sqrt(v + s^2) and h = r (z + r) / (v + s^2).
The Gaussian observation of value m + g / h and precision h / (1 - v h), the site, leads to the same two numbers. A
bound that the prediction meets has a precision next to 0; one that it misses counts as a measurement of b itself. The
sites of several bounds depend on each other, so they are found in turn: expectation propagation (Minka 2001), which is
close to exact for such likelihoods (Nickisch and Rasmussen 2008). The first site is exact in mean and variance.

A bound may be wrong for the same reason as a value: a stalled run is cut, although its setting is good. So its
precision has the trust that the noise model has in a value as far on the wrong side.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from noregret.gp import functions as sp
from noregret.gp.posterior import Floats, Ints
from noregret.optimizer.model.evidence import LEAST_NOISE, Evidence
from noregret.optimizer.model.kernel import FAR, Fit
from noregret.optimizer.model.noise import NoiseModel, smoothed

SWEEPS, PRECISE = 30, 1e-3
"""Rounds of the search at the most, and the change of a mean, in standard deviations, below which it ends."""

STEP = 0.6
"""Part of the way that each round goes: sites of neighbours change together, and would overshoot. Not measured."""


class Sites(NamedTuple):
    """Gaussian observations that say the same as bounds: each value and precision, and the log mass of each bound."""

    values: Floats
    precision: Floats
    log_mass: Floats


def sites(mean: Floats, variance: Floats, bound: Floats, side: Floats, noise: Floats) -> Sites:
    """Site of each bound, all (n,), given mean and variance of f without it and the noise variance of a value.

    ``side`` is 1 if the value is at least the bound, -1 if it is at most that.
    """
    total = variance + noise
    z = side * (mean - bound) / np.sqrt(total)
    log_mass = sp.log_ndtr(z)
    near = np.maximum(z, -FAR)
    ratio = np.exp(-0.5 * near**2 - 0.5 * math.log(2 * math.pi) - sp.log_ndtr(near))
    away = np.maximum(-z, FAR)
    ratio = np.where(z < -FAR, away + 1 / away, ratio)
    beyond = np.where(z < -FAR, 1 / away, near + ratio)  # z + r, which is above 0
    curvature = ratio * beyond / total
    precision = np.maximum(curvature / np.maximum(1 - variance * curvature, 1e-12), LEAST_NOISE**2)
    return Sites(mean + side * np.sqrt(total) / beyond, precision, log_mass)


class Resolved(NamedTuple):
    """Evidence in which bounds are Gaussian observations of known noise.

    ``trust`` is the factor on the precision of each, 1 for bounds, whose own ``doubt`` is part of their noise; it is 1
    for a bound that is believed and for all values. ``nats`` is the log probability of the bounds given the rest, less
    the log density of what stands for them.
    """

    evidence: Evidence
    trust: Floats
    doubt: Floats
    nats: float


def resolved(evidence: Evidence, fit: Fit, noise: NoiseModel) -> Resolved:
    """Replace the bounds of standardised evidence by Gaussian observations, given the fit."""
    assert evidence.bounds is not None
    bounded = np.flatnonzero(evidence.bounds)
    where, side, bounds = evidence.where[bounded], evidence.bounds[bounded].astype(float), evidence.values[bounded]
    spread = evidence.variance(fit.noise**2)[bounded]
    if noise.varies:
        own = np.isnan(evidence.noise[bounded])
        spread = np.where(own, spread * noise.levels(evidence.points[where]), spread)
    kernel, now = fit.covariance(evidence), evidence
    precision, shift = np.full(len(bounded), LEAST_NOISE**2), LEAST_NOISE**2 * bounds
    doubt, last = np.ones(len(bounded)), np.full(len(evidence.points), np.inf)
    trust = np.ones(len(evidence))
    for sweep in range(SWEEPS):
        now = _with_sites(evidence, bounded, shift / precision, precision)
        if noise.heavy and sweep % 4 == 0:
            trust = noise.trust(now, fit)
            trust[bounded] = 1.0
        mean, variance, _ = smoothed(kernel, now, trust / now.variance(fit.noise**2), fit.centre)
        variance = np.maximum(variance, 1e-12)
        free = np.maximum(1 / variance[where] - precision, 1e-9)  # precision without the bound's own site
        cavity = (mean[where] / variance[where] - shift) / free
        gap = np.maximum(side * (bounds - cavity), 0.0)
        doubt = _doubt(noise, gap, 1 / np.sqrt(free), np.sqrt(spread))
        site = sites(cavity, 1 / free, bounds, side, spread / doubt)
        if np.abs((mean - last) / np.sqrt(variance)).max() < PRECISE:
            break
        last = mean
        precision = precision + STEP * (site.precision - precision)
        shift = shift + STEP * (site.precision * site.values - shift)
    values, total = shift / precision, 1 / free + 1 / precision
    density = -0.5 * (values - cavity) ** 2 / total - 0.5 * np.log(2 * math.pi * total)
    all_doubt = np.ones(len(evidence))
    all_doubt[bounded] = doubt
    return Resolved(now, trust, all_doubt, float((site.log_mass - density).sum()))


def arriving(
    bound: float, side: int, noise: float, model: NoiseModel, mean: float, std: float
) -> tuple[float, float, float]:
    """Value, noise and trust of the one Gaussian observation that says the same as a bound, given the prediction.

    The precision of the observation is trust / noise^2.
    """
    gap = max(side * (bound - mean), 0.0)
    doubt = float(_doubt(model, np.array([gap]), np.array([std]), np.array([noise]))[0])
    each = (np.array([number]) for number in (mean, std**2, bound, float(side), noise**2 / doubt))
    site = sites(*each)
    return float(site.values[0]), math.sqrt(doubt / float(site.precision[0])), doubt


def _doubt(noise: NoiseModel, gap: Floats, std: Floats, level: Floats) -> Floats:
    """Trust in each bound, at most 1, given how far the prediction is on the wrong side, its std and the noise."""
    doubt = np.ones(len(gap))
    for i in np.flatnonzero(gap > level):
        doubt[i] = min(noise.arriving(float(gap[i]), float(std[i]), float(level[i])), 1.0)
    return doubt


def _with_sites(evidence: Evidence, bounded: Ints, values: Floats, precision: Floats) -> Evidence:
    """Evidence with these values of these precisions in place of the bounds."""
    all_values, noise = evidence.values.copy(), evidence.noise.copy()
    all_values[bounded], noise[bounded] = values, 1 / np.sqrt(precision)
    return replace(evidence, values=all_values, noise=noise, bounds=None)
