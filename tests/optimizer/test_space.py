"""Spaces: params to points of the unit cube and back."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from noregret import Choice, Float, Int
from noregret.optimizer import axis_of
from noregret.optimizer.model.candidates import sobol, spread_out
from noregret.optimizer.space.space import ParameterSpace
from noregret.optimizer.space.table import CandidateTable, as_space

FINITE = st.floats(-1e6, 1e6)
POSITIVE = st.floats(1e-6, 1e6)


@given(st.tuples(FINITE, FINITE).map(sorted), st.floats(0, 1))
def test_a_float_comes_back_from_its_coordinate(bounds, u):
    parameter = Float(*bounds)
    value = axis_of(parameter).decode(np.array([[u]]))[0]
    assert bounds[0] <= value <= bounds[1]
    assert axis_of(parameter).decode(axis_of(parameter).encode([value]))[0] == pytest.approx(value, rel=1e-9, abs=1e-9)


@given(st.tuples(POSITIVE, POSITIVE).map(sorted), st.floats(0, 1))
def test_a_log_float_covers_its_range_evenly_in_size(bounds, u):
    low, high = bounds
    assume(low == high or math.log(low) < math.log(high))
    value = axis_of(Float(low, high, log=True)).decode(np.array([[u]]))[0]
    assert low <= value <= high
    assert math.log(value) == pytest.approx((1 - u) * math.log(low) + u * math.log(high), abs=1e-6)


@given(st.integers(-1000, 1000), st.integers(0, 500), st.data())
def test_an_int_comes_back_exactly(low, size, data):
    parameter = Int(low, low + size)
    value = data.draw(st.integers(low, low + size))
    assert axis_of(parameter).decode(axis_of(parameter).encode([value])) == [value]


@given(st.integers(1, 1000), st.integers(0, 100_000), st.data())
def test_a_log_int_comes_back_exactly(low, size, data):
    parameter = Int(low, low + size, log=True)
    value = data.draw(st.integers(low, low + size))
    assert axis_of(parameter).decode(axis_of(parameter).encode([value])) == [value]


def test_every_int_gets_the_same_share_of_the_cube():
    values = axis_of(Int(1, 5)).decode(np.linspace(0, 1, 10_001)[:, None])
    assert np.bincount(values)[1:] == pytest.approx(2000, abs=2)


@pytest.mark.parametrize("parameter", [Float(-2, 3), Float(1e-3, 5, log=True), Int(-2, 9), Int(1, 900, log=True)])
def test_the_ends_are_reached_exactly(parameter):
    assert axis_of(parameter).decode(np.array([[0.0], [1.0]])) == [parameter.low, parameter.high]
    assert axis_of(parameter).encode([parameter.low, parameter.high]).tolist() == [[0.0], [1.0]]


def test_any_two_options_are_equally_far_apart():
    points = axis_of(Choice(["a", "b", "c", "d"])).encode(["a", "b", "c", "d"])
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    assert distances[~np.eye(4, dtype=bool)] == pytest.approx(1.0)
    assert axis_of(Choice(["a", "b"])).encode(["a", "b"]).tolist() == [[0.0], [1.0]]


def test_options_of_any_kind_come_back_as_they_are():
    options = [None, "x", 3, 2.5, True, ("a", 1), [1, 2]]
    choice = Choice(options)
    assert axis_of(choice).decode(axis_of(choice).encode(options)) == options


def test_snapping_is_encoding_what_is_decoded():
    space = ParameterSpace({"f": Float(1, 2), "i": Int(0, 7), "l": Int(1, 99, log=True), "c": Choice(["abc", 1, 2])})
    points = np.random.default_rng(0).random((200, len(space.groups)))
    assert space.snap(points) == pytest.approx(space.encode(space.decode(points)), abs=1e-12)


def test_coordinates_of_one_parameter_share_a_lengthscale():
    space = ParameterSpace({"a": Float(0, 1), "b": Choice([1, 2, 3]), "c": Choice([1, 2]), "d": Int(0, 1)})
    assert space.groups == (0, 1, 1, 1, 2, 3)


def test_everything_there_is():
    space = ParameterSpace({"a": Int(0, 2), "b": Choice(["v", "w"]), "c": Int(1, 4, log=True)})
    points = space.everything()
    assert len(points) == space.count == 3 * 2 * 4
    assert len({tuple(p.values()) for p in space.decode(points)}) == 24
    assert math.isinf(ParameterSpace({"a": Float(0, 1), "b": Int(0, 1)}).count)


def test_a_parameter_may_be_held_fixed():
    space = ParameterSpace({"a": Float(2, 2), "b": Int(3, 3), "c": Choice(["only"]), "d": Float(0, 1)})
    assert space.decode(np.full((1, 4), 0.7)) == [{"a": 2, "b": 3, "c": "only", "d": 0.7}]


class Undecided:
    """Like pandas.NA: not to be compared."""

    __hash__ = object.__hash__

    def __ne__(self, other):
        raise TypeError("boolean value of NA is ambiguous")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Float(2, 1), "low must not be above high, got 2 and 1"),
        (lambda: Float(0, math.inf), "finite"),
        (lambda: Float(-1e308, 1e308), "too wide"),
        (lambda: Float(0, 1, log=True), "above 0 on a log scale, got 0"),
        (lambda: Float("a", 1), "finite numbers, got 'a'"),
        (lambda: Float(0, 10**400), "finite numbers, got 0 and 10"),
        (lambda: Int(0, 1.5), "whole numbers, got 0 and 1.5"),
        (lambda: Int(5, 1), "swap them"),
        (lambda: Int(2**53 + 1, 2**53 + 9), "must be from .* where floating point is exact, got 9007199254740993 and"),
        (lambda: Int(10**18, 10**18 + 1000), "tune an offset or a multiple instead"),
        (lambda: Int(-(2**53) - 1, 0), r"-2\*\*53 to 2\*\*53"),
        (lambda: Int(2**53 - 5, 2**53, log=True), "too narrow for a log scale: leave log out"),
        (lambda: Int(0, 10, step=10**30), "high must be low plus a whole number of steps"),
        (lambda: Choice([]), "at least one"),
        (lambda: Choice("abc"), "must be a list, got 'abc'"),
        (lambda: Choice(5), "must be a list, got 5"),
        (lambda: Choice({"a"}), "must be a list, got {'a'}"),
        (lambda: Choice([[1], [2], [1]]), r"\[1\] twice"),
        (lambda: Choice(["a", "b", "a"]), "'a' twice"),
        (lambda: Choice(range(10_000)), "at most 1000, got 10000: drop some"),
        (lambda: as_space({}), "at least one parameter"),
        (
            lambda: as_space({f"c{i}": Choice(range(1000)) for i in range(22)}),
            "at most 2000 coordinates, got 22000: .* drop some options",
        ),
        (lambda: Int(1, 100, 10), "log must be True or False, got 10: name a step, as in step=10"),
        (lambda: Choice("a", "b"), "must be a list, got 'a'"),
        (lambda: as_space({"x": (0, 1)}), r"got \(0, 1\): write Int\(0, 1\) or Float\(0, 1\) for a range"),
        (lambda: as_space({"x": [0.5, 1]}), r"write Float\(0.5, 1\) for a range, Choice\(\[0.5, 1\]\) for two options"),
        (lambda: as_space({"x": range(0, 20, 5)}), r"write Int\(0, 15, step=5\)"),
        (lambda: as_space({"x": ["a", "b"]}), r"write Choice\(\[...\]\) for options"),
        (lambda: as_space({"x": Float}), "parameter 'x' must be a Float, Int or Choice"),
        (lambda: as_space({1: Float(0, 1)}), "a parameter's name must be text, got 1: write '1'"),
        (lambda: as_space({"x": Float(0, 1), None: Int(0, 1)}), "a parameter's name must be text, got None"),
        (lambda: as_space([]), "at least one row.* got no rows"),
        (lambda: as_space([1.0, 2.0]), r"\(N, d\) array.* got list with one value per row: name it"),
        (lambda: as_space("abc"), "table"),
        (lambda: as_space(7), "table"),
        (lambda: as_space([{"a": 1}, {"b": 1}]), "row 1 has"),
        (lambda: as_space([{"a": 1.0}, {"a": math.nan}]), "column 'a' of the table is missing in row 1"),
        (lambda: as_space(np.array([[1.0], [np.nan]])), "missing in row 1"),
        (lambda: as_space(np.array([[1.0], [np.inf]])), "column 0 of the table must hold finite numbers, got inf"),
        (lambda: as_space([{"a": 1}, {"a": 10**400}]), "column 'a' of the table must hold finite numbers"),
        (
            lambda: as_space([{"a": np.ones(2)}]),
            r"column 'a' of the table must hold numbers, .* got array\(\[1., 1.\]\)",
        ),
        (lambda: as_space([{"a": 1}, {"a": Undecided()}]), "column 'a' of the table is missing in row 1"),
        (
            lambda: as_space([{"id": f"row {i}", "a": i} for i in range(1001)]),
            "column 'id' .* at most 1000 .*: drop it",
        ),
        (lambda: as_space([{"a": [1]}, {"a": [2]}]), r"column 'a' of the table must hold numbers, .* got \[1\]"),
    ],
)
def test_what_is_no_space_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_options_of_an_array_are_plain_values():
    assert [type(its) for its in Choice(np.array([1, 2])).options] == [int, int]
    assert [type(its) for its in Choice(np.array(["a", "b"])).options] == [str, str]


def test_the_largest_whole_numbers_are_told_apart():
    values = list(range(2**53 - 4, 2**53 + 1))
    parameter = Int(values[0], values[-1])
    assert axis_of(parameter).decode(axis_of(parameter).encode(values)) == values


SPACE = ParameterSpace({"x": Float(0, 1), "n": Int(1, 4), "c": Choice(["a", "b"])})


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"x": 0.5, "n": 2}, "'c' is missing"),
        ({"x": 0.5, "n": 2, "c": "a", "z": 1}, "unknown 'z'"),
        (
            {"x": 1.5, "n": 2, "c": "a"},
            "x must be from 0 to 1, got 1.5: widen the bounds, or pass only what lies inside them",
        ),
        ({"x": math.nan, "n": 2, "c": "a"}, "x must be a finite number"),
        ({"x": "0.5", "n": 2, "c": "a"}, "x must be a finite number, got '0.5'"),
        ({"x": 0.5, "n": 2.5, "c": "a"}, "n must be a whole number, got 2.5"),
        ({"x": 0.5, "n": 9, "c": "a"}, "n must be from 1 to 4"),
        ({"x": 0.5, "n": 10**400, "c": "a"}, "n must be a finite number"),
        ({"x": 0.5, "n": 2, "c": np.ones(2)}, r"c must be one of \['a', 'b'\], got array"),
        ({"x": 0.5, "n": 2, "c": "z"}, r"c must be one of \['a', 'b'\], got 'z'"),
        ([0.5, 2, "a"], "params must be a dict"),
    ],
)
def test_params_that_do_not_belong_are_refused(params, message):
    with pytest.raises(ValueError, match=message):
        SPACE.checked(params)


def test_numpy_numbers_are_numbers():
    checked = SPACE.checked({"x": np.float32(0.5), "n": np.int64(3), "c": np.str_("b")})
    assert checked == {"x": 0.5, "n": 3, "c": "b"}
    assert [type(v) for v in checked.values()] == [float, int, str]


ROWS = [{"vm": "small", "nodes": 4}, {"vm": "large", "nodes": 10}, {"vm": "huge", "nodes": 6}]


class Frame:
    """The interface of a DataFrame, without pandas."""

    columns = ("vm", "nodes")
    iloc = None

    def to_dict(self, orient):
        assert orient == "records"
        return ROWS


@pytest.mark.parametrize("rows", [ROWS, tuple(ROWS), Frame()])
def test_a_table_of_dicts(rows):
    table = CandidateTable(rows)
    assert table.count == 3
    assert table.groups == (0, 0, 0, 1)
    assert table.decode(table.everything()) == ROWS
    assert table.everything()[:, 3] == pytest.approx([0.0, 1.0, 1 / 3])
    assert table.key({"nodes": 6, "vm": "huge"}) == 2


def test_a_table_of_numbers_gives_rows():
    array = np.array([[1.0, 5.0], [2.0, 5.0], [3.0, 7.0]])
    table = CandidateTable(array)
    assert np.array_equal(table.decode(table.everything()), array)
    assert table.key([2, 5]) == 1
    row = table.decode(table.everything())[0]
    row[:] = 99
    assert np.array_equal(table.decode(table.everything()), array), "a row given away is a copy"


def test_equal_rows_are_one():
    table = CandidateTable([[1.0], [2.0], [1.0]])
    assert table.count == 2
    assert table.key([1.0]) == 0
    assert len(table.everything()) == 2


def test_points_snap_to_the_nearest_row():
    table = CandidateTable(np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 20.0]]))
    assert np.array_equal(table.decode(np.array([[0.9, 0.2], [0.3, 0.8]])), [[10, 0], [0, 20]])


def test_an_option_that_is_near_comes_before_numbers_that_are():
    """A point between belongs to the option with the highest coordinate, there to the row with the nearest number."""
    table = CandidateTable(
        [{"kind": kind, "size": size} for kind, size in [("a", 0.0), ("b", 0.4), ("b", 1.0), ("c", 0.1)]]
    )
    assert table.decode(np.array([[0.5, 0.6, 0.5, 0.0]])) == [{"kind": "b", "size": 0.4}]


@pytest.mark.parametrize("params", [{"vm": "tiny", "nodes": 4}, {"vm": "small"}, 3, "small", None, {"vm": ["small"]}])
def test_what_is_no_row_is_refused(params):
    with pytest.raises(ValueError, match="params must be a row of the table"):
        CandidateTable(ROWS).checked(params)


def test_a_column_that_never_changes_is_harmless():
    table = CandidateTable([{"a": 1, "b": "same"}, {"a": 2, "b": "same"}])
    assert table.everything().tolist() == [[0.0, 0.0], [1.0, 0.0]]


@pytest.mark.parametrize("one", [1, 1.0, np.int64(1)])
@pytest.mark.parametrize("yes", [True, np.True_])
def test_one_is_not_true_in_a_table(one, yes):
    """They are equal in Python, and a row that is confused with another is never asked for."""
    rows = [{"a": one}, {"a": yes}, {"a": "text"}, {"a": one}]
    table = CandidateTable(rows)
    assert table.count == 3
    assert [table.key(row) for row in rows] == [0, 1, 2, 0]
    assert [type(row["a"]) for row in table.decode(table.everything())] == [type(one), type(yes), str]


def test_numpys_yes_is_a_yes():
    assert axis_of(Choice([1, True])).key(np.True_) == 1
    with pytest.raises(ValueError, match=r"True_? twice"):
        Choice([True, np.True_])


def test_rows_of_numbers_are_told_apart_by_all_their_bits():
    """Round numbers, whose low bits are all 0, and both zeros, which are equal."""
    grid = np.stack(np.meshgrid(*[np.arange(0, 64) / 8] * 3), axis=-1).reshape(-1, 3)
    rows = np.vstack([grid, -0.0 * grid[:1], grid[[17, 4000]]])
    table = CandidateTable(rows)
    assert table.count == len(grid)
    assert table.key(rows[-1]) == 4000
    assert table.key(-0.0 * grid[0]) == 0
    with pytest.raises(ValueError, match="params must be a row of the table"):
        table.key([0.0, 0.0, 1e-300])


@pytest.mark.parametrize("seed", range(4))
def test_design_of_a_table_with_exclusions_does_not_crowd_at_their_edge(seed):
    table = CandidateTable([{"a": a, "b": b} for a in range(1, 10) for b in range(1, 10) if a + b <= 10])  # 45 of 81
    assert table.share == pytest.approx(45 / 81)
    drawn = table.decode(spread_out(table, 64, seed))
    at_edge = sum(row["a"] + row["b"] == 10 for row in drawn) / len(drawn)
    assert at_edge == pytest.approx(9 / 45, abs=0.12)  # if points beyond were moved to the edge, more than half
    assert len({tuple(row.values()) for row in drawn[:32]}) > 16


@pytest.mark.parametrize(
    "rows",
    [
        np.random.default_rng(0).random((40, 2)),  # no grid
        np.array([[a, b] for a in range(5) for b in range(4)], dtype=float),  # all of a grid
    ],
)
def test_design_of_a_table_without_exclusions_is_the_rows_nearest_to_a_sobol_sequence(rows):
    table = CandidateTable(rows)
    assert np.array_equal(spread_out(table, 20, 3), table.snap(sobol(20, 2, 3)))
