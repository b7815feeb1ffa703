"""More of `tests.optimizer.test_changes`, nightly."""

import numpy as np
import pytest

from noregret import Choice, Float, Int, Optimizer


@pytest.mark.parametrize("seed", range(4))
def test_noise_alone_recommends_the_baseline(seed):
    space = {"a": Int(16, 65536, log=True), "b": Int(4, 64), "c": Float(0, 1), "d": Float(0, 1)}
    baseline, rng = {"a": 128, "b": 4, "c": 0.5, "d": 0.5}, np.random.default_rng(seed)
    opt = Optimizer(space, goal="maximize", rng=seed, baseline=baseline)
    for answers in range(1, 31):
        opt.tell(opt.ask(), 800 * rng.lognormal(sigma=0.12))
        if answers in (3, 10, 20, 30):
            best = opt.best()
            assert best.params == baseline
            assert not opt.gain().is_shown
            if best.promising:
                name, before, *_ = best.promising
                said = "nothing is shown to be better than your settings; most promising: "
                assert str(opt.gain()).startswith(f"{said}{name} {before} -> ")
            else:
                assert str(opt.gain()) == "your settings are the best that is known"
    assert opt.best(fewest_changes=False).params != baseline


def test_of_fifteen_flags_hardly_more_than_the_three_that_matter_change():
    flags = {f"flag{i}": Choice([False, True]) for i in range(15)}
    off, counts = dict.fromkeys(flags, False), []
    for seed in range(2):
        opt, rng = Optimizer(flags, goal="maximize", rng=seed, baseline=off), np.random.default_rng(seed)
        for _ in range(60):
            trial = opt.ask()
            value = trial.params["flag2"] + 0.6 * trial.params["flag7"] + 0.4 * trial.params["flag11"]
            opt.tell(trial, value + 0.1 * rng.standard_normal())
        best = opt.best()
        assert best.params["flag2"] and best.params["flag7"] and best.params["flag11"]  # noqa: PT018
        counts.append(len(best.changes))
    assert sum(counts) <= 8, "three each, and one more"
