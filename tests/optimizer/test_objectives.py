"""Several objectives: the expected hypervolume improvement, the front, and the Optimizer with goals."""

import copy
from itertools import product

import numpy as np
import pytest

from noregret import Choice, Float, Int, Optimizer
from noregret.optimizer import Replay
from noregret.optimizer.model.objectives import hypervolume, is_dominated, nondominated
from noregret.optimizer.questions.objectives import HypervolumeImprovement, Scalarisation, boxes, ends

GOALS = {"latency": "minimize", "cost": "minimize"}


ROWS = [{"x": i / 39} for i in range(40)]


def filled(answers=16, seed=0, **options):
    """An optimizer of a table of 40 rows, between whose objectives there are compromises, with noisy values."""
    opt, rng = Optimizer(ROWS, goals=GOALS, rng=seed, **options), np.random.default_rng(seed)
    for count in range(answers):
        params = ROWS[17 * count % 40]
        constraints = {"memory": params["x"]} if "constraints" in options else None
        context = {"load": 0.5} if "context" in options else None
        opt.tell(params, measured(params, rng), constraints=constraints, context=context)
    return opt


@pytest.fixture(scope="module")
def known():
    """An optimizer after 60 answers; no test changes it."""
    return filled(60)


def measured(params, rng, noise=0.03):
    x = params["x"]
    latency, cost = (x - 0.3) ** 2, (x - 0.7) ** 2
    return {"latency": latency + noise * rng.standard_normal(), "cost": 1 + cost + noise * rng.standard_normal()}


def points_of(rng, count, objectives):
    return rng.random((count, objectives))


@pytest.mark.parametrize("objectives", [2, 3, 4])
def test_nondominated_rows_are_those_that_no_other_dominates(objectives):
    values = np.random.default_rng(objectives).integers(0, 4, (60, objectives)).astype(float)
    beaten = [any((b >= a).all() and (b > a).any() for b in values) for a in values]
    assert np.array_equal(is_dominated(values, values), beaten)
    found = nondominated(values)
    assert {tuple(row) for row in values[found]} == {tuple(row) for row in values[~np.array(beaten)]}
    assert len(found) == len({tuple(row) for row in values[found]}), "of equal rows one is kept"


@pytest.mark.parametrize("objectives", [2, 3, 4])
def test_hypervolume_is_the_share_of_random_points_below_the_front(objectives):
    rng = np.random.default_rng(0)
    front, drawn = points_of(rng, 8, objectives), points_of(rng, 20_000, objectives)
    share = np.mean(is_dominated(drawn, front))
    assert hypervolume(front, np.zeros(objectives)) == pytest.approx(share, abs=0.015)
    assert hypervolume(front, np.ones(objectives)) == 0, "nothing is above the reference"


@pytest.mark.parametrize("objectives", [2, 3])
def test_boxes_are_disjoint_and_hold_what_the_front_does_not_dominate(objectives):
    ranks = np.random.default_rng(1).integers(1, 5, (6, objectives))
    found = list(boxes(ranks, [6] * objectives))
    for cell in product(range(6), repeat=objectives):
        inside = [all(low <= c < high for c, (low, high) in zip(cell, box, strict=True)) for box in found]
        dominated = (ranks > cell).all(axis=1).any()
        assert sum(inside) == (not dominated), cell


@pytest.mark.parametrize("objectives", [2, 3])
def test_expected_improvement_is_that_of_draws(objectives):
    """With slopes that differ from node to node, as those of a logarithm do."""
    rng = np.random.default_rng(2)
    front = np.sort(rng.random((4, objectives)), axis=0)
    front[:, -1] = front[::-1, -1]
    front = front[nondominated(front)]
    nodes = [np.append(np.unique([-0.1, *column]), 1.5) for column in front.T]
    slopes = [rng.uniform(0.5, 2.0, len(each)) for each in nodes]
    ranks = np.column_stack([np.searchsorted(its, column) for its, column in zip(nodes, front.T, strict=True)])
    rule = HypervolumeImprovement(tuple(nodes), tuple(slopes), np.array(list(boxes(ranks, [*map(len, nodes)]))))
    mean, std = rng.uniform(0, 1, (3, objectives)), rng.uniform(0.1, 0.4, (3, objectives))

    def values(numbers):
        """Piecewise linear, 0 at the reference."""
        columns = []
        for column, its, each in zip(numbers.T, nodes, slopes, strict=True):
            ends = np.append(its, 50.0)
            columns.append(np.interp(column, ends, np.concatenate([[0.0], np.cumsum(np.diff(ends) * each)])))
        return np.column_stack(columns)

    known, zero = values(front), np.zeros(objectives)
    for m, s, score in zip(mean, std, rule(mean, std), strict=True):
        drawn = values(m + s * rng.standard_normal((400, objectives)))
        before = hypervolume(known, zero)
        gains = [hypervolume(np.vstack([known, row]), zero) - before for row in drawn]
        assert np.exp(score) == pytest.approx(np.mean(gains), abs=5 * np.std(gains) / np.sqrt(len(gains)) + 1e-4)


def test_an_advantage_within_its_doubt_does_not_span_the_front():
    mean = np.array([[1.0, 0.0], [0.0, 1.0], [1.05, -9.0], [1.5, -2.0]])
    std = np.full((4, 2), 0.1)
    assert ends(mean, std).tolist() == [[1.0, 0.0], [0.0, 1.0], [1.5, -2.0]]
    assert ends(mean, 0 * std).tolist() == mean[[0, 1, 3]].tolist()  # 1.05 is dominated by 1.5 without any doubt
    assert ends(mean[:3], 0 * std[:3]).tolist() == mean[:3].tolist()


def test_far_below_the_front_scores_still_differ():
    rule = HypervolumeImprovement((np.array([0.0, 1.0]),) * 2, (np.ones(2),) * 2, np.array([[[1, 2], [0, 2]]]))
    near, far = rule(np.array([[-30.0, 0.0], [-40.0, 0.0]]), np.full((2, 2), 0.5))
    assert np.isfinite([near, far]).all()
    assert near > far


def test_a_scalarisation_prefers_what_is_better_in_all_objectives():
    rng = np.random.default_rng(0)
    rule = Scalarisation.random(np.zeros(4), np.ones(4), rng.random((10, 4)), rng)
    better, worse = rule(np.array([[0.9] * 4, [0.2] * 4]), np.full((2, 4), 0.1))
    assert better > worse


def test_the_front_has_the_compromises_and_no_others(known):
    opt = known
    found = [its.params["x"] for its in opt.front()]
    assert all(0.15 < x < 0.85 for x in found)
    assert min(found) < 0.4 < 0.6 < max(found)
    for its in opt.front():
        assert set(its.values) == set(its.lower) == set(its.upper) == set(GOALS)
        assert all(its.lower[name] <= its.values[name] <= its.upper[name] for name in GOALS)
        assert 0 <= its.probability <= 1
    outside = opt.predict({"x": 0.0})
    assert outside.probability < 0.05
    assert outside.values["latency"] == pytest.approx(0.09, abs=0.08)


def test_one_lucky_observation_puts_nothing_on_the_front():
    rows, rng = [{"x": i} for i in "abcdefgh"], np.random.default_rng(0)
    opt = Optimizer({"x": Choice(list("abcdefgh"))}, goals=GOALS, rng=0)
    for repeat in range(6):
        for level, row in enumerate(rows):
            opt.tell(row, {"latency": level + 0.1 * rng.standard_normal(), "cost": level + 0.1 * rng.standard_normal()})
        if repeat == 2:
            opt.tell(rows[7], {"latency": -50.0, "cost": 7.0})
    assert [its.params["x"] for its in opt.front()] == ["a"]


def test_best_needs_limits_or_weights_and_picks_from_the_front(known):
    opt = known
    with pytest.raises(ValueError, match=r"limits=.*weights="):
        opt.best()
    cheap = opt.best(limits={"cost": ("<=", 1.05)})
    fast = opt.best(limits={"cost": ("<=", 1.5)})
    assert cheap.params["x"] > fast.params["x"]
    assert cheap.values["cost"] <= 1.05
    thrifty, hasty = (opt.best(weights={"latency": a, "cost": 51 - a}) for a in (1, 50))
    assert thrifty.params["x"] > hasty.params["x"]
    assert cheap.params in [its.params for its in opt.front()]
    never = opt.best(limits={"cost": ("<=", -5)})
    assert never.is_likeliest
    assert "comes nearest" in repr(never)
    for bad, words in [
        ({"weights": {"memory": 1}}, "unknown objective 'memory'"),
        ({"weights": {"cost": -1}}, "numbers from 0"),
        ({"limits": {"cost": (">=", 1)}}, "must be <= a number"),
        ({"limits": {"cost": 3}}, "must be"),
        ({"limits": 3}, "limits must be a dict"),
        ({"fewest_changes": True}, "for one objective"),
    ]:
        with pytest.raises(ValueError, match=words):
            opt.best(**bad)


def test_hypervolume_has_an_interval_and_shrinks_with_the_reference(known):
    opt = known
    near, far = opt.hypervolume({"latency": 0.3, "cost": 1.3}), opt.hypervolume({"latency": 1.0, "cost": 2.0})
    assert near.lower <= near.estimate <= near.upper < far.lower
    every = np.array([[-((x - 0.3) ** 2), -1 - (x - 0.7) ** 2] for x in np.linspace(0, 1, 40)])
    truth = hypervolume(every, np.array([-0.3, -1.3]))
    assert near.lower - 0.005 <= truth <= near.upper + 0.005, "and the recommended settings miss a little of it"
    assert set(opt.hypervolume().reference) == set(GOALS)
    with pytest.raises(ValueError, match="reference must be a dict with a number for each"):
        opt.hypervolume({"latency": 1})


def test_goals_and_values_are_checked():
    space = {"x": Float(0, 1)}
    with pytest.raises(ValueError, match="give one"):
        Optimizer(space, goal="minimize", goals=GOALS)
    for bad in (
        {"latency": "minimize"},
        {},
        "latency",
        {"a": "minimize", "b": "least"},
        {1: "maximize", "b": "maximize"},
    ):
        with pytest.raises(ValueError, match="goal"):
            Optimizer(space, goals=bad)
    opt = Optimizer(space, goals=GOALS, rng=0)
    trial = opt.ask()
    for bad, words in [
        (3.0, "value must be a dict"),
        ({}, "at least one"),
        ({"latency": None}, "at least one"),
        ({"latency": float("nan")}, "finite number"),
        ({"speed": 1.0}, "'latency' is missing; 'speed' would only be tracked"),
    ]:
        with pytest.raises(ValueError, match=words):
            opt.tell(trial, bad)
    with pytest.raises(ValueError, match="noise"):
        opt.tell(trial, {"latency": 1.0}, noise=0.1)
    assert not opt.answers, "bad values change nothing"
    opt.tell(trial, {"latency": 1.0})
    opt.tell({"x": 0.5}, {"latency": 2.0})
    with pytest.raises(ValueError, match="at least 2 values of objective 'cost'"):
        opt.front()
    opt.ask()
    with pytest.raises(ValueError, match="one objective"):
        opt.done(within=0.1)
    plain = Optimizer(space, rng=0)
    for ask in (plain.front, plain.hypervolume, lambda: plain.best(limits={})):
        with pytest.raises(ValueError, match="several objectives"):
            ask()


def test_values_that_were_not_measured_may_be_missing():
    opt, rng = filled(0), np.random.default_rng(0)
    for count in range(12):
        trial = opt.ask()
        told = measured(trial.params, rng)
        opt.tell(trial, told if count % 3 else {"latency": told["latency"]})
    opt.fail(opt.ask())
    assert opt.front()
    frame = opt.to_frame()
    assert list(frame.columns) == ["trial", "state", "value.latency", "value.cost", "x", "started", "seconds"]
    assert frame["value.cost"].isna().sum() == 5
    assert opt.answers[0].values.keys() == {"latency"}
    assert opt.answers[-1].value is None
    twin = filled(0)
    twin.tell_many(frame)
    assert [a.values for a in twin.answers] == [a.values for a in opt.answers]
    assert [m.value for m in twin.measurements][:2] == [opt.answers[0].values, opt.answers[1].values]
    with pytest.raises(ValueError, match="row 0 of the frame: it has no value"):
        twin.tell_many([{"x": 0.0}])


def test_a_saved_optimizer_and_a_copy_ask_the_same(tmp_path):
    opt = filled(18)
    opt.ask()
    opt.save(tmp_path / "opt.json")
    loaded, twin = Optimizer.load(tmp_path / "opt.json"), copy.copy(opt)
    assert loaded.goals == GOALS
    assert loaded.goal is None
    asked = opt.ask().params
    assert loaded.ask().params == asked == twin.ask().params
    assert [its.params for its in loaded.front()] == [its.params for its in opt.front()]
    replayed = Replay(ROWS, None, 0, goals=GOALS)([its for its in opt.trials if its.is_finished])
    assert replayed.answers == opt.answers


def test_the_gain_is_told_for_each_objective():
    opt = filled(40, baseline={"x": 0.0})
    gains = opt.gain()
    assert gains.is_better
    assert str(gains).startswith("better in both: latency ")
    assert 0 < gains["latency"].lower < gains["latency"].estimate
    other = opt.gain(weights={"latency": 1, "cost": 0.001})
    assert other["latency"].estimate > gains["latency"].estimate - 0.02
    at_best = filled(40, baseline=ROWS[19])
    assert not at_best.gain().is_better, "nothing is better than a setting of the front in both"


def test_it_is_shown_in_one_line_and_as_html(known):
    opt = known
    assert "minimize latency, minimize cost over x" in repr(opt)
    assert "on the front" in repr(opt)
    assert "<table" in opt._repr_html_()
    assert "latency" in opt._repr_html_()
    assert "JointEstimate: latency" in repr(opt.front()[0])
    assert "<Optimizer" in repr(Optimizer({"x": Float(0, 1)}, goals=GOALS))


def test_the_front_is_drawn(known):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    opt = known
    ax = opt.plot.front()
    assert ax.get_xlabel() == "latency (minimize)"
    with pytest.raises(ValueError, match="names of objectives"):
        opt.plot.front(x="speed")
    with pytest.raises(ValueError, match="use front"):
        opt.plot.history()
    matplotlib.pyplot.close("all")


@pytest.mark.slow
def test_constraints_contexts_conditions_batches_and_failures_work_with_it():
    constrained = filled(40, constraints={"memory": ("<=", 0.5)})
    assert all(its.params["x"] <= 0.55 and its.feasible >= 0.9 for its in constrained.front())
    contextual = filled(40, context={"load": Float(0, 1)})
    assert contextual.front(context={"load": 0.5})
    space = {"kind": Choice(["a", "b"]), "depth": Int(1, 8, when={"kind": "a"}), "x": Float(0, 1), "y": Float(0, 1)}
    opt = Optimizer(space, goals=GOALS | {"size": "maximize"}, rng=0, require=["x <= y"])
    for _ in range(4):
        for number, trial in enumerate(opt.ask(5)):
            x, y, depth = trial.params["x"], trial.params["y"], trial.params.get("depth", 4)
            assert x <= y
            if number == 4:
                opt.fail(trial)
            else:
                opt.tell(trial, {"latency": x + depth, "cost": 1 - x + y, "size": -((y - 0.5) ** 2) - depth / 10})
    contextual.ask(context={"load": 0.2})
    assert len({tuple(trial.params.items()) for trial in opt.ask(4)}) == 4, "pending settings are not asked for again"
    assert all(its.params["x"] <= its.params["y"] for its in opt.front())
    assert set(opt.importance()) == {"latency", "cost", "size"}


@pytest.mark.slow
def test_trials_that_are_pending_are_not_on_the_front():
    opt, rng = Optimizer({"x": Float(0, 1)}, goals=GOALS, rng=0), np.random.default_rng(0)
    for _ in range(8):
        trial = opt.ask()
        opt.tell(trial, measured(trial.params, rng))
    front = opt.front()
    opt.ask(6)
    assert opt.front() == front


def test_a_bad_limit_is_called_a_limit(known):
    with pytest.raises(ValueError, match=r"limit 'cost' must be \('<=', bound\)"):
        known.best(limits={"cost": 1})


def test_several_objectives_can_be_predicted_where_costs_are_known():
    opt = Optimizer({"x": Float(0, 1)}, goals={"a": "minimize", "b": "minimize"}, rng=0)
    for x in (0.1, 0.4, 0.5, 0.7, 0.9):
        opt.tell({"x": x}, {"a": x, "b": 1 - x}, cost=1 + x)
    assert set(opt.predict({"x": 0.3}).values) == {"a", "b"}


def test_four_objectives_of_a_table_are_scalarised():
    """More than three have no hypervolume; every row is a compromise (with floats: nightly)."""
    rows = [{"x": i / 3, "y": j / 3} for i in range(4) for j in range(4)]
    opt, asked = Optimizer(rows, goals=dict.fromkeys("abcd", "minimize"), rng=0), []
    for _ in range(14):
        trial = opt.ask()
        x, y = trial.params["x"], trial.params["y"]
        asked.append((x, y))
        opt.tell(trial, {"a": x, "b": 1 - x, "c": y, "d": 1 - y})
    assert len(set(asked[:10])) == 10, "before the first fit"
    assert len(set(asked[10:])) > 1, "weights are drawn for each question"
    assert len(opt.front()) == 16
