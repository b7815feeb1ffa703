"""Verdicts on samples whose tails are known."""

import math

import numpy as np
import pytest

from noregret import diagnose
from noregret.cli import main
from noregret.diagnosis import _gaussian_p, _tail, read_rewards

SEEDS = range(20)
SHIFTS = np.linspace(-1, 1, 20)[:, None]


def found(draw, arms=20, rewards=150):
    """Diagnoses of 20 samples, each of 20 arms with means from -1 to 1."""
    return [diagnose(list(SHIFTS[:arms] + draw(np.random.default_rng(seed), (arms, rewards)))) for seed in SEEDS]


LIGHT = {
    "Gaussian": lambda rng, size: 0.3 * rng.standard_normal(size),
    "uniform": lambda rng, size: rng.random(size),
    "two values": lambda rng, size: rng.choice([-1.0, 1.0], size) + 0.1 * rng.standard_normal(size),
    "beta": lambda rng, size: rng.beta(2, 5, size),
}
HEAVY = {
    "Student-t 3": lambda rng, size: rng.standard_t(3, size),
    "Student-t 1.5": lambda rng, size: 5 * rng.standard_t(1.5, size),
    "Pareto 2": lambda rng, size: 0.5 * (1 + rng.pareto(2, size)),
    "spikes": lambda rng, size: (
        0.2 * rng.standard_normal(size) + 20 * rng.choice([-1, 0, 1], size, p=[0.01, 0.98, 0.01])
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("draw", LIGHT.values(), ids=LIGHT)
def test_light_tails_are_left_alone(draw):
    verdicts = found(draw)
    assert not any(d.heavy for d in verdicts)
    assert {d.alpha for d in verdicts} == {1.0}
    assert all("least squares" in str(d) for d in verdicts)


def test_arms_that_switch_between_two_values_are_not_heavy_however_far_apart_these_are():
    """In a fifth of them one value is rare, and so far out when measured by the quartiles; all are bounded."""
    rare = np.where(np.arange(20) % 5 == 0, 0.1, 0.5)[:, None]
    verdicts = found(lambda rng, size: 10.0 * (rng.random(size) < rare) + 0.1 * rng.standard_normal(size))
    assert not any(d.heavy for d in verdicts)
    assert all("not Gaussian, but their tails are not heavy" in str(d) for d in verdicts)


def test_one_wild_arm_is_enough():
    rng = np.random.default_rng(0)
    arms = [rng.normal(i, 1, 200) for i in range(20)]
    assert not diagnose(arms).heavy
    arms[7][3] = 40.0
    assert diagnose(arms).heavy


@pytest.mark.slow
@pytest.mark.parametrize("draw", HEAVY.values(), ids=HEAVY)
def test_heavy_tails_are_found(draw):
    verdicts = found(draw)
    assert sum(d.heavy for d in verdicts) >= 17
    assert all("truncation" in str(d) for d in verdicts if d.heavy)


@pytest.mark.slow
def test_exponential_tails_are_seldom_called_heavy_and_never_in_large_samples():
    """They have all moments; the Hill index alone would read about 3."""
    for draw in (lambda rng, size: rng.exponential(size=size), lambda rng, size: rng.laplace(size=size)):
        assert sum(d.heavy for d in found(draw)) <= 6
        large = found(draw, rewards=2000)
        assert sum(d.heavy for d in large) <= 1
        assert np.median([d.hill for d in large]) < 6 < np.median([d.index for d in large])


@pytest.mark.slow
@pytest.mark.parametrize(("dof", "alpha"), [(3.0, 1.0), (1.5, 0.45), (1.2, 0.18)])
def test_alpha_stays_below_the_tail_index(dof, alpha):
    """The suggestion is nine tenths of the way from the mean to the index; 0.25 off in the middle of 20 samples."""
    verdicts = found(lambda rng, size: rng.standard_t(dof, size), rewards=500)
    assert np.median([d.alpha for d in verdicts]) == pytest.approx(alpha, abs=0.12)
    inside = [d.interval[0] <= dof <= d.interval[1] for d in verdicts]
    assert sum(inside) >= 15


@pytest.mark.slow
@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0])
def test_the_moment_is_that_of_the_rewards_themselves(scale):
    """E y^2 = f^2 + the variance, at the arm with |f| = 1: within 35% for Student-t 3, where it is estimated low."""
    for draw, variance in ((lambda rng, size: rng.standard_normal(size), 1.0),
                           (lambda rng, size: rng.standard_t(3, size), 3.0)):  # fmt: skip
        verdicts = found(lambda rng, size, draw=draw: scale * draw(rng, size), rewards=500)
        moment = np.median([d.moment for d in verdicts if d.alpha == 1])
        assert 0.65 < moment / (1 + variance * scale**2) < 1.35


def test_the_moment_of_order_below_two():
    """E|y|^(1 + alpha) of Student-t 1.5 at the alpha that came out: low by a factor of at most 2.5."""
    for d in found(lambda rng, size: rng.standard_t(1.5, size), rewards=500):
        p = 1 + d.alpha
        if p < 1.4:
            tail = math.gamma((1.5 - p) / 2) / math.gamma(0.75) * 1.5 ** (p / 2)
            noise = tail * math.gamma((p + 1) / 2) / math.sqrt(math.pi)
            assert 0.4 < d.moment / (1 + noise) < 2


def test_the_noise_of_light_tails():
    assert all(d.noise == pytest.approx(0.3, rel=0.1) for d in found(LIGHT["Gaussian"]))


def test_hill_index_of_a_pure_power():
    """1 / index is an average of exponentials: 6 standard errors allowed."""
    sizes = 1 + np.random.default_rng(0).pareto(1.7, 20_000)
    hill, shape = _tail(sizes, 2000)
    assert hill == pytest.approx(1.7, abs=6 * 1.7 / math.sqrt(2000))
    assert shape == pytest.approx(1 / 1.7, abs=6 * math.sqrt((1 + 1 / 1.7**2) / 2000))


def test_p_values_of_gaussian_samples_are_those_of_chance():
    """Dallal and Wilkinson's formula is for p below 0.1: 2000 samples of 50, 5 standard errors."""
    rng = np.random.default_rng(0)
    p = np.array([_gaussian_p(rng.normal(3, 2, 50)) for _ in range(2000)])
    for level in (0.01, 0.05):
        assert np.mean(p < level) == pytest.approx(level, abs=5 * math.sqrt(level / 2000))


def test_absurd_rewards_are_taken():
    rewards = [np.append(np.random.default_rng(i).normal(i, 1, 100), 1e300 * (-1) ** i) for i in range(5)]
    assert diagnose(rewards).heavy


def test_arms_of_all_lengths_and_names():
    rng = np.random.default_rng(0)
    one = diagnose({"a": rng.standard_normal(300), "b": [0.5], "c": np.full(40, 7.0)})
    assert (one.arms, one.rewards, one.heavy) == (3, 341, False)
    assert one.moment == 49
    assert one.noise == pytest.approx(1.0, rel=0.1)
    many = diagnose(rng.standard_normal((200, 3)))  # too few rewards per arm for its own median: pooled
    assert many.rewards == 600
    assert not many.heavy


def test_in_words():
    text = str(found(HEAVY["Student-t 1.5"])[0])
    assert "3000 rewards of 20 arms." in text
    assert "The tails are heavy" in text
    assert "the variance does not seem to exist" in text
    assert "unsure" not in text
    assert "spikes rather than noise" in str(found(HEAVY["spikes"])[0])
    assert "With fewer than 500 rewards this is unsure." in str(diagnose([np.random.default_rng(0).normal(size=99)]))


@pytest.mark.parametrize(
    ("rewards", "message"),
    [
        ([[1.0, 2.0]], "at least 20 rewards are needed, got 2"),
        ([], "at least 20 rewards are needed, got 0"),
        (np.arange(30.0), "one array per arm, got numbers"),
        ([[1.0] * 30, [math.nan] * 30], "rewards of arm 1 must be finite"),
        ([[1.0] * 30, [2.0] * 30], "there is no noise to look at"),
        ([[1.0] * 19, np.arange(9.0)], "at least 20 rewards of arms with 8 or more are needed, got 9"),
    ],
)
def test_says_what_it_needs(rewards, message):
    with pytest.raises(ValueError, match=message):
        diagnose(rewards)


def test_reads_one_column_per_arm_or_one_row_per_reward(tmp_path):
    wide, long, text = tmp_path / "wide.csv", tmp_path / "long.csv", tmp_path / "text.csv"
    wide.write_text("row,day,a,b\n1,mon,1.5,2\n2,tue,2.5,\n3,wed,3.5,\n")
    assert {k: v.tolist() for k, v in read_rewards(wide).items()} == {"a": [1.5, 2.5, 3.5], "b": [2.0]}
    long.write_text("arm,when,reward\nx,1,0.5\ny,2,1\nx,3,0.25\n")
    assert {k: v.tolist() for k, v in read_rewards(long).items()} == {"x": [0.5, 0.25], "y": [1.0]}
    text.write_text("name\nfoo\n")
    with pytest.raises(ValueError, match="has no column of numbers"):
        read_rewards(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1\n2\n3\n", {"column1": [1, 2, 3]}),
        ("\n-1.5e3,2\n,3\n", {"column1": [-1500], "column2": [2, 3]}),
        ("7,0.5\n8,0.25\n", {"column2": [0.5, 0.25]}),  # the first column counts the rows
        ("0.5\n1,2\n", {"column1": [0.5, 1], "column2": [2]}),
        ("latency\n1\n2\n", {"latency": [1, 2]}),
        ("4,run\n1,2\n5,2\n", {"4": [1, 5], "run": [2, 2]}),
        ("0,1\n5,6\n3,4\n", {"0": [5, 3], "1": [6, 4]}),  # as pandas writes columns without names
        (",0,1\n0,5,6\n1,3,4\n", {"0": [5, 3], "1": [6, 4]}),
    ],
)
def test_a_first_line_of_numbers_is_data(tmp_path, text, found):
    file = tmp_path / "f.csv"
    file.write_text(text)
    assert {name: values.tolist() for name, values in read_rewards(file).items()} == found


def test_a_file_without_a_header_is_diagnosed_whole(tmp_path, capsys):
    file = tmp_path / "f.csv"
    file.write_text("".join(f"{i}\n" for i in range(1, 51)))
    assert main(["diagnose", str(file)]) == 0
    assert "50 rewards of 1 arm." in capsys.readouterr().out
    assert main(["diagnose", str(file), "--value", "latency"]) == 2
    assert "has no column 'latency': it has column1" in capsys.readouterr().err
    file.write_text("".join(f"{1 + i % 3},{i**0.5},{i**0.3}\n" for i in range(2, 62)))
    assert main(["diagnose", str(file)]) == 2
    assert "Say --value column3, or another one of column1, column2, column3" in capsys.readouterr().err
    assert main(["diagnose", str(file), "--value", "column3"]) == 0
    assert "60 rewards of 3 arms." in capsys.readouterr().out


def test_a_table_of_settings_and_values_is_read_by_setting(tmp_path):
    rng = np.random.default_rng(0)
    rows = [(i, size, mode, rng.normal()) for i in range(8) for size in (1, 2) for mode in "ab"]
    table = tmp_path / "t.csv"
    table.write_text("".join(["time,size,mode,value\n", *(f"{rng.random()},{s},{m},{v}\n" for _, s, m, v in rows)]))
    found = read_rewards(table)
    assert list(found) == ["size=1, mode=a", "size=1, mode=b", "size=2, mode=a", "size=2, mode=b"]
    assert found["size=2, mode=a"].tolist() == [v for _, s, m, v in rows if (s, m) == (2, "a")]
    exported = tmp_path / "e.csv"
    exported.write_text(
        "trial,state,value,noise,n,started,seconds\n" + "0,done,1.5,,2,,\n1,failed,,,2,,\n2,done,1,,2,,\n" * 2
    )
    assert {name: values.tolist() for name, values in read_rewards(exported).items()} == {"n=2": [1.5, 1, 1.5, 1]}


def test_which_column_is_the_value_is_asked_when_nobody_can_know(tmp_path, capsys):
    file, rng = tmp_path / "t.csv", np.random.default_rng(0)
    file.write_text(
        "".join(["size,latency,cost\n", *(f"{1 + i % 3},{rng.normal()},{rng.normal()}\n" for i in range(60))])
    )
    assert main(["diagnose", str(file)]) == 2
    asked = capsys.readouterr().err
    assert "which column is the value? size looks like settings. Say --value cost" in asked
    assert "or another one of size, latency, cost; or --arms" in asked
    for advice, arms in ((["--value", "cost"], 3), (["--value", "latency"], 3), (["--arms"], 3)):
        assert main(["diagnose", str(file), *advice]) == 0
        assert f"of {arms} arms" in capsys.readouterr().out
    assert main(["diagnose", str(file), "--value", "speed"]) == 2
    assert "has no column 'speed': it has size, latency, cost" in capsys.readouterr().err


def test_on_the_command_line(tmp_path, capsys):
    file, rng = tmp_path / "latency.csv", np.random.default_rng(0)
    np.savetxt(file, 5 + rng.standard_t(1.5, (200, 4)), delimiter=",", header="a,b,c,d", comments="")
    assert main(["diagnose", str(file)]) == 0
    assert "800 rewards of 4 arms." in (said := capsys.readouterr().out)
    assert "The tails are heavy" in said
    file.write_text("a,b\n1,2\n")
    assert main(["diagnose", str(file)]) == 2
    assert "noregret: at least 20 rewards are needed, got 2" in capsys.readouterr().err
    assert main(["diagnose", str(tmp_path / "none.csv")]) == 2
    assert "none.csv" in capsys.readouterr().err
