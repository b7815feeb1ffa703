"""More of `tests.bandits.belief.test_tensors`, nightly."""

import pytest
from tests.bandits.belief.test_tensors import ON_NYSTROM, check_same, elsewhere
from tests.choices import build

from noregret.algorithms import NAMES


@pytest.mark.filterwarnings("ignore:the rewards contradict", "ignore:no function fits")
@pytest.mark.parametrize("name", [name for name in NAMES if name not in ON_NYSTROM and "catoni" not in name])
def test_every_algorithm_chooses_the_same_arms(name):
    check_same(build(name))
