"""Speed and memory of the exact posterior, in the default environment: ``python -m benchmarks.core``.

Every figure is a ratio against a plain loop that does the same arithmetic in the same process, since machines
differ and are noisy; the references are written out below.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable
from time import perf_counter

import numpy as np

from noregret import ExactGP, Pull, SquaredExponential, algorithms, run
from noregret.bandits.decision.loops import Play
from noregret.gp.posterior import Floats, Ints, Posterior, Rng

KERNEL = SquaredExponential(0.2)
NOISE = 0.1


def main() -> None:
    driver()
    many_rounds()
    many_arms()
    draws()
    memory()


def driver(rounds: int = 20_000) -> None:
    """`noregret.run` with an algorithm and a problem that do nothing: the overhead of a round."""

    class Nothing:
        def play(self, arms: Floats, rng: Rng) -> Play:
            pull = Pull(np.zeros(1, dtype=np.intp), ExactGP(KERNEL, 1.0).prior(arms), np.arange(len(arms)))
            while True:
                yield pull

        def bounds(self, belief: Posterior) -> tuple[Floats, Floats]:
            return belief.mean, belief.mean

    class Silence:
        name, arms, means = "silence", np.zeros((3, 1)), np.zeros(3)

        def rewards(self, arms: Ints, rng: Rng, nothing: Floats = np.zeros(1)) -> Floats:  # noqa: B008
            return nothing

    seconds = best(lambda: run(Nothing(), Silence(), rounds), 5)
    print(
        f"a loop that does nothing, {rounds:,} rounds: {1e6 * seconds / rounds:.1f} us a round (at most 4; best of 5)"
    )


def many_rounds(arms: int = 100, rounds: int = 30_000) -> None:
    """100 arms, 30,000 rounds: against a bare rank-one loop."""
    print(f"{arms} arms, {rounds:,} rounds, SE l = 0.2 in 1-d (best of 3)")
    points, means = world(arms, 1)
    igp = algorithms.igp_ucb(KERNEL, noise=NOISE, constants="experiment")
    thompson = algorithms.gp_ts(KERNEL, noise=NOISE, constants="experiment")
    width = igp.rule.width
    bare = best(lambda: bare_rank_one(points, means, rounds, lambda t: width.norm + 0.1 * np.sqrt(2 * np.log(t + 2))))
    clocks = [drive(igp, points, means, rounds) for _ in range(3)]
    ours = min(clock[-1] for clock in clocks)
    draws = min(drive(thompson, points, means, rounds)[-1] for _ in range(3))
    early = min(clock[11_000] - clock[1_000] for clock in clocks)
    late = min(clock[-1] - clock[-10_001] for clock in clocks)
    report("bare rank-one loop", bare / rounds)
    report("IGP-UCB", ours / rounds, "the bare loop", ours / bare, "at most 2")
    report("GP-TS", draws / rounds, "IGP-UCB", draws / ours, "at most 3")
    print(f"  last 10,000 rounds {late / early:.2f} x rounds 1,000 to 11,000 (at most 1.2)")


def many_arms(arms: int = 2_000, rounds: int = 1_000) -> None:
    """2,000 arms, 1,000 rounds: against scikit-learn refitted each round, and a bare incremental Cholesky."""
    print(f"{arms:,} arms, {rounds:,} rounds, SE l = 0.2 in 2-d (best of 7)")
    points, means = world(arms, 2)
    amm = algorithms.amm_ucb(KERNEL, noise=NOISE)
    chosen: list[int] = []
    pairs = [
        (drive(amm, points, means, rounds, chosen)[-1], best(lambda: bare_cholesky(points, means, chosen), 1))
        for _ in range(7)
    ]
    ours, bare = np.min(pairs, axis=0)
    sklearn = scikit_learn(points, means, chosen)
    report("bare incremental Cholesky", bare / rounds)
    report("AMM-UCB", ours / rounds, "the bare loop", ours / bare, "at most 1.3")
    report("scikit-learn refitted", sklearn / rounds, "AMM-UCB", sklearn / ours, "at least 50")


def draws(arms: int = 1_000_000, rows: int = 20) -> None:
    """A joint sample on a million arms: against the same sum of waves by NumPy's cosine."""
    points, rng = np.random.default_rng(0).random((arms, 4)), np.random.default_rng(1)
    belief = ExactGP(KERNEL, NOISE**2).prior(points)
    belief.update(np.arange(rows), np.zeros(rows))
    first = best(lambda: belief.sample(rng), 1)
    later, bare = best(lambda: belief.sample(rng)), best(lambda: bare_waves(points, rng))
    print(f"a joint draw on {arms:,} arms in 4-d: first {first:.2f} s (at most 2), later {later:.2f} s,", end=" ")
    print(f"{later / bare:.2f} x the bare waves (at most 1)")


def bare_waves(points: Floats, rng: Rng, count: int = 128, block: int = 256) -> Floats:
    """128 waves with the spectral law of the kernel, in blocks that fit into the cache."""
    frequencies, phases = rng.standard_normal((points.shape[1], count)) / 0.2, rng.uniform(0, 2 * np.pi, count)
    sizes = rng.standard_normal(count)
    blocks = (points[start : start + block] for start in range(0, len(points), block))
    return np.concatenate([np.cos(each @ frequencies + phases) @ sizes for each in blocks])


def memory(arms: int = 20_000, rounds: int = 1_000) -> None:
    """20,000 arms in 6-d, 1,000 rounds: peak memory of a separate process, and its growth."""
    script = f"""
        import resource
        import numpy as np
        from noregret import Policy, SquaredExponential, algorithms
        points = np.random.default_rng(0).random(({arms}, 6))
        policy = Policy(algorithms.amm_ucb(SquaredExponential(0.2), noise={NOISE}), points, rng=0)
        peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"start {{peak():.0f}} MB", end="")
        for t in range(1, {rounds} + 1):
            asked = policy.ask()
            policy.tell(asked, np.sin(5 * points[asked]).sum(axis=1))
            if t % ({rounds} // 4) == 0:
                print(f", {{t}} rounds {{peak():.0f}} MB ({{policy.belief.rank}} distinct arms)", end="")
    """
    start = perf_counter()
    result = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True)
    print(f"{arms:,} arms in 6-d, {rounds:,} rounds: {result.stdout} (under 500 MB), {perf_counter() - start:.0f} s")


def world(arms: int, dimension: int) -> tuple[Floats, Floats]:
    """Uniform points and a function in the span of the kernel on them, scaled to size 1."""
    rng = np.random.default_rng(0)
    points = rng.random((arms, dimension))
    means = KERNEL(points, points[:30]) @ rng.uniform(-1, 1, 30)
    return points, means / np.abs(means).max()


def drive(algorithm, points: Floats, means: Floats, rounds: int, chosen: list[int] | None = None) -> Floats:
    """Play and return the clock after every round, (rounds + 1,); the arms go into ``chosen``."""
    rng, noise = np.random.default_rng(1), np.random.default_rng(2)
    clock, arms = np.empty(rounds + 1), np.empty(rounds, np.intp)
    start = perf_counter()
    play = algorithm.play(points, rng)
    pull = next(play)
    for t in range(rounds):
        clock[t] = perf_counter() - start
        arms[t] = pull.arms[0]
        pull = play.send((pull.arms, means[pull.arms] + NOISE * noise.standard_normal(1)))
    clock[rounds] = perf_counter() - start
    if chosen is not None:
        chosen[:] = arms.tolist()
    return clock


def bare_rank_one(points: Floats, means: Floats, rounds: int, width: Callable[[int], float]) -> None:
    """GP-UCB on a dense covariance, nothing else."""
    noise = np.random.default_rng(2)
    covariance, mean = KERNEL(points, points), np.zeros(len(points))
    for t in range(rounds):
        arm = int(np.argmax(mean + width(t) * np.sqrt(np.maximum(covariance.diagonal(), 0))))
        reward = means[arm] + NOISE * noise.standard_normal()
        column = covariance[arm].copy()
        pivot = column[arm] + NOISE**2
        mean += column * ((reward - mean[arm]) / pivot)
        covariance -= np.outer(column, column / pivot)


def bare_cholesky(points: Floats, means: Floats, chosen: list[int]) -> None:
    """GP-UCB by an incremental Cholesky factor with one row per round, for arms already chosen."""
    noise = np.random.default_rng(2)
    rows, mean, variance = np.empty((len(chosen), len(points))), np.zeros(len(points)), np.ones(len(points))
    for t, arm in enumerate(chosen):
        np.argmax(mean + 2 * np.sqrt(np.maximum(variance, 0)))
        column = KERNEL(points[arm : arm + 1], points)[0] - rows[:t, arm] @ rows[:t]
        pivot = column[arm] + NOISE**2
        rows[t] = column / np.sqrt(pivot)
        mean += column * ((means[arm] + NOISE * noise.standard_normal() - mean[arm]) / pivot)
        variance -= rows[t] ** 2


def scikit_learn(points: Floats, means: Floats, chosen: list[int]) -> float:
    """Seconds of GaussianProcessRegressor refitted after every round, its choices compared with ours."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF

    arms: Ints = np.array(chosen)
    rewards = means[arms] + NOISE * np.random.default_rng(2).standard_normal(len(arms))
    start = perf_counter()
    for t in range(1, len(arms) + 1):
        model = GaussianProcessRegressor(RBF(0.2), alpha=NOISE**2, optimizer=None)
        mean, std = model.fit(points[arms[:t]], rewards[:t]).predict(points, return_std=True)
    seconds = perf_counter() - start
    posterior = algorithms.amm_ucb(KERNEL, noise=NOISE).model.prior(points)
    posterior.update(arms, rewards)
    assert np.abs(mean - posterior.mean).max() < 1e-6
    assert np.abs(std - posterior.std).max() < 1e-6
    return seconds


def best(action: Callable[[], None], times: int = 3) -> float:
    def once() -> float:
        start = perf_counter()
        action()
        return perf_counter() - start

    return min(once() for _ in range(times))


def report(what: str, seconds: float, reference: str = "", ratio: float = 1.0, target: str = "") -> None:
    against = f"{ratio:6.2f} x {reference} ({target})" if reference else ""
    print(f"  {what:28s} {1e6 * seconds:9.1f} us a round   {against}", flush=True)


if __name__ == "__main__":
    main()
