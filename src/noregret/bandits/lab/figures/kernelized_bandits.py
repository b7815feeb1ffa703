"""Figures of "On kernelized multi-armed bandits" (Chowdhury and Gopalan, ICML 2017).

Fig. 1 to 4 run the five algorithms of Section 6 with ``constants="experiment"``: ridge R^2, delta = 0.1, and gamma_t by
its growth rate with constant 1. The theorem has ridge 1 + 2/T, so it covers none of these widths.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from noregret.bandits import algorithms, problems
from noregret.bandits.lab.figure import Below, Claim, ComparisonPanel, Entrant, Figure, MeanBelow, Scale, less
from noregret.bandits.problems import gp_draw, hartmann3, intel_temperature, light_snapshot, rkhs, rosenbrock, standard
from noregret.gp.kernels import Linear, Matern, SquaredExponential

SETTINGS = {"constants": "experiment", "delta": 0.1}
NAMES = ("igp-ucb", "gp-ucb", "gp-ts", "gp-ei", "gp-pi")
ENTRANTS = {name: Entrant(algorithms.NAMES[name], SETTINGS) for name in NAMES}


# Fig. 1: functions in the RKHS, of known norm

FIG1_PANELS = (
    ComparisonPanel("rkhs-se", "(a) squared exponential", partial(rkhs, SquaredExponential(0.2)), ENTRANTS),
    ComparisonPanel("rkhs-matern", "(b) Matérn", partial(rkhs, Matern(2.5, 0.2)), ENTRANTS),
)

GREEDY = """
    GP-EI, whose incumbent is the best posterior mean, settles early. In most trials it settles on a very good arm, and
    its regret is a fraction of IGP-UCB's. In a few trials it does not, and these make its mean uncertain. IGP-UCB's
    regret has no such tail. The paper does not give the incumbent of its GP-EI and GP-PI.
"""


def rkhs_claims(panel: ComparisonPanel) -> list[Claim]:
    """Claims of Fig. 1, which Fig. 2 repeats."""
    where, others = panel.title, [name for name in NAMES if name != "igp-ucb"]
    return [
        less(f"{where}: IGP-UCB is a significant improvement over GP-UCB", panel, "igp-ucb", "gp-ucb", bound=0.5),
        less(f"{where}: IGP-UCB performs the best of all", panel, "igp-ucb", *others, because=GREEDY),
        less(f"{where}: GP-TS fares well compared to GP-UCB", panel, "gp-ts", "gp-ucb"),
    ]


FIG1 = Figure(
    name="kernelized/fig1",
    title="Fig. 1: functions in the RKHS",
    says="""
        IGP-UCB is a significant improvement over GP-UCB and performs the best of all competitors; GP-TS fares
        reasonably well compared to GP-UCB and GP-EI/GP-PI. GP-EI and GP-PI perform similarly.
    """,
    how="""
        100 arms uniform on [0, 1]; f is the posterior mean of a draw y from the GP on them, with noise of 1% of the
        range of y (the paper does not give it); noise and ridge R^2 = 1% of the range of f; delta = 0.1; gamma_t =
        (ln t)^2 and t^(2/7) ln t. B is the RKHS norm of f: the paper's formula f'Kf is a misprint for it, and about
        20 times too large. EI and PI measure improvement over the best posterior mean, by a margin of 0 and 0.01; the
        paper does not specify this. 'Significant' is read as half the regret. The paper has 25 trials in Figs. 1 to 3;
        the default here is 10, and ``--trials 25`` runs 25.
    """,
    panels=FIG1_PANELS,
    claims=[claim for panel in FIG1_PANELS for claim in rkhs_claims(panel)],
    scale=Scale(30_000, 10),
    quick=Scale(1000, 4),
    minutes=1.7,
)


# Fig. 2: functions drawn from the Gaussian process

FIG2_PANELS = (
    ComparisonPanel("gp-se", "(a) squared exponential", partial(gp_draw, SquaredExponential(0.2)), ENTRANTS),
    ComparisonPanel("gp-matern", "(b) Matérn", partial(gp_draw, Matern(2.5, 0.2)), ENTRANTS),
)

FIG2 = Figure(
    name="kernelized/fig2",
    title="Fig. 2: functions drawn from the GP",
    says="The relative performance of all methods is similar to that in Fig. 1.",
    how="""
        As Fig. 1, with f drawn from the GP on the 100 arms. On these arms its norm is finite, and B is this norm:
        about 10 for the Matérn kernel. The claims of Fig. 1 are tested again.
    """,
    panels=FIG2_PANELS,
    claims=[claim for panel in FIG2_PANELS for claim in rkhs_claims(panel)],
    scale=Scale(30_000, 10),
    quick=Scale(1000, 4),
    minutes=1.5,
)


# Fig. 3: standard test functions, which the kernel does not fit

FIG3_PANELS = (
    ComparisonPanel("rosenbrock", "(a) Rosenbrock", partial(standard, rosenbrock), ENTRANTS),
    ComparisonPanel("hartmann3", "(b) Hartman3", partial(standard, hartmann3), ENTRANTS),
)
REST = ("igp-ucb", "gp-ucb", "gp-ts")

FIG3 = Figure(
    name="kernelized/fig3",
    title="Fig. 3: Rosenbrock and Hartman3",
    says="GP-EI and GP-PI perform better than the rest, while IGP-UCB and GP-TS show competitive performance.",
    how="""
        100 d uniform points of the domain as arms; squared exponential kernel, l = 0.2 on the unit cube; everything
        else as in Fig. 1. Rosenbrock's domain is not given: [-5, 10]^2 here, and its values are divided by their
        range, 1,102,581. B is the norm of the smallest function through all points.
    """,
    panels=FIG3_PANELS,
    claims=[
        less(f"{panel.title}: {text}", panel, label, *others)
        for panel in FIG3_PANELS
        for text, label, others in (
            ("GP-EI performs better than the rest", "gp-ei", REST),
            ("GP-PI performs better than the rest", "gp-pi", REST),
            ("IGP-UCB is competitive: below GP-UCB", "igp-ucb", ["gp-ucb"]),
            ("GP-TS is competitive: below GP-UCB", "gp-ts", ["gp-ucb"]),
        )
    ],
    scale=Scale(30_000, 10),
    quick=Scale(500, 4),
    minutes=2.1,
)


# Fig. 4: the sensor with the largest reading, on measured temperatures and light

SENSOR_ENTRANTS = {name: Entrant(algorithms.NAMES[name], SETTINGS | {"gain": 1.0}) for name in NAMES}
TEMPERATURE = ComparisonPanel(
    "intel",
    "(a) temperature, other training days",
    intel_temperature,
    SENSOR_ENTRANTS,
    files=("intel_temp_30s.csv",),
    rows=240,
)
LIGHT = ComparisonPanel(
    "light-snapshot",
    "(b) light",
    light_snapshot,
    SENSOR_ENTRANTS,
    files=("light_train.csv", "light_test.csv"),
    rows=192,
)
OTHERS = [name for name in NAMES if name != "gp-ts"]
WIDE = """
    1,000 rounds are few for these widths: GP-EI and GP-PI have found a good sensor by then, the others still explore.
    The paper gives neither the number of rounds nor the incumbent of its GP-EI and GP-PI.
"""
OTHER_DAYS = "the kernel is learnt from other days than the paper's, whose data are incomplete"

FIG4 = Figure(
    name="kernelized/fig4",
    title="Fig. 4: temperature and light sensors",
    says="""
        Temperature: IGP-UCB and GP-UCB perform the same, while GP-TS outperforms all its competitors. Light: GP-TS
        performs better than the others, with IGP-UCB performing better than GP-EI and GP-PI.
    """,
    how="""
        The kernel is the covariance of the training rows; each test row, all sensors at one moment, is one function
        and one trial; R^2 = ridge = 5% of the mean variance, gamma_t = 1. The light data are complete, 192 functions.
        The temperatures are not: the test rows are the paper's two days, 240 functions, but the kernel is that of
        6-8 March instead of 28 February to 3 March. B is the norm of each row, and the number of rounds, which the
        paper does not give, is 1000. 'The same' is read as a regret within 10%.
    """,
    panels=(TEMPERATURE, LIGHT),
    claims=[
        Claim(
            "(a): IGP-UCB and GP-UCB perform the same",
            Below("intel", "igp-ucb", ["gp-ucb"], 1.1, above=1 / 1.1),
            OTHER_DAYS,
        ),
        less("(a): GP-TS outperforms all its competitors", TEMPERATURE, "gp-ts", *OTHERS, unlike=OTHER_DAYS),
        less("(b): GP-TS performs better than the others", LIGHT, "gp-ts", *OTHERS, because=WIDE),
        less("(b): IGP-UCB performs better than GP-EI and GP-PI", LIGHT, "igp-ucb", "gp-ei", "gp-pi", because=WIDE),
    ],
    scale=Scale(1000, 240),
    quick=Scale(200, 6),
    minutes=1.0,
)

# Section 4.2: linear functions


def linear(dimension: int, payoff: Any, rng: Any = None) -> problems.Problem:
    """f(x) = theta'x with |theta| = 1, on 500 random unit vectors."""
    arms = np.random.default_rng(rng).standard_normal((501, dimension))
    arms /= np.linalg.norm(arms, axis=1)[:, None]
    return problems.Problem("linear", arms[1:], arms[1:] @ arms[0], Linear(), payoff, 1.0)


def exponent(trace: Any) -> float:
    """Slope of the regret on logarithmic axes over the last ten-fold of rounds."""
    rounds = np.geomspace(len(trace.regret) / 10, len(trace.regret), 50).astype(int)
    return float(np.polyfit(np.log(rounds), np.log(trace.cumulative_regret[rounds - 1]), 1)[0])


LINEAR_ENTRANTS = {
    name if d == 8 else f"{name} (d = 2)": Entrant(algorithms.NAMES[name], settings, partial(linear, d, payoff))
    for name, settings, payoff in (
        ("igp-ucb", {}, problems.Gaussian(0.1)),
        ("gp-ts", {}, problems.Gaussian(0.1)),
        ("ata-gp-ucb", {"constants": "experiment"}, problems.StudentT(3)),
    )
    for d in (2, 8)
}
EXPLORES = {"igp": "", "gp-": "", "ata": "The authors' width still explores nearly all arms at the end."}
LINEAR_PANEL = ComparisonPanel("linear", "d = 8 and d = 2", partial(linear, 8), LINEAR_ENTRANTS)

LINEAR = Figure(
    name="kernelized/linear",
    title="Linear kernel: d sqrt(T) and d^(3/2) sqrt(T)",
    says="""
        With the linear kernel the regret of IGP-UCB is of order d sqrt(T), and that of GP-TS d^(3/2) sqrt(T), up to
        logarithms. The heavy-tails paper: ATA-GP-UCB has d sqrt(T) too where the variance is finite.
    """,
    how="""
        500 random unit vectors in 2 and 8 dimensions, |theta| = 1. IGP-UCB and GP-TS with the theory's constants, under
        Gaussian noise of sd 0.1; ATA-GP-UCB with the authors' constants, under Student-t noise with 3 degrees of
        freedom. The exponent is the slope of the last ten-fold of rounds, and may exceed 1/2 by 0.1 for logarithms; the
        growth with d may exceed the order by a tenth. The papers have no such experiment.
    """,
    panels=[LINEAR_PANEL],
    claims=[
        Claim(f"{label}: sqrt(T)", MeanBelow("linear", label, exponent, 0.6, "exponent"), because=EXPLORES[label[:3]])
        for label in LINEAR_ENTRANTS
    ]
    + [
        less(f"{name}: d^{p:g}", LINEAR_PANEL, name, f"{name} (d = 2)", bound=1.1 * 4**p)
        for name, p in (("igp-ucb", 1), ("gp-ts", 1.5), ("ata-gp-ucb", 1))
    ],
    scale=Scale(3000, 8),
    quick=Scale(300, 3),
    minutes=0.9,
)

FIGURES = (FIG1, FIG2, FIG3, FIG4, LINEAR)
