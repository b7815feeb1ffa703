"""The examples work as described."""

import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import installed

from noregret.cli import main
from noregret.optimizer import axis_of
from noregret.studies.study.reading import load

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("name", ["tune_compression", "cloud_table"])
def test_the_first_command_of_each_study_runs(name, capsys):
    assert main(["tune", str(EXAMPLES / name / "study.toml"), "--dry-run"]) == 0
    assert capsys.readouterr().out.startswith("python3 ")
    study = load(EXAMPLES / name / "study.toml")
    middle = study.space[0] if name == "cloud_table" else {k: axis_of(p).values()[0] for k, p in study.space.items()}
    done = subprocess.run(study.arguments(middle), cwd=study.folder, capture_output=True, text=True, check=True)
    assert re.search(r"\d", done.stdout)


def test_the_demo_ends_in_a_gain_over_its_baseline(tmp_path, capsys):
    folder = shutil.copytree(EXAMPLES / "tune_compression", tmp_path / "demo")
    study = folder / "study.toml"
    study.write_text(re.sub(r"evaluations = \d+", "evaluations = 6", study.read_text()))
    script = folder / "compress.py"
    script.write_text(re.sub(r"PIECES = \d+", "PIECES = 3", script.read_text()))
    assert main(["tune", str(study)]) == 0
    out = capsys.readouterr().out
    assert re.search("than your settings|your settings are the best", out), out
    assert "constraint" in out


def test_time_against_size_ends_in_a_front(tmp_path, capsys):
    folder = shutil.copytree(EXAMPLES / "tune_compression", tmp_path / "demo")
    study, script = folder / "time_and_size.toml", folder / "compress.py"
    study.write_text(study.read_text().replace("evaluations = 40\nseconds = 60", "evaluations = 5"))
    script.write_text(re.sub(r"PIECES = \d+", "PIECES = 3", script.read_text()))
    assert main(["tune", str(study)]) == 0
    assert re.search(r"the front: .*\n +time +size +probability  setting\n", capsys.readouterr().out)


def test_a_training_is_tuned_with_cheap_looks(tmp_path, capsys):
    folder = shutil.copytree(EXAMPLES / "training", tmp_path / "training")
    study = folder / "study.toml"
    text = study.read_text().replace("evaluations = 40", "evaluations = 3").replace("high = 81", "high = 9")
    study.write_text(text.replace("python3", sys.executable))  # the one that has scikit-learn
    assert main(["tune", str(study)]) == 0
    out = capsys.readouterr().out
    assert "failed" not in out
    assert " at epochs=" in out
    assert re.search(r" train.py --rate \S+ --alpha \S+ --epochs 9\n", out), out


@pytest.fixture(scope="module")
def llm():
    """The simulator of the LLM server."""
    spec = importlib.util.spec_from_file_location("server", EXAMPLES / "llm_server" / "server.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


ONE = {"sequences": 8, "chunk": 256, "capacity": 10_000}


def served(llm, arrivals, prompts, outputs, parallel=1, **settings):
    arrays = np.array(arrivals, dtype=float), np.array(prompts), np.array(outputs)
    return llm.serve(*arrays, parallel=parallel, **ONE | settings)


@pytest.mark.parametrize("parallel", [1, 4])
def test_a_request_alone_at_the_llm_server_takes_the_sum_of_its_steps(llm, parallel):
    latency, made = served(llm, [2.0], [600], [3], parallel)
    reading = [(256, 0), (256, 256), (88, 512)]
    writing = [(1, 600), (1, 601), (1, 602)]
    expected = sum(llm.step_seconds(tokens, cached, parallel) for tokens, cached in reading + writing)
    assert (latency[0], made) == (pytest.approx(expected), 3)


def test_requests_wait_for_a_place_at_the_llm_server(llm):
    alone, _ = served(llm, [0.0], [100], [50])
    latency, _ = served(llm, [0.0, 0.0, 0.0], [100] * 3, [50] * 3, sequences=1)
    assert latency == pytest.approx([alone[0], 2 * alone[0], 3 * alone[0]])
    together, _ = served(llm, [0.0, 0.0, 0.0], [100] * 3, [50] * 3)
    assert max(together) < 1.5 * alone[0]


def test_what_does_not_fit_into_the_memory_of_the_llm_server_starts_over(llm):
    prompts, outputs = [100, 100], [100, 100]
    both, made = served(llm, [0.0, 0.0], prompts, outputs)
    tight, again = served(llm, [0.0, 0.0], prompts, outputs, capacity=250)
    assert made == again == 200  # no token is lost, and none made twice
    assert tight[0] < tight[1]
    assert tight[1] > 1.4 * both[1]
    assert served(llm, [0.0], [100], [100], capacity=150)[1] == 100  # alone it runs in any case


def test_the_llm_server_is_slower_under_load_and_may_be_out_of_memory(llm):
    def p99(rate, **changed):
        usual = {"sequences": 128, "chunk": 512, "memory": 0.9, "parallel": 8}
        return llm.measure(rate=rate, **usual | changed, rng=np.random.default_rng(0))["p99_seconds"]

    assert p99(10) < p99(60)
    with pytest.raises(SystemExit, match="out of memory: the chunk"):
        p99(10, chunk=8192)
    with pytest.raises(SystemExit, match="out of memory: the weights"):
        p99(10, memory=0.35, parallel=1)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("study", r"p99 \d.*\n(.*\n)*best: "),
        ("throughput_and_latency", r"the front: .*\n +tokens +p99 +probability  setting\n"),
    ],
)
def test_an_llm_server_is_tuned_under_a_latency_limit(name, words, tmp_path, capsys):
    folder = shutil.copytree(EXAMPLES / "llm_server", tmp_path / "llm")
    study, server = folder / f"{name}.toml", folder / "server.py"
    study.write_text(
        study.read_text().replace("evaluations = 60", "evaluations = 6").replace("python3", sys.executable)
    )
    server.write_text(server.read_text().replace("SECONDS = 8, 30.0", "SECONDS = 8, 2.0"))
    assert main(["tune", str(study)]) == 0
    out = capsys.readouterr().out
    assert re.search(words, out), out


def killed(process):
    """Kill a process, and wait until the system has forgotten it."""
    with suppress(ProcessLookupError):
        while True:
            os.kill(process, signal.SIGKILL)
            time.sleep(0.2)


def test_pgbench_is_tuned_and_leaves_nothing_behind(tmp_path, capsys):
    installed("pgbench", "postgresql")
    folder = shutil.copytree(EXAMPLES / "pgbench", tmp_path / "pg")
    study, cluster = folder / "study.toml", folder / "cluster.py"
    study.write_text(
        study.read_text().replace("evaluations = 40", "evaluations = 3").replace("warmup = 1", "warmup = 0")
    )
    cluster.write_text(cluster.read_text().replace('"10", "4", "2"', '"1", "1", "1"'))
    try:
        assert main(["tune", str(study)]) == 0
        out = capsys.readouterr().out
        state = json.loads((folder / "cluster.json").read_text())
        assert any(word.startswith("shared_buffers=") for word in state["settings"])
        for command in (state["settings"], ["work_mem=4096kB"], ["bench"]):
            lock = Path(state["folder"], "data", "postmaster.pid")
            if command != ["bench"]:  # a server that is killed leaves its lock behind
                killed(int(lock.read_text().split()[0]))
                assert lock.exists()
            assert subprocess.run([sys.executable, cluster, *command]).returncode == 0
        killed(int(lock.read_text().split()[0]))
    finally:
        subprocess.run([sys.executable, cluster, "stop"], check=(folder / "cluster.json").exists())
    assert "failed" not in out
    assert re.search(r"best: [\d.,]+, ", out), out
    assert not Path(state["folder"]).exists()
    assert not (folder / "cluster.json").exists()


def test_without_postgresql_pgbench_says_what_to_install(tmp_path):
    script = tmp_path / "cluster.py"
    script.write_text((EXAMPLES / "pgbench" / "cluster.py").read_text().replace("/usr/lib/postgresql", "/nowhere"))
    done = subprocess.run(
        [sys.executable, script, "work_mem=4096kB"],
        env=os.environ | {"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (1, "pgbench is missing: install PostgreSQL's server to run this\n")
    assert list(tmp_path.iterdir()) == [script]


@pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")
def test_flags_of_gcc_are_tuned_with_a_study_of_thirty_lines(tmp_path, capsys):
    folder = shutil.copytree(EXAMPLES / "gcc_flags", tmp_path / "gcc")
    study = folder / "study.toml"
    assert len(study.read_text().splitlines()) <= 30
    assert len(load(study).flags) >= 20
    study.write_text(study.read_text().replace("evaluations = 80", "evaluations = 3"))
    bench = folder / "bench.c"
    bench.write_text(bench.read_text().replace("define N 300", "define N 30").replace("10000)", "100)"))
    assert main(["tune", "--dry-run", str(study)]) == 0
    assert capsys.readouterr().out == "gcc -O2 bench.c -o bench -lm && ./bench\n"  # the baseline: no flag
    assert main(["tune", str(study)]) == 0
    out = capsys.readouterr().out
    assert "failed" not in out
    assert re.search(r"best: 0\.\d+ s, ", out), out


def test_each_flag_of_the_example_is_known_to_gcc(tmp_path):
    study = load(EXAMPLES / "gcc_flags" / "study.toml")
    if not shutil.which("gcc"):
        pytest.skip("needs gcc")
    (tmp_path / "a.c").write_text("int main(void) { return 0; }")
    for value in (False, True):
        flags = study.preparation(dict.fromkeys(study.names, value))[2:-4]
        assert len(flags) > 2
        done = subprocess.run(["gcc", "-Werror", *flags, "-c", "a.c"], cwd=tmp_path, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")


def test_higher_levels_and_larger_blocks_compress_more():
    study = load(EXAMPLES / "tune_compression" / "study.toml")
    assert smallest(study, {"level": 6, "block_kib": 256}) < smallest(study, {"level": 1, "block_kib": 16})


def smallest(study, params):
    """Compressed size with a setting, in percent: the smaller one of two runs."""
    runs = [
        subprocess.run(study.arguments(params), cwd=study.folder, capture_output=True, check=True) for _ in range(2)
    ]
    sizes = [json.loads(run.stdout) for run in runs]
    assert all(size["ms_per_mb"] > 1 for size in sizes)
    return min(size["size_percent"] for size in sizes)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("ask_tell", "'key': .* ns per number"),
        ("gpu_kernel/tune", r"(?s)luckiest: .*best: .* number \d+ of 3,484"),
        ("minimize", "than your settings|your settings are the best"),
        ("optuna_sampler", "recommended: "),
    ],
)
def test_the_scripts_end_in_what_they_found(name, words):
    done = subprocess.run([sys.executable, EXAMPLES / f"{name}.py"], capture_output=True, text=True, check=True)
    assert re.search(words, done.stdout), done.stdout
