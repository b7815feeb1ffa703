"""Trials in processes, kept and found again."""

from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

from noregret import Pull, Trace, algorithms, problems
from noregret.belief.kernels import SquaredExponential
from noregret.experiments.trials import Trial, build, children, play_all


@dataclass(frozen=True)
class Dice:
    faces: int

    def play(self, arms, rng):
        while True:
            yield Pull(rng.integers(self.faces, size=1), None, np.arange(len(arms)))


class Toy:
    """The best arm depends on the problem's own stream."""

    name, kernel, facts = "toy", SquaredExponential(0.2), {"norm": 2.5, "alpha": 1.0}

    def __init__(self, rng):
        self.arms = np.linspace(0, 1, 6)[:, None]
        self.means = np.random.default_rng(rng).random(6)

    def rewards(self, arms, rng):
        return self.means[arms] + rng.standard_normal(len(arms))


def dice(problem):
    return Dice(6)


def trials(folder=None, count=3, horizon=40, names=("dice",)):
    seeds = children(np.random.SeedSequence(1), count)
    return [
        Trial(name, Toy, dice, horizon, seed, folder and folder / f"{name}{i}")
        for name in names
        for i, seed in enumerate(seeds)
    ]


def test_children_leave_the_seed_as_it_is():
    seed = np.random.SeedSequence(4, spawn_key=(1,))
    assert [child.spawn_key for child in children(seed, 2)] == [(1, 0), (1, 1)]
    assert seed.n_children_spawned == 0


def test_build_passes_on_what_the_builder_takes():
    seen = {}

    def builder(kernel, *, norm, horizon, delta=0.1, scale=1.0):
        seen.update(kernel=kernel, norm=norm, horizon=horizon, delta=delta, scale=scale)

    build(builder, Toy(0), 100, {"scale": 0.5, "order": 8})
    assert seen == {"kernel": Toy.kernel, "norm": 2.5, "horizon": 100, "delta": 0.1, "scale": 0.5}
    build(builder, Toy(0), 100, {"norm": 3.0, "horizon": 7})
    assert (seen["norm"], seen["horizon"]) == (3.0, 7)


def test_build_says_what_is_missing():
    def builder(kernel, *, norm, noise, moment):
        raise AssertionError

    with pytest.raises(ValueError, match="does not know noise, moment: pass a setting"):
        build(builder, Toy(0), 100)


def test_every_algorithm_is_built_from_facts():
    problem = Toy(0)
    problem.facts = {"norm": 1.5, "noise": 0.1, "alpha": 1.0, "moment": 2.0}
    for builder in algorithms.NAMES.values():
        assert hasattr(build(builder, problem, 50), "play")


def test_trials_of_two_algorithms_are_paired_and_trials_differ():
    by_name = play_all(trials(names=("one", "two")), jobs=1)
    assert list(by_name) == ["one", "two"]
    for one, two in zip(by_name["one"], by_name["two"], strict=True):
        assert (one.rewards == two.rewards).all()
    assert len({trace.rewards[0] for trace in by_name["one"]}) == 3


@pytest.mark.slow
def test_processes_change_nothing():
    igp_ucb = partial(build, algorithms.igp_ucb, horizon=30)
    seeds = children(np.random.SeedSequence(0), 3)
    make = [Trial("igp-ucb", problems.NAMES["rkhs-se"], igp_ucb, 30, seed) for seed in seeds]
    alone, together = play_all(make, jobs=1)["igp-ucb"], play_all(make, jobs=2)["igp-ucb"]
    for one, two in zip(alone, together, strict=True):
        assert (one.arms == two.arms).all()
        assert (one.rewards == two.rewards).all()


def test_kept_trials_are_not_run_again(tmp_path, monkeypatch):
    first = play_all(trials(tmp_path), jobs=1)["dice"]
    runs = []
    monkeypatch.setattr(Dice, "play", lambda *_: runs.append(1))
    again = play_all(trials(tmp_path), jobs=1)["dice"]
    assert not runs
    assert [t.rewards.tolist() for t in again] == [t.rewards.tolist() for t in first]


def test_unfinished_and_damaged_trials_are_run_again(tmp_path):
    first = play_all(trials(tmp_path), jobs=1)["dice"]
    (tmp_path / "dice0.json").unlink()
    (tmp_path / "dice1.npz").write_bytes(b"rubbish")
    again = play_all(trials(tmp_path), jobs=1)["dice"]
    assert [t.rewards.tolist() for t in again] == [t.rewards.tolist() for t in first]
    assert Trace.load(tmp_path / "dice1").rewards.tolist() == first[1].rewards.tolist()


def test_progress_counts_the_rounds_of_all_trials(tmp_path):
    calls = []
    play_all(trials(tmp_path, count=2), jobs=1, progress=calls.append)
    assert calls[-1] == 80
    play_all(trials(tmp_path, count=3), jobs=1, progress=calls.append)
    assert calls[-1] == 120
