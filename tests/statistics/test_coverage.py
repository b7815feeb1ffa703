"""The benchmark of coverage: how a run is judged, that it can fail, and that the documentation shows what is stored."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # the benchmarks are not part of the package

from benchmarks import coverage  # noqa: E402

from noregret import algorithms  # noqa: E402
from noregret.bandits.lab.trace import fraction_interval  # noqa: E402

UNPROMISED = {"random", "a_gp_ucb"}
"""Builders without a band that is promised from the first round on."""


@pytest.mark.parametrize(
    ("lower", "upper", "truth", "share"),
    [
        ([0.0, 0.0], [2.0, 2.0], [1.0, 1.5], 0.5),
        ([0.0], [2.0], [3.0], 2.0),
        ([1.0], [1.0], [1.0], 0.0),
        ([1.0], [0.0], [0.5], math.inf),  # an empty band holds nothing
    ],
)
def test_the_share_of_the_half_width_that_is_needed(lower, upper, truth, share):
    assert coverage._share(*map(np.array, (lower, upper, truth))) == share


def test_every_builder_that_promises_a_band_is_measured():
    measured = {width.builder for name, width in coverage.WIDTHS.items() if name not in coverage.CONTROLS}
    promised = {builder for builder in algorithms.NAMES.values() if builder.__name__ not in UNPROMISED}
    assert measured == promised


@pytest.mark.parametrize("name", ["ay_ucb", "reds", "tgp_ucb", "cgp_ucb", "ada_bkb"])
def test_a_run_is_what_is_stored(name):
    (row,) = [row for row in coverage.kept() if (row.width, row.kernel) == (name, "SE")]
    shares = [coverage.needed(coverage.WIDTHS[name], "SE", seed) for seed in range(3)]
    assert max(shares) <= row.most + 1e-9


def test_the_measurement_finds_a_band_that_is_too_narrow():
    shares = [coverage.needed(coverage.WIDTHS["sw_alone"], "SE", seed) for seed in range(3)]
    assert max(shares) > 1


def test_what_is_stored_is_all_runs_of_every_width_and_decides():
    rows = coverage.kept()
    expected = [(name, kernel) for name, width in coverage.WIDTHS.items() for kernel in width.kernels]
    assert [(row.width, row.kernel) for row in rows] == expected
    for row in rows:
        _, low, high = fraction_interval(row.covered, row.runs)
        assert row.runs == coverage.WIDTHS[row.width].runs >= 50
        assert high < 1 - coverage.DELTA if row.width in coverage.CONTROLS else low > 1 - coverage.DELTA


def test_the_page_shows_what_is_stored():
    assert coverage.pages(coverage.kept()) in coverage.PAGE.read_text(encoding="utf-8")
