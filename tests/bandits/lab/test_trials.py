"""Trials in processes, kept and found again."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from noregret import Pull, Trace, algorithms, problems
from noregret.bandits.lab.trials import Engine, Task, Work, build, children, played
from noregret.gp.kernels import SquaredExponential


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


def trials(names=("dice",)):
    seeds = children(np.random.SeedSequence(1), 3)
    return [
        Task(name, Path(f"{name}{i}"), partial(played, Toy, dice, 40, seed))
        for name in names
        for i, seed in enumerate(seeds)
    ]


def play_all(tasks, folder, jobs=1):
    """Results by label, the messages, and the number of trials that were run."""
    said, done = [], []
    work = Work(tasks, folder, said.append)
    work.run(Engine(jobs), lambda: done.append(1))
    (results,) = work.results().values()
    return results, said, len(done)


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


def test_trials_of_two_algorithms_are_paired_and_trials_differ(tmp_path):
    by_name, _, _ = play_all(trials(("one", "two")), tmp_path)
    assert list(by_name) == ["one", "two"]
    for one, two in zip(by_name["one"], by_name["two"], strict=True):
        assert (one.rewards == two.rewards).all()
    assert len({trace.rewards[0] for trace in by_name["one"]}) == 3


@pytest.mark.slow
def test_processes_change_nothing(tmp_path):
    igp_ucb = partial(build, algorithms.igp_ucb, horizon=30)
    seeds = children(np.random.SeedSequence(0), 3)
    make = [
        Task("igp-ucb", Path(f"{i}"), partial(played, problems.NAMES["rkhs-se"], igp_ucb, 30, seed))
        for i, seed in enumerate(seeds)
    ]
    alone, together = (play_all(make, tmp_path / str(jobs), jobs)[0]["igp-ucb"] for jobs in (1, 2))
    for one, two in zip(alone, together, strict=True):
        assert (one.arms == two.arms).all()
        assert (one.rewards == two.rewards).all()


def test_kept_trials_are_not_run_again(tmp_path, monkeypatch):
    first, _, ran = play_all(trials(), tmp_path)
    assert ran == 3
    monkeypatch.setattr(Dice, "play", None)
    again, _, ran = play_all(trials(), tmp_path)
    assert ran == 0
    assert [t.rewards.tolist() for t in again["dice"]] == [t.rewards.tolist() for t in first["dice"]]


def test_unfinished_and_damaged_trials_are_run_again(tmp_path):
    first = play_all(trials(), tmp_path)[0]["dice"]
    (tmp_path / "dice0.json").unlink()
    (tmp_path / "dice1.npz").write_bytes(b"rubbish")
    again, said, ran = play_all(trials(), tmp_path)
    assert ran == 2
    assert len(said) == 1
    assert "dice1.npz is damaged" in said[0]
    assert [t.rewards.tolist() for t in again["dice"]] == [t.rewards.tolist() for t in first]
    assert Trace.load(tmp_path / "dice1").rewards.tolist() == first[1].rewards.tolist()
