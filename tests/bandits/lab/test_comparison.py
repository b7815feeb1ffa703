"""compare: paired runs, a table with intervals, a picture."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

from noregret import Pull, Ranking, Trace, algorithms, compare, problems, run
from noregret.bandits.lab.trace import Interval, mean_interval

PROBLEM = problems.NAMES["rkhs-se"](rng=0)
FAST = {
    "amm": algorithms.amm_ucb(PROBLEM.kernel, norm=PROBLEM.norm, noise=0.1),
    "chance": algorithms.random(PROBLEM.kernel),
}


def trace(regret, simple=0.0):
    regret = np.asarray(regret, dtype=float)
    return Trace(
        np.zeros(len(regret), int), -regret, regret, 1.0, "mine", "toy", {}, simple_regret=np.full(len(regret), simple)
    )


def test_the_runs_are_those_of_the_seeds():
    traces = compare(FAST, PROBLEM, 30, seeds=3).traces
    assert list(traces) == ["amm", "chance"]
    for name, algorithm in FAST.items():
        for seed, trace in enumerate(traces[name]):
            assert (trace.rewards == run(algorithm, PROBLEM, 30, rng=seed).rewards).all()


def test_algorithms_meet_the_same_noise_seed_by_seed():
    traces = compare(FAST, PROBLEM, 30, seeds=[5, 9]).traces
    noise = {name: [t.rewards - PROBLEM.means[t.arms] for t in traces[name]] for name in traces}
    np.testing.assert_allclose(noise["amm"], noise["chance"], atol=1e-12)
    assert abs(noise["amm"][0] - noise["amm"][1]).max() > 0.01


def test_rows_by_hand():
    """Regrets 4, 6, 8 and 5, 9, 10: the differences are 1, 3, 2."""
    comparison = Ranking(
        {
            "slow": [trace([2, 3], 0.1), trace([4, 5], 0.2), trace([5, 5], 0.6)],
            "quick": [trace([2, 2]), trace([3, 3]), trace([4, 4])],
        }
    )
    best, other = comparison.rows
    t = stats.t.ppf(0.975, 2)
    assert (best.algorithm, other.algorithm) == ("quick", "slow")
    assert best.regret == pytest.approx((6, 6 - t * 2 / math.sqrt(3), 6 + t * 2 / math.sqrt(3)))
    assert best.behind == (0, 0, 0)
    assert other.behind == pytest.approx((2, 2 - t / math.sqrt(3), 2 + t / math.sqrt(3)))
    assert other.simple_regret.value == pytest.approx(0.3)
    assert str(comparison).splitlines() == [
        "algorithm  regret          more than quick   simple regret",
        "quick      6 [1.03, 11]    -                 0 [0, 0]",
        "slow       8 [1.43, 14.6]  2 [-0.484, 4.48]  0.3 [-0.357, 0.957]",
        "3 seeds of 2 rounds on toy, means and 95% intervals",
    ]
    assert repr(comparison) == str(comparison)


def test_a_pair_of_close_algorithms_is_told_apart_by_pairing():
    """If a seed's effect of +-100 is shared, a difference of 1 +- 0.1 is significant."""
    luck, rng = np.random.default_rng(0).normal(0, 100, 20), np.random.default_rng(1)
    rows = Ranking(
        {"a": [trace([x]) for x in luck], "b": [trace([x + 1 + 0.1 * rng.standard_normal()]) for x in luck]}
    ).rows
    assert rows[1].behind.low > 0.9
    assert rows[1].regret.low < rows[0].regret.value


def test_one_seed_has_no_interval():
    assert mean_interval([3.0]) == Interval(3.0, -math.inf, math.inf)
    assert "[" not in str(compare(FAST, PROBLEM, 20, seeds=1))


def test_names_stand_for_builders_and_reprs_for_names():
    table = str(compare(["amm-ucb", "random"], PROBLEM, 20, seeds=2))
    assert "amm-ucb" in table
    assert "random" in table
    comparison = compare(FAST.values(), PROBLEM, 20, seeds=2)
    assert list(comparison.traces) == [repr(algorithm) for algorithm in FAST.values()]
    names = [line.split("  ")[0] for line in str(comparison).splitlines()[1:3]]
    assert len(set(names)) == 2  # though both reprs begin the same
    assert max(map(len, names)) <= 42


@dataclass(frozen=True)
class Mute:
    """An algorithm without bounds."""

    def play(self, arms, rng):
        while True:
            yield Pull(rng.integers(len(arms), size=1), None, np.arange(len(arms)))


def test_who_recommends_nothing_gets_a_dash():
    assert str(compare([Mute()], PROBLEM, 20, seeds=2)).splitlines()[1].split()[-2:] == ["-", "-"]


@pytest.mark.parametrize(
    ("given", "seeds", "message"),
    [
        ([], 3, r"^at least one algorithm and one seed must be given, got 0 and 3$"),
        (FAST, 0, r"^at least one algorithm and one seed must be given, got 2 and 0$"),
        (
            ["amm-ucb", "amm-ucb"],
            2,
            r"^algorithms must have different names, got 'amm-ucb' twice: pass a dict of names$",
        ),
        (["ucb"], 2, r"^unknown algorithm 'ucb': the names are .*igp-ucb"),
        ({"mine": 3}, 2, r"^an algorithm must be such as algorithms.igp_ucb\(kernel\), or its name, got 3$"),
    ],
    ids=["no algorithm", "no seed", "twice", "unknown", "a number"],
)
def test_what_cannot_be_compared(given, seeds, message):
    with pytest.raises(ValueError, match=message):
        compare(given, PROBLEM, 20, seeds=seeds)


def test_names_twice_are_told_apart_as_the_message_says():
    assert len(compare({"one": "random", "two": "random"}, PROBLEM, 20, seeds=2).rows) == 2


@pytest.mark.slow
def test_the_picture_shows_both_regrets(tmp_path):
    figure = compare(FAST, PROBLEM, 40, seeds=2).plot(tmp_path / "regret.png")
    assert (tmp_path / "regret.png").stat().st_size > 10_000
    assert [ax.get_ylabel() for ax in figure.axes] == ["cumulative regret", "simple regret"]
    assert {text.get_text() for text in figure.axes[1].get_legend().get_texts()} == set(FAST)
