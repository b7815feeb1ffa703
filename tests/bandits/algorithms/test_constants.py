"""Every builder refuses every bad constant, with its name and value."""

import math
import re

import numpy as np
import pytest

from noregret import RandomFourier, SquaredExponential
from noregret.algorithms import NAMES
from noregret.bandits.lab.trials import keywords

KERNEL = SquaredExponential(0.2)
NO_NUMBERS = (math.nan, "abc", [1.0], True)
BELOW_0 = (-1, -0.5, math.inf, None, *NO_NUMBERS)
NO_SHARES = (0, 1, -0.1, 2.0, *NO_NUMBERS)
NO_COUNTS = (0, -1, 2.5, 1e4, math.inf, *NO_NUMBERS)

BAD = {
    "norm": BELOW_0,
    "noise": BELOW_0,
    "scale": BELOW_0,
    "slack": (-1, math.inf, *NO_NUMBERS),
    "delta": (*NO_SHARES, None),
    "epsilon": (*NO_SHARES, None),
    "first_level": NO_SHARES,
    "horizon": NO_COUNTS,
    "first_epoch": NO_COUNTS,
    "points_per_cell": (*NO_COUNTS, None),
    "patience": NO_COUNTS,
    "size": NO_COUNTS,
    "groups": NO_COUNTS,
    "order": NO_COUNTS,
    "ridge": (-1, math.inf, *NO_NUMBERS),
    "moment": (0, -1, math.inf, None, *NO_NUMBERS),
    "noise_moment": (-1, math.inf, *NO_NUMBERS),
    "recentre": ("yes", None, 1),
    "alpha": (0, -1, 1.5, None, *NO_NUMBERS),
    "oversampling": (0, -1, *NO_NUMBERS),
    "growth": (1, 0.5, math.inf, None, *NO_NUMBERS),
    "margin": (math.inf, None, *NO_NUMBERS),
    "gain": (-1, math.inf, "max", math.nan, True),
    "constants": ("best", None, 1),
    "keep": ("best", None, 1),
    "root": ("qr", None, 1),
    "coins": ("lost", None, 1),
    "features": ("fourier", None, 1),
    "bounds": ((1, 0), (0, math.nan), (1,), 3, "abc"),
    "separate": ("yes", None, 1),
    "truncation": (-3, "abc"),
    "weights": (3, [1.0, 2.0]),
    "lengthscale_power": BELOW_0,
    "norm_power": BELOW_0,
    "norms": ("yes", None, 1),
    "start": (0.5, -1, None, *NO_NUMBERS),
    "threshold": BELOW_0,
    "softness": (0, -1, math.inf, None, *NO_NUMBERS),
    "rate": (*NO_SHARES, None),
    "discount": (*NO_SHARES, None),
    "window": (*NO_COUNTS, None),
    "period": (*NO_COUNTS, None),
    "variation": BELOW_0,
    "width": ("printed", 1, None),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_builder_refuses_every_bad_constant(name):
    needed = {"horizon": 100} if "horizon" in keywords(NAMES[name]) else {}
    for key in keywords(NAMES[name]):
        for value in BAD[key]:
            message = refusal(NAMES[name], needed | {key: value})
            expected = rf"{key} must .*, got {re.escape(repr(value))}"
            assert re.match(expected, message), f"{name}({key}={value!r}): {message}"


def refusal(builder, constants):
    """Message with which a builder refuses constants."""
    try:
        builder(KERNEL, **constants)
    except ValueError as error:
        return str(error)
    return "accepted"


@pytest.mark.parametrize("name", NAMES)
def test_numbers_of_numpy_are_numbers(name):
    given = {"norm": np.float64(2), "delta": np.float32(0.1), "horizon": np.int64(100), "scale": 1, "truncation": None}
    NAMES[name](KERNEL, **{key: value for key, value in given.items() if key in keywords(NAMES[name])})


@pytest.mark.parametrize("name", ["ata-gp-ucb", "mom-gp-ucb", "hvt-ucb"])
def test_features_may_be_an_object(name):
    NAMES[name](KERNEL, features=RandomFourier(KERNEL, 20))


@pytest.mark.parametrize("name", ["bkb", "bbkb", "mini-bkb"])
def test_a_sketch_without_noise_needs_a_ridge(name):
    with pytest.raises(ValueError, match=r"^noise must be positive where no ridge is given, got 0"):
        NAMES[name](KERNEL, noise=0, horizon=100)
    NAMES[name](KERNEL, noise=0, ridge=0.01, horizon=100)


@pytest.mark.parametrize("name", ["tv-gp-ucb", "sw-gp-ucb", "r-gp-ucb", "wgp-ucb"])
def test_drift_without_noise_needs_a_ridge(name):
    with pytest.raises(ValueError, match=r"^noise must be positive where no ridge is given, got 0: pass ridge="):
        NAMES[name](KERNEL, noise=0)
    NAMES[name](KERNEL, noise=0, ridge=0.01)
