"""More of `tests.bandits.lab.test_cluster`, nightly."""

import signal

from tests.bandits.lab.test_cluster import TRIALS, finished, reproduce, scheduler, wait

from noregret import Trace
from noregret.bandits.lab.figure import Scale, Setting
from noregret.bandits.lab.figures import FIGURES


def test_a_worker_killed_half_way_costs_no_trial(scheduler, tmp_path):
    (address, workers), out = scheduler, tmp_path / "out"
    run = reproduce(out, "--backend", "dask", "--scheduler", address)
    wait(lambda: len(finished(out)) >= TRIALS // 4 or run.poll() is not None)
    assert len(finished(out)) < TRIALS, "it was over before a worker could be killed"
    workers[0].send_signal(signal.SIGKILL)
    printed, errors = run.communicate(timeout=600)
    assert run.returncode == 0, errors
    assert "kernelized/fig2: claims" in printed
    assert f"on the dask workers of {address}" in (out / "index.html").read_text()
    tasks = [task for panel in FIGURES["kernelized/fig2"].panels for task in panel.tasks(Setting(Scale(800, 3)))]
    assert finished(out) == sorted(task.path.with_name(f"{task.path.name}.json") for task in tasks)
    for task in tasks[::7]:  # the same as here
        assert (Trace.load(out / "trials" / task.path).arms == task.work().arms).all()
