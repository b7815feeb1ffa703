"""Coverage of the bands: ``python -m benchmarks.coverage`` for every width that claims 1 - delta, in ten minutes.

The breakdown norm is covered if it is at most the norm of f, at every tenth round, for a claim that is just false: its
share is that of the norm.

A run is covered if f lies within the band at all arms and in all its rounds. The theorems promise that in at least 1 -
delta of the runs, here 0.9. Every row is 200 runs on functions whose norm is exactly the B of the algorithm,
with noise that just meets the assumption; the interval is Clopper and Pearson's, 95%. *Needed* is the largest share of
the half-width that any arm needed in a run: a band of that share of the width would have held too.

Rows are kept in ``coverage.json`` beside this file, and a row that is there is not run again: name rows to run them
again. The tables are written into docs/reports/coverage.md between their two marks.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from benchmarks.markdown import table
from noregret import Box, Columns, Matern, Nystrom, Policy, Pull, SparseGP, SquaredExponential, algorithms, problems
from noregret.bandits.decision.loops import Algorithm
from noregret.bandits.decision.rules import best_arm
from noregret.bandits.lab.trace import fraction_interval
from noregret.bandits.lab.trials import build, children
from noregret.gp.posterior import Floats, Rng
from noregret.problems import Changing, Gaussian, Problem, Spikes, StudentT

Stationary = SquaredExponential | Matern
World = Callable[[Stationary, Any], Any]
KERNELS: dict[str, Stationary] = {"SE": SquaredExponential(0.2), "Matérn 1.5": Matern(1.5, 0.2)}
RUNS, ROUNDS, DELTA, ARMS, NOISE = 200, 150, 0.1, 50, 0.3
GRID = np.linspace(0, 1, 101)[:, None]
KEPT = Path(__file__).with_suffix(".json")
PAGE = Path(__file__).parents[1] / "docs" / "reports" / "coverage.md"
MARKS = "<!-- coverage: begin -->\n", "<!-- coverage: end -->\n"


@dataclass(frozen=True)
class Width:
    """A row of the table: algorithm, problem and settings."""

    title: str
    builder: Callable[..., Algorithm]
    world: World
    settings: dict[str, Any] = field(default_factory=dict)
    kernels: Sequence[str] = tuple(KERNELS)
    adapt: Callable[[Any], dict[str, Any]] = lambda _: {}
    """Settings that depend on the problem of the run."""
    runs: int = RUNS
    """Number of runs of a row: fewer for the bands on a box, whose rounds take longer."""
    rounds: int = ROUNDS
    change: Callable[[Any, Any], Any] = lambda algorithm, _: algorithm
    """Another algorithm in its place, given it and the problem."""

    def algorithm(self, problem: Any) -> Algorithm:
        """Build the algorithm for a problem."""
        built = build(self.builder, problem, self.rounds, {"delta": DELTA} | self.settings | self.adapt(problem))
        return self.change(built, problem)


@dataclass(frozen=True)
class Row:
    """Results for one width on one kernel."""

    width: str
    kernel: str
    covered: int
    runs: int
    needed: float
    """The median over the runs of the share of the half-width that was needed."""
    most: float
    """The largest such share."""


still = partial(problems.rkhs, points=ARMS, payoff=Gaussian(NOISE))
"""A function of known norm, with Gaussian noise."""
bounded = partial(problems.rkhs, points=ARMS, payoff=Spikes(0.0, 1.0, NOISE))
"""The same with noise of plus or minus R."""
heavy = partial(problems.rkhs_sum, points=ARMS, payoff=StudentT(3))
"""A sum of kernels, with Student-t noise of 3 degrees of freedom."""
sliding = partial(problems.motion, distance=2.0, points=15, rounds=ROUNDS, payoff=Gaussian(NOISE))
"""A function that slides by twice the range of the arms."""
standing = partial(problems.jump, points=15, rounds=1, payoff=Gaussian(NOISE))
"""A constant function in the form of a changing problem."""
walking = partial(problems.walk, rate=0.05, points=15, rounds=ROUNDS, payoff=Gaussian(NOISE))
"""A function that walks at the rate of 0.05."""


def contexts(kernel: Stationary, rng: Any) -> Changing:
    """A function of context and arm."""
    product = Columns(kernel, (0,)) * Columns(kernel, (1,))
    return problems.contextual(product, points=15, rounds=ROUNDS, payoff=Gaussian(NOISE), rng=rng)


@dataclass(frozen=True)
class Chosen:
    """Nystrom features of exactly these arms, whatever is pulled."""

    kernel: Any
    members: Sequence[int]

    def on(self, arms: Any, ridge: float, rng: Rng) -> Any:
        chosen: Any = Nystrom(self.kernel, 1.0, root="cholesky").on(arms, ridge, rng)
        chosen._embed(np.array(self.members, np.intp))
        chosen.redraw = lambda *_: len(chosen.table)
        return chosen


def on_three_arms(algorithm: Any, problem: Any) -> Any:
    """The algorithm with a dictionary of the first three arms."""
    return replace(algorithm, model=SparseGP(Chosen(problem.kernel, range(3)), algorithm.model.ridge))


@dataclass(frozen=True)
class Adversary:
    """Loop of `bkb`; in every fifth round its dictionary becomes the worst of five, given the rewards and f."""

    algorithm: Any
    problem: Any

    def bounds(self, belief: Any) -> tuple[Floats, Floats]:
        return self.algorithm.bounds(belief)

    def play(self, arms: Floats, rng: Rng) -> Any:
        belief, told = self.algorithm.model.prior(arms, rng), np.empty((0, 2))
        while True:
            best = best_arm(self.algorithm.rule, belief, rng)
            pulled, rewards = yield Pull(np.array([best]), belief, np.arange(len(arms)))
            belief.update(pulled, rewards)
            told = np.vstack([told, np.column_stack([pulled, rewards])])
            if len(told) % 5 == 0:
                drawn = [Chosen(self.problem.kernel, rng.choice(len(arms), 1 + i, replace=False)) for i in range(5)]
                beliefs = [SparseGP(each, belief.ridge).prior(arms, rng) for each in drawn]
                for each in beliefs:
                    each.update(told[:, 0].astype(int), told[:, 1])
                belief = max(beliefs, key=lambda each: _share(*self.bounds(each), self.problem.means))


@dataclass(frozen=True)
class OnBox:
    """A function of norm 1 on the interval [0, 1], a sum of 30 kernels, with Gaussian noise."""

    kernel: Stationary
    centres: Floats
    weights: Floats
    arms = Box([[0, 1]])

    @property
    def facts(self) -> dict[str, float]:
        """Constants that the algorithms are given."""
        return {"norm": 1.0, "noise": NOISE}

    def means(self, points: Floats) -> Floats:
        """Value of f at some points, (n, 1) -> (n,)."""
        return np.asarray(self.kernel(points, self.centres) @ self.weights)

    def rewards(self, points: Floats, rng: Rng) -> Floats:
        """One reward at each of these points, (n, 1) -> (n,)."""
        return self.means(points) + NOISE * rng.standard_normal(len(points))


def on_box(kernel: Stationary, rng: Any) -> OnBox:
    """A function on a box; the band is compared with it at `GRID` and at the arms of the belief."""
    centres, weights = rng.random((30, 1)), rng.uniform(-1, 1, 30)
    return OnBox(kernel, centres, weights / math.sqrt(weights @ kernel(centres, centres) @ weights))


def faint(kernel: Stationary, rng: Any, part: float = 0.1) -> Problem:
    """The constant problem with an f whose standard deviation over the arms is this part of the noise; 0 for f = 0."""
    problem = still(kernel, rng=rng)
    factor = part * NOISE / float(problem.means.std())
    norm = max(factor * (problem.norm or 1.0), 1e-9)  # a Problem has no norm of 0
    return Problem(problem.name, problem.arms, factor * problem.means, kernel, problem.payoff, norm)


def longer(kernel: Stationary, rng: Any) -> Problem:
    """The constant problem, for an algorithm with a lengthscale four times too long."""
    problem = still(kernel, rng=rng)
    stretched = replace(kernel, lengthscale=4 * kernel.lengthscale)
    return Problem(problem.name, problem.arms, problem.means, stretched, problem.payoff, problem.norm)


def apart(problem: Changing, remembered: int = 40) -> dict[str, Any]:
    """V: largest distance of the functions of the last rounds from the present one."""
    means = problem.means
    gaps = [np.abs(means[t] - means[max(t - remembered, 0) : t]).max() for t in range(1, len(means))]
    return {"variation": float(max(gaps))}


def share_of(problem: Problem, share: float, noise: float = NOISE) -> dict[str, Any]:
    """A share of the norm. A half is the N of the longest lengthscale for which N 4^(1/2) = B with a quarter of it."""
    return {"norm": share * (problem.norm or 1.0), "noise": noise}


EACH_ROUND, APART = {"delta": DELTA / ROUNDS}, partial(apart, remembered=40)
HEAVIER, FAR = partial(heavy, payoff=StudentT(14 / 9, 0.1)), partial(heavy, payoff=StudentT(3, 0.1))
TEN, LONG = {"first_epoch": 10}, 4000  # Catoni's band is that of the prior in fewer rounds
QUARTER, THIRD = partial(share_of, share=0.25), partial(share_of, share=1 / 3, noise=NOISE / 3)
CENTRED = TEN | {"recentre": True, "noise_moment": 0.03}
WIDTHS = {
    "igp_ucb": Width("`igp_ucb`", algorithms.igp_ucb, still),
    "gp_ts": Width("`gp_ts`", algorithms.gp_ts, still),
    "gp_ucb": Width("`gp_ucb`, noise ± R", algorithms.gp_ucb, bounded),
    "gp_ei": Width("`gp_ei`", algorithms.gp_ei, still),
    "gp_pi": Width("`gp_pi`", algorithms.gp_pi, still),
    "ay_ucb": Width("`ay_ucb`", algorithms.ay_ucb, still),
    "amm_ucb": Width("`amm_ucb`", algorithms.amm_ucb, still),
    "dmm_ucb": Width("`dmm_ucb`", algorithms.dmm_ucb, still),
    "breakdown": Width("breakdown norm, no B", algorithms.amm_ucb, still),
    "bkb": Width("`bkb`", algorithms.bkb, still),
    "bkb_paper": Width("`bkb`, width of the paper", algorithms.bkb, still, {"coins": "fresh", "width": "paper"}),
    "bkb_greedy": Width("`bkb`, greedy", algorithms.bkb, still, {"coins": "greedy"}),
    "bkb_two": Width("`bkb`, q = 2", algorithms.bkb, still, {"oversampling": 2.0}),
    "bkb_three": Width("`bkb`, three fixed arms", algorithms.bkb, still, change=on_three_arms),
    "bkb_adversary": Width("`bkb`, arms chosen by rewards and f", algorithms.bkb, still, change=Adversary),
    "bbkb": Width("`bbkb`", algorithms.bbkb, still),
    "ada_bkb": Width("`ada_bkb`, box", algorithms.ada_bkb, on_box, runs=50),
    "bkb_box": Width("`bkb`, box", algorithms.bkb, on_box, runs=50),
    "igp_ucb_box": Width("`igp_ucb`, box", algorithms.igp_ucb, on_box, runs=50),
    "mini_gp_ucb": Width("`mini_gp_ucb`", algorithms.mini_gp_ucb, still),
    "mini_bkb": Width("`mini_bkb`", algorithms.mini_bkb, still),
    "reds": Width("`reds`", algorithms.reds, still, TEN),
    "bpe": Width("`bpe`", algorithms.bpe, still, TEN),
    "gp_threds": Width(
        "`gp_threds`",
        algorithms.gp_threds,
        still,
        adapt=lambda problem: {"bounds": (problem.means.max() - 1.0, problem.means.max() + 1.0)},
    ),
    "tgp_ucb": Width("`tgp_ucb`, Student-t", algorithms.tgp_ucb, heavy),
    "ata_nystrom": Width("`ata_gp_ucb`, Nyström, Student-t (not proved)", algorithms.ata_gp_ucb, heavy),
    "ata_qff": Width(
        "`ata_gp_ucb`, QFF, Student-t (not proved)", algorithms.ata_gp_ucb, heavy, {"features": "qff"}, ("SE",)
    ),
    "mom_gp_ucb": Width("`mom_gp_ucb`, Student-t (recalled)", algorithms.mom_gp_ucb, heavy),
    "hvt_ucb": Width("`hvt_ucb`, Student-t (recalled)", algorithms.hvt_ucb, heavy),
    "catoni_reds": Width("`catoni_reds`, 4,000 rounds", algorithms.catoni_reds, heavy, TEN, rounds=LONG),
    "catoni_bpe": Width("`catoni_bpe`, Student-t", algorithms.catoni_bpe, heavy, TEN),
    "catoni_half": Width("`catoni_reds`, alpha = 1/2, 4,000 rounds", algorithms.catoni_reds, HEAVIER, TEN, rounds=LONG),
    "catoni_recentred": Width("the same, recentred, alpha = 1", algorithms.catoni_reds, FAR, CENTRED, rounds=LONG),
    "rcgp_ucb": Width("`rcgp_ucb`, nothing corrupted (cited)", algorithms.rcgp_ucb, still),
    "lb_gp_ucb": Width(
        "`lb_gp_ucb`, l four times too long", algorithms.lb_gp_ucb, longer, adapt=partial(share_of, share=0.5)
    ),
    "lb_norms": Width(
        "`lb_gp_ucb(norms=True)`, B half as well", algorithms.lb_gp_ucb, longer, {"norms": True}, adapt=QUARTER
    ),
    "cgp_ucb": Width("`cgp_ucb`, contexts", algorithms.cgp_ucb, contexts),
    "sw_gp_ucb": Width("`sw_gp_ucb`, V known", algorithms.sw_gp_ucb, sliding, EACH_ROUND | {"window": 40}, adapt=APART),
    "r_gp_ucb": Width("`r_gp_ucb`, V known", algorithms.r_gp_ucb, sliding, EACH_ROUND | {"period": 40}, adapt=APART),
    "wgp_ucb": Width("`wgp_ucb`, f constant in time", algorithms.wgp_ucb, standing, EACH_ROUND | {"discount": 0.95}),
    "tv_gp_ucb": Width("`tv_gp_ucb`, its own walk", algorithms.tv_gp_ucb, walking, {"rate": 0.05}),
    **{
        f"{name}_{title}": Width(f"`{name}`, {words}", getattr(algorithms, name), partial(faint, part=part), settings)
        for name, settings in {"ay_ucb": {}, "dmm_ucb": {}, "bkb": {}, "reds": TEN}.items()
        for title, part, words in (("null", 0.0, "f = 0, B = 0"), ("faint", 0.1, "f a tenth of the noise"))
    },
    "ay_third": Width("`ay_ucb`, given a third of B and R", algorithms.ay_ucb, still, adapt=THIRD),
    "sw_alone": Width("`sw_gp_ucb`, V unknown", algorithms.sw_gp_ucb, sliding, EACH_ROUND | {"window": 40}),
}
CONTROLS = ("ay_third", "sw_alone")


def needed(width: Width, kernel: str, seed: int) -> float:
    """The largest share of the half-width that a run needed; covered if at most 1."""
    instance, *streams = children(np.random.SeedSequence(seed), 3)
    problem = width.world(KERNELS[kernel], rng=np.random.default_rng(instance))
    player, world = map(np.random.default_rng, streams)
    still = partial(_still, rounds=width.rounds)
    bands = _changing if isinstance(problem, Changing) else _box if isinstance(problem, OnBox) else still
    bands = _norms if width is WIDTHS["breakdown"] else bands
    with threadpool_limits(1, user_api="blas"):
        algorithm = width.algorithm(problem)
        return max(_share(*band) for band in bands(algorithm, problem, player, world))


def _share(lower: Floats, upper: Floats, truth: Floats) -> float:
    """Largest distance of f from the middle of the band, in half-widths; infinite for an empty band."""
    half_width, distance = (upper - lower) / 2, np.abs(truth - (upper + lower) / 2)
    shares = np.full(len(truth), math.inf)
    np.divide(distance, half_width, out=shares, where=half_width > 0)
    return float(np.where((half_width == 0) & (distance < 1e-9), 0.0, shares).max())


def _still(algorithm: Algorithm, problem: Problem, player: Rng, world: Rng, rounds: int) -> Iterator[Any]:
    """The band by which every pull was chosen, and f at the arms that it is about."""
    play = algorithm.play(problem.arms, player)
    pull, told = next(play), 0
    while told < rounds:
        yield *algorithm.bounds(pull.belief), problem.means[pull.active if pull.about is None else pull.about]
        told += len(pull.arms)
        pull = play.send((pull.arms, problem.rewards(pull.arms, world)))
    yield *algorithm.bounds(pull.belief), problem.means[pull.active if pull.about is None else pull.about]


def _norms(algorithm: Algorithm, problem: Any, player: Rng, world: Rng) -> Iterator[tuple[Floats, Floats, Floats]]:
    """The norm of f and minus it, and the breakdown norm of a false claim, or B0 where the arm is the best one."""
    policy, norm = Policy(algorithm, problem.arms, rng=player), np.array([problem.norm])
    for told in range(1, ROUNDS + 1):
        arms = policy.ask()
        policy.tell(arms, problem.rewards(arms, world))
        if told % 10 == 0:
            arm = policy.best().arm
            gap = float(problem.means.max() - problem.means[arm])
            found: Any = policy.best(within=gap * (1 - 1e-9)).breakdown
            yield -norm, norm, np.array([found.norm if gap else found.least])


def _box(algorithm: Algorithm, problem: OnBox, player: Rng, world: Rng) -> Iterator[tuple[Floats, Floats, Floats]]:
    """The band by which every point was chosen, and f, at a grid and at the arms of the belief."""
    play = algorithm.play(problem.arms, player)
    pull = next(play)
    for told in range(ROUNDS + 1):
        points: Any = pull.about
        yield *algorithm.bounds(pull.belief), problem.means(points)
        if told % 5 == 0:  # the grid costs more than a round
            yield *algorithm.bounds(pull.belief.at(GRID)), problem.means(GRID)
        if told < ROUNDS:
            pull = play.send((pull.arms, problem.rewards(pull.arms, world)))


def _changing(
    algorithm: Algorithm, problem: Changing, player: Rng, world: Rng
) -> Iterator[tuple[Floats, Floats, Floats]]:
    """The band of every round, about f as it is in that round."""
    policy = Policy(algorithm, problem.at(0).arms, rng=player)
    for t in range(ROUNDS):
        now = problem.at(t)
        if problem.contexts is not None:
            policy.change_arms(now.arms)
        yield *algorithm.bounds(policy.belief), now.means
        arms = policy.ask()
        policy.tell(arms, now.rewards(arms, world))


def measured(name: str, kernel: str, runs: int, jobs: int) -> Row:
    """All runs of a row."""
    shares = np.array(Parallel(jobs)(delayed(needed)(WIDTHS[name], kernel, seed) for seed in range(runs)))
    return Row(name, kernel, int((shares <= 1 + 1e-9).sum()), runs, float(np.median(shares)), float(shares.max()))


def kept() -> list[Row]:
    """The rows of earlier calls."""
    return [Row(**row) for row in json.loads(KEPT.read_text())["rows"]] if KEPT.exists() else []


def keep(rows: Sequence[Row]) -> None:
    """Write the rows, in the order of the table."""
    order = [(name, kernel) for name, width in WIDTHS.items() for kernel in width.kernels]
    rows = sorted(rows, key=lambda row: order.index((row.width, row.kernel)))
    about = {"rounds": ROUNDS, "delta": DELTA, "arms": ARMS, "noise": NOISE}
    KEPT.write_text(json.dumps({**about, "rows": [asdict(row) for row in rows]}, indent=1) + "\n")


def pages(rows: Sequence[Row]) -> str:
    """The two tables in Markdown: widths with a claim, and widths that show that the measurement can fail."""
    head = ("band", "kernel", "covered", "95% interval", "needed, median", "most")
    claims = table(head, [_cells(row) for row in rows if row.width not in CONTROLS])
    controls = table(head, [_cells(row) for row in rows if row.width in CONTROLS])
    return f"{claims}\nBands without a guarantee here, to show that the measurement can fail:\n\n{controls}"


def _cells(row: Row) -> tuple[str, ...]:
    _, low, high = fraction_interval(row.covered, row.runs)
    shares = (f"{share:.2f}" for share in (row.needed, row.most))
    return (WIDTHS[row.width].title, row.kernel, f"{row.covered} of {row.runs}", f"[{low:.3f}, {high:.3f}]", *shares)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the rows that are missing or named, then write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("widths", nargs="*", metavar="WIDTH", help=f"to run again, of {', '.join(WIDTHS)}")
    parser.add_argument("--runs", type=int, help=f"default {RUNS}, and 50 on a box")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args(argv)
    rows = {(row.width, row.kernel): row for row in kept() if row.width not in options.widths}
    for name, width in WIDTHS.items():
        for kernel in width.kernels:
            if (name, kernel) not in rows:
                rows[name, kernel] = measured(name, kernel, options.runs or width.runs, options.jobs)
                keep(list(rows.values()))
                print(*_cells(rows[name, kernel]), sep=" | ", flush=True)
    begin, end = MARKS
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(begin)
    PAGE.write_text(f"{before}{begin}\n{pages(kept())}\n{end}{rest.partition(end)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
