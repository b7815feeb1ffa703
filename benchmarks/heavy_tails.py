"""Speed of the heavy-tailed methods, on one core: ``python -m benchmarks.heavy_tails``.

ATA-GP-UCB truncates its whole history again in every round. Here that is looked up; a plain implementation adds it up,
and is timed beside it. The study of regret, coverage and truncation is ``python -m benchmarks.heavy_tails_study``.
"""

from __future__ import annotations

import argparse
from time import process_time

import numpy as np
from threadpoolctl import threadpool_limits

from noregret import SquaredExponential, algorithms, problems
from noregret.belief.posterior import Floats
from noregret.decision.loops import Algorithm
from noregret.problems import Problem

FACTS = {"norm": 1.0, "moment": 4.0, "alpha": 1.0}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20_000)
    rounds = parser.parse_args().rounds
    with threadpool_limits(1):
        speed(rounds)


def speed(rounds: int) -> None:
    """100 arms, SE l = 0.2, Student-t noise of 3 degrees: seconds, and whether a round gets slower with time."""
    problem = problems.rkhs_sum(SquaredExponential(0.2), rng=0)
    print(f"100 arms, {rounds:,} rounds, Student-t 3, experiment constants at scale 0.1, one core")
    for name, algorithm in contenders(problem, rounds).items():
        clock = drive(algorithm, problem, rounds)
        half, start = rounds // 2, rounds // 20
        late, early = clock[-1] - clock[half], clock[start + half] - clock[start]
        target = "  (at most 60 s, 1.3)" if name == "ATA, 64 Fourier features" else ""
        print(
            f"  {name:<40} {clock[-1]:6.1f} s, {1e6 * clock[-1] / rounds:6.0f} us a round; second half "
            f"{late / early:.2f} x rounds {start:,} to {start + half:,}{target}"
        )
    for history in (rounds // 20, rounds):
        print(f"  plain ATA after {history:,} rounds: {1e6 * plain_round(problem, history):8.0f} us a round")


def contenders(problem: Problem, rounds: int) -> dict[str, Algorithm]:
    common = {"constants": "experiment", "scale": 0.1, "horizon": rounds, **FACTS}
    qff = {"features": "qff", "order": 32}
    kernel = problem.kernel
    tgp = {name: value for name, value in common.items() if name != "horizon"}
    return {
        "ATA, 64 Fourier features": algorithms.ata_gp_ucb(kernel, **qff, **common),
        "ATA, 64 Fourier features, Cholesky root": algorithms.ata_gp_ucb(kernel, **qff, root="cholesky", **common),
        "ATA, Nystrom": algorithms.ata_gp_ucb(kernel, **common),
        "Hvt-UCB, 64 Fourier features (one pass)": algorithms.hvt_ucb(kernel, **qff, **common),
        "Hvt-UCB, Nystrom (one pass)": algorithms.hvt_ucb(kernel, **common),
        "median of means, Nystrom": algorithms.mom_gp_ucb(kernel, **common),
        "TGP-UCB": algorithms.tgp_ucb(kernel, **tgp),
    }


def drive(algorithm: Algorithm, problem: Problem, rounds: int) -> Floats:
    """Play and return the seconds in the algorithm after every round, (rounds + 1,); a batch counts at its end."""
    policy, world = np.random.default_rng(1), np.random.default_rng(2)
    clock, seconds, done = np.zeros(rounds + 1), 0.0, 0
    play = algorithm.play(problem.arms, policy)
    pull = next(play)
    while done < rounds:
        arms = pull.arms[: rounds - done]
        rewards = problem.rewards(arms, world)
        start = process_time()
        pull = play.send((arms, rewards))
        seconds += process_time() - start
        clock[done + 1 : done + len(arms) + 1] = seconds
        done += len(arms)
    return clock


def plain_round(problem: Problem, history: int, repeats: int = 5) -> float:
    """Seconds of Alg. 2, lines 5 to 7, with the sums over all rewards so far (vectorised over them)."""
    rng = np.random.default_rng(0)
    arms = rng.integers(100, size=history)
    rewards = problem.rewards(arms, rng)
    features = algorithms.ata_gp_ucb(problem.kernel, features="qff", order=32, constants="experiment").model.features
    at_work = features.on(problem.arms, 1.0, rng)
    table = at_work.table if at_work.span is None else at_work.span @ at_work.table
    start = process_time()
    for _ in range(repeats):
        pulled = table[:, arms]
        values, vectors = np.linalg.eigh(pulled @ pulled.T + np.eye(len(table)))
        root = (vectors / np.sqrt(values)) @ vectors.T
        products = (root @ pulled) * rewards
        sums = np.where(np.abs(products) <= 0.5, products, 0.0).sum(axis=1)
        _ = table.T @ (root @ sums)
    return (process_time() - start) / repeats


if __name__ == "__main__":
    main()
