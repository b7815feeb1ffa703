"""More of `tests.bandits.belief.test_blocks`, nightly."""

import subprocess
import sys

import pytest
from tests.bandits.belief.test_blocks import check_same, client
from tests.choices import build

from noregret.algorithms import NAMES


@pytest.mark.filterwarnings("ignore:the rewards contradict", "ignore:no function fits")
@pytest.mark.parametrize("name", sorted(NAMES.keys() - {"gp-threds", "ada-bkb", "catoni-reds", "catoni-bpe"}))
def test_every_algorithm_chooses_the_same_arms(name):
    check_same(build(name), 60 if name in ("bpe", "reds") else 20)  # so that arms are eliminated


def test_without_a_client_the_message_says_how_to_make_one(client):
    script = """
        import dask.array as da
        from noregret import Policy, SquaredExponential, algorithms
        Policy(algorithms.igp_ucb(SquaredExponential(0.2)), da.zeros((4, 1), chunks=2))
    """
    lines = [sys.executable, "-c", "\n".join(line.strip() for line in script.splitlines())]
    done = subprocess.run(lines, capture_output=True, text=True, timeout=60)
    message = (
        "arms that are a dask array need a cluster: make a client first, distributed.Client(), or pass arms.compute()"
    )
    assert message in done.stderr


def test_dask_is_not_imported_unless_a_dask_array_comes():
    script = "import sys, numpy as np, noregret as n; "
    script += "n.Policy(n.algorithms.igp_ucb(n.SquaredExponential(0.2)), np.eye(3)).ask(); "
    script += "assert not {'dask', 'distributed'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
