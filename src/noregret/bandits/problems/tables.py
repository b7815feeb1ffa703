"""Problems from measured data.

The data are part of the package; ``README.md`` beside them gives their sources. To use your own files with the same
names and columns, pass their ``folder`` or set the environment variable NOREGRET_DATA to it. Files may end in ``.csv``
or, compressed, in ``.csv.gz``. Arms without coordinates are numbered, and their kernel is a table: the covariance, or
the correlation, of the arms' measurements.
"""

from __future__ import annotations

import csv
import gzip
import math
import os
from pathlib import Path

import numpy as np

from noregret.bandits.problems.problem import Changing, Problem, Seed, rkhs_norm
from noregret.bandits.problems.rewards import Gaussian, Payoff, Resampled
from noregret.gp.kernels import Columns, Kernel, Matern, SquaredExponential, Tabular
from noregret.gp.posterior import Floats

Folder = str | os.PathLike[str] | None

_SHIPPED = Path(__file__).parent / "data"


def light_sensors(folder: Folder = None, *, located: bool = False) -> Problem:
    """The light sensor, of 41, with the largest mean reading (heavy-tails paper, Fig. 1 e).

    The kernel is the correlation of the 601 training rows; a pull returns the sensor's reading in a random one of the
    192 test rows, and f is the mean of these. ``paper`` has the paper's B and v, max f and the mean squared reading of
    all sensors: neither is a valid bound. If ``located``, the arms are the sensors' positions, each axis scaled to
    [0, 1], and the kernel is SE with l^2 = 0.1. Files: `light_train.csv`, `light_test.csv`,
    `light_locations.csv`.
    """
    test = _table(folder, "light_test.csv")
    if located:
        arms = _unit_cube(_table(folder, "light_locations.csv", skip=1))
        return _largest_mean("light sensors", test, arms, SquaredExponential(math.sqrt(0.1)))
    kernel = _correlation(_table(folder, "light_train.csv"))
    return _largest_mean("light sensors", test, kernel.arms, kernel)


def light_snapshot(folder: Folder = None, *, row: int | None = None, rng: Seed = None) -> Problem:
    """The light sensor with the largest reading at one moment (kernelized-bandits paper, Fig. 4 b).

    f is one of the 192 test rows, ``row`` or a random one; the kernel is the covariance of the training rows, and the
    noise is Gaussian with 5% of their mean variance.
    """
    train, test = _table(folder, "light_train.csv"), _table(folder, "light_test.csv")
    return _snapshot("light snapshot", train, test, row, rng)


def light_by_time(folder: Folder = None, *, rounds: int = 1000, rng: Seed = None) -> Changing:
    """The light sensor with the largest reading at a time: the context is the position in the test series, 0 to 1.

    The 192 test rows have no time stamps but are in order of time: the brightest sensor changes from hour to hour.
    Every round uses a random row. f is the reading, with mean 0 and variance 1 in the training rows. The kernel is half
    the correlation of the training rows, and half that times Matern 3/2 in time, lengthscale 0.2. The noise is Gaussian
    with 5% of the variance.
    """
    train, test = _table(folder, "light_train.csv"), _table(folder, "light_test.csv")
    rows = np.random.default_rng(rng).integers(len(test), size=rounds)
    sensors = _correlation(train)
    always, now = Columns(sensors, (1,)), Columns(Matern(1.5, 0.2), (0,))
    kernel = 0.5 * always + 0.5 * (now * always)
    means, times = (test - train.mean()) / train.std(), np.linspace(0, 1, len(test))[:, None]
    noise = Gaussian(math.sqrt(0.05))
    return Changing("light by time", sensors.arms, means[rows], kernel, noise, contexts=times[rows])


def intel_temperature(folder: Folder = None, *, row: int | None = None, rng: Seed = None) -> Problem:
    """The hottest of 52 motes in the Intel lab at one moment of 8-9 am (kernelized-bandits paper, Fig. 4 a).

    f is one of the 240 rows of 4-5 March 2004, ``row`` or a random one, as in the paper. The paper's training days, 28
    February to 3 March, are not all available: the covariance is that of 6-8 March, of which two days are a weekend.
    The noise is Gaussian with 5% of the mean variance. Rows come from `intel_temp_30s.csv`.
    """
    lines = _lines(folder, "intel_temp_30s.csv")[1:]
    readings = np.array([line[2:] for line in lines], dtype=float)
    late = np.array([line[0] > "2004-03-05" for line in lines])
    return _snapshot("intel temperature", readings[late], readings[~late], row, rng)


def stocks(folder: Folder = None) -> Problem:
    """The stock, of 29, with the largest mean price (heavy-tails paper, Fig. 1 d).

    A pull returns the price on a random day; the kernel is the correlation of the prices. ``paper`` has the paper's v,
    the mean squared price of all stocks, and B = max f: neither is a valid bound. Prices come from `stocks_dow29.csv`.
    """
    prices = _table(folder, "stocks_dow29.csv", skip=1)
    kernel = _correlation(prices)
    return _largest_mean("stocks", prices, kernel.arms, kernel)


def latency(folder: Folder = None, *, node: int = 29) -> Problem:
    """The fastest of 98 peers: rewards are minus the round-trip time in seconds, heavy-tailed as measured.

    ``node`` is the measuring device, 29 or 54. A pull returns minus the time of a random one of 688 slices; the kernel
    is the correlation of the times. Times come from `latency_seattle_node29.csv` or `latency_seattle_node54.csv`.
    """
    if node not in (29, 54):
        raise ValueError(f"node must be 29 or 54, the devices with measurements, got {node}")
    times = _table(folder, f"latency_seattle_node{node}.csv", skip=1)
    payoff, kernel = Resampled(-times), _correlation(times)
    norm = rkhs_norm(kernel.matrix, payoff.means)
    return Problem(f"latency of node {node}", kernel.arms, payoff.means, kernel, payoff, norm)


def cloud(
    folder: Folder = None,
    *,
    workload: str = "terasort",
    framework: str = "hadoop",
    size: str = "huge",
    payoff: Payoff | None = None,
) -> Problem:
    """The fastest cluster of cloud machines for a job: minus the run time, in units of the job's median.

    The arms are the clusters, up to 69, that finished the job. Their coordinates are the logarithms of machines, cores
    per machine and memory per machine, each scaled to [0, 1]; the kernel is Matern 5/2 on these. The table has one run
    per cluster, so the noise, Gaussian of sd 0.05 unless a payoff is given, is ours. Runs come from
    `cloud_runtimes.csv`.
    """
    job, (header, *lines) = (workload, framework, size), _lines(folder, "cloud_runtimes.csv")
    runs = [dict(zip(header, line, strict=True)) for line in lines]
    jobs = [(run["workload"], run["framework"], run["input"]) for run in runs]
    if job not in jobs:
        raise ValueError(f"no job {job}: (workload, framework, size) must be one of {sorted(set(jobs))}")
    done = [run for run, its in zip(runs, jobs, strict=True) if its == job and run["completed"] == "1"]
    features = np.log([[float(run[c]) for c in ("n_nodes", "vcpu_per_node", "mem_gib_per_node")] for run in done])
    arms = _unit_cube(features)
    seconds = np.array([float(run["elapsed_s"]) for run in done])
    means, kernel = -seconds / np.median(seconds), Matern(2.5, 0.5)
    norm = rkhs_norm(kernel(arms, arms), means)
    return Problem(f"{workload} on {framework}, {size}", arms, means, kernel, payoff or Gaussian(0.05), norm)


def _largest_mean(name: str, table: Floats, arms: Floats, kernel: Kernel) -> Problem:
    """Problem to find the column with the largest mean (heavy-tails paper, Fig. 1 d and e)."""
    payoff = Resampled(table)
    means = payoff.means
    paper = {"norm": float(means.max()), "moment": float((table**2).mean())}
    return Problem(name, arms, means, kernel, payoff, rkhs_norm(kernel(arms, arms), means), paper)


def _snapshot(name: str, train: Floats, test: Floats, row: int | None, rng: Seed) -> Problem:
    """Problem with a test row as f and the covariance of the training rows as kernel (kernelized bandits, Fig. 4)."""
    if row is None:
        row = int(np.random.default_rng(rng).integers(len(test)))
    if not 0 <= row < len(test):
        raise ValueError(f"row must be in 0..{len(test) - 1}, got {row}")
    kernel = Tabular(np.cov(train, rowvar=False))
    noise = Gaussian(math.sqrt(0.05 * float(np.diag(kernel.matrix).mean())))
    return Problem(f"{name} {row}", kernel.arms, test[row], kernel, noise, rkhs_norm(kernel.matrix, test[row]))


def _correlation(table: Floats) -> Tabular:
    return Tabular(np.asarray(np.corrcoef(table, rowvar=False)))


def _unit_cube(points: Floats) -> Floats:
    """Scale every column to [0, 1]."""
    return np.asarray((points - points.min(axis=0)) / np.ptp(points, axis=0))


def _table(folder: Folder, name: str, skip: int = 0) -> Floats:
    """Numbers of a file, without its header and its first ``skip`` columns."""
    return np.array([line[skip:] for line in _lines(folder, name)[1:]], dtype=float)


def _lines(folder: Folder, name: str) -> list[list[str]]:
    where = Path(folder if folder is not None else os.environ.get("NOREGRET_DATA") or _SHIPPED)
    path = data_file(where, name)
    if path is None:
        raise FileNotFoundError(
            f"{name} is not in {where}: pass the folder that holds it as folder=... or set NOREGRET_DATA to it, "
            "or leave both out for the data of the package"
        )
    read = gzip.open if path.suffix == ".gz" else open
    with read(path, "rt", newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def data_file(folder: Path, name: str) -> Path | None:
    """File of this name in a folder, plain or compressed (``.gz``); None if there is none."""
    return next((path for path in (folder / name, folder / f"{name}.gz") if path.is_file()), None)
