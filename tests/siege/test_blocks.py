"""More of `tests.bandits.belief.test_blocks`, nightly."""

import os
import signal

import dask
import pytest
from distributed import Client, LocalCluster
from tests.bandits.belief.test_blocks import blocks, client
from tests.choices import ARMS, build, played


@pytest.mark.slow
def test_a_worker_that_dies_is_replaced_and_nothing_is_lost():
    """Processes, killed in the middle of a run: dask starts others, and makes their blocks again."""
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "10 minutes"}),  # machines may be busy
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
        client.as_current(),
    ):

        def kill_one(rounds):
            if rounds in (4, 8, 9):
                os.kill(next(nanny.pid for nanny in cluster.workers.values() if nanny.pid), signal.SIGKILL)

        algorithm = build("igp-ucb")
        assert played(algorithm, blocks(), 12, kill_one)[0] == played(algorithm, ARMS, 12)[0]
