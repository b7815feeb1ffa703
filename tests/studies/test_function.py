"""minimize and maximize: a Python function, tuned in one call."""

import logging
import math
import os
import random
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from threading import Barrier, get_ident

import numpy as np
import pytest

from noregret import Choice, Float, Int, Optimizer, maximize, minimize

LINE = {"x": Float(0, 1)}
SQUARE = {"x": Float(0, 1), "n": Int(1, 9)}


def bowl(x, n=3):
    return (x - 0.3) ** 2 + 0.01 * (n - 3) ** 2


def asked(result):
    return [answer.params for answer in result.optimizer.answers]


@pytest.mark.slow
def test_the_questions_are_those_of_an_optimizer():
    opt = Optimizer(SQUARE, rng=5)
    for _ in range(9):
        trial = opt.ask()
        opt.tell(trial, bowl(**trial.params))
    found = minimize(bowl, SQUARE, evaluations=9, confirm=0, rng=5)
    assert asked(found) == [answer.params for answer in opt.answers]
    assert found.best == opt.best()
    assert found.params == found.best.params
    assert found.stopped == "evaluations"


@pytest.mark.slow
def test_rows_of_tables_are_given_whole():
    rows, seen = [{"size": s, "kind": k} for s in (1, 2, 4) for k in "ab"], []
    found = maximize(lambda row: seen.append(row) or row["size"], rows, evaluations=8, rng=0)
    assert found.params["size"] == 4
    assert all(row in rows for row in seen)
    array = np.arange(12.0).reshape(6, 2)
    assert minimize(lambda row: row[0] + row[1], array, evaluations=8, rng=0).params.tolist() == [0.0, 1.0]


@pytest.mark.slow
def test_the_recommendation_has_been_measured():
    noise = np.random.default_rng(0)
    found = minimize(lambda n: abs(n - 4) + 0.3 * noise.standard_normal(), {"n": Int(1, 9)}, evaluations=25, rng=0)
    counts = Counter(params["n"] for params in asked(found))
    assert counts.total() == 25
    assert counts[found.params["n"]] >= 3
    assert f"measured {counts[found.params['n']]} times" in repr(found)


@pytest.mark.parametrize("odd", [math.nan, None, "1.0", (1.0, {}), math.inf])
def test_what_is_no_number_is_a_failure(odd, caplog):
    values = iter([1.0, odd, 2.0, 3.0])
    with caplog.at_level(logging.INFO, "noregret"):
        found = minimize(lambda x: next(values), LINE, evaluations=4, rng=0)
    assert [answer.value for answer in found.optimizer.answers] == [1.0, None, 2.0, 3.0]
    assert [record.levelname for record in caplog.records] == ["INFO", "WARNING", "INFO", "INFO"]
    assert "f must return a finite number" in caplog.text
    assert "1 failed" in repr(found)


def test_three_failures_at_the_start_are_an_error():
    calls = []

    def broken(x):
        calls.append(x)
        raise KeyError("no such file")

    with pytest.raises(KeyError, match="no such file") as caught:
        minimize(broken, LINE, evaluations=9)
    assert len(calls) == 3
    assert caught.traceback[-1].name == "broken"
    assert "the first 3 trials failed" in caught.value.__notes__[0]
    with pytest.raises(ValueError, match="finite number, got nan"):
        minimize(lambda x: math.nan, LINE, evaluations=2)


@pytest.mark.parametrize(
    ("f", "space", "message"),
    [
        (
            lambda x: x,
            SQUARE,
            r"called as f\(x=..., n=...\), but it is f\(x\): .* unexpected keyword argument 'n'",
        ),
        (lambda params: 1.0, LINE, r"but it is f\(params\): missing a required argument"),
        (lambda a, b: 1.0, [{"a": 1, "b": 2}], r"f is called as f\(row\), .* but it is f\(a, b\)"),
    ],
)
def test_a_function_of_other_arguments_is_not_called(f, space, message, tmp_path):
    with pytest.raises(TypeError, match=message):
        minimize(f, space, evaluations=9, storage=tmp_path / "study.db")
    assert not list(tmp_path.iterdir())


def test_a_function_may_take_more_or_fewer_arguments():
    space = {"kind": Choice(["a", "b"]), "n": Int(1, 3, when={"kind": "b"})}
    minimize(lambda kind, n=0, more=1: 1.0 + n, space, evaluations=3, rng=0)
    minimize(lambda **params: 1.0, space, evaluations=3, rng=0)


@pytest.mark.parametrize(
    ("returned", "advice"),
    [((1.0, {"memory": 3}), r"constraints=\{'memory': \('<=', 1\)\}"), ({"a": 1, "b": 2}, "goals=")],
)
def test_more_than_a_number_is_refused_with_advice(returned, advice):
    with pytest.raises(ValueError, match=advice):
        minimize(lambda x: returned, LINE, evaluations=1)


def test_require_and_safe_are_those_of_an_optimizer(tmp_path):
    def measure(x, n):
        return bowl(x, n), {"load": 10 * n}

    now = {"baseline": {"x": 0.5, "n": 5}, "constraints": {"load": (">=", 30)}, "safe": 0.9, "require": ["n >= 2"]}
    found = minimize(measure, SQUARE, evaluations=8, rng=0, **now)
    assert all(params["n"] >= 3 for params in asked(found))
    assert asked(found)[:3] == [now["baseline"]] * 3
    assert asked(minimize(measure, SQUARE, evaluations=8, rng=0, storage=tmp_path / "a.db", **now)) == asked(found)
    with pytest.raises(ValueError, match="require was"):
        minimize(measure, SQUARE, evaluations=8, storage=tmp_path / "a.db", **now | {"require": ["n >= 1"]})


def test_failures_after_a_value_are_not():
    calls = iter(range(9))

    def works_once(x):
        if next(calls):
            raise OSError
        return 1.0

    found = minimize(works_once, LINE, evaluations=9)
    assert [answer.value for answer in found.optimizer.answers] == [1.0, *[None] * 8]
    assert "8 failed, the last with OSError: ;" in repr(found)


def test_an_interrupted_call_returns_what_is_known():
    calls = iter(range(9))

    def interrupted(x):
        if next(calls) == 4:
            raise KeyboardInterrupt
        return x

    found = minimize(interrupted, LINE, evaluations=9)
    assert found.stopped == "interrupted"
    assert len(asked(found)) == 4

    def at_once(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        minimize(at_once, LINE, evaluations=9)


def test_callbacks_see_each_trial_and_may_stop():
    seen = []

    def watch(optimizer, trial, value):
        assert isinstance(optimizer, Optimizer)
        seen.append((trial.params["x"], value))

    found = minimize(lambda x: x if len(seen) != 1 else math.nan, LINE, evaluations=9, rng=0, callbacks=[watch])
    assert seen == [(answer.params["x"], answer.value) for answer in found.optimizer.answers]
    found = minimize(bowl, LINE, evaluations=9, callbacks=[watch, lambda opt, trial, value: trial.id == 3])
    assert found.stopped == "callback"
    assert len(asked(found)) == 4


def test_workers_are_threads():
    together, threads = Barrier(3, timeout=30), set()

    def f(x):
        together.wait()
        threads.add(get_ident())
        return x

    assert len(asked(minimize(f, LINE, evaluations=9, workers=3))) == 9
    assert len(threads) == 3
    assert get_ident() not in threads
    with ThreadPoolExecutor(3) as pool:
        assert len(asked(minimize(f, LINE, evaluations=6, workers=pool))) == 6
        assert pool.submit(abs, -1).result() == 1, "the executor of a caller stays open"


@pytest.mark.slow
def test_workers_may_be_processes():
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        found = minimize(random.gauss, {"mu": Float(0, 1), "sigma": Float(0.1, 1)}, evaluations=5, workers=pool)
        assert len(asked(found)) == 5
        with pytest.raises(BrokenProcessPool):
            minimize(os._exit, {"status": Int(1, 9)}, evaluations=5, workers=pool)


def test_a_broken_executor_returns_what_is_known():
    class Breaking(ThreadPoolExecutor):
        def submit(self, *args, **kwargs):
            if len(done) == 2:
                raise BrokenProcessPool("a process ended abruptly")
            return super().submit(*args, **kwargs)

    done = []
    with Breaking(1) as pool, pytest.warns(UserWarning, match="stopped after 3 evaluations: a process ended"):
        found = minimize(lambda x: done.append(x) or x, LINE, evaluations=5, workers=pool)
    assert found.stopped == "broken"
    assert [answer.params["x"] for answer in found.optimizer.answers] == done


def test_a_time_budget_ends_the_call():
    found = minimize(lambda x: time.sleep(0.01) or x, LINE, seconds=0.05)
    assert found.stopped == "seconds"
    assert 1 <= len(asked(found)) <= 5


@pytest.mark.slow
def test_the_stopping_rule_ends_the_call():
    rows = [{"n": n} for n in range(1, 6)]
    found = minimize(lambda row: 10 + row["n"], rows, evaluations=60, stop="20%", rng=0)
    assert found.stopped == "within"
    assert len(asked(found)) < 40
    assert asked(found).count(found.params) >= 3, "confirmed before the end"


def test_constraints_come_with_the_value():
    def f(x):
        return x, {"memory": 10 * x}

    found = maximize(f, LINE, evaluations=6, constraints={"memory": ("<=", 5)}, rng=0)
    assert all(answer.constraints["memory"] == 10 * answer.value for answer in found.optimizer.answers)
    with pytest.raises(ValueError, match=r"f must return \(value, \{name: number\}\), got 1.0"):
        maximize(lambda x: 1.0, LINE, evaluations=6, constraints={"memory": ("<=", 5)})
    with pytest.raises(ValueError, match="'memory' is missing"):
        maximize(lambda x: (1.0, {}), LINE, evaluations=6, constraints={"memory": ("<=", 5)})


@pytest.mark.slow
def test_a_result_shows_and_reports_itself(tmp_path):
    found = minimize(lambda x: 1 + x, LINE, evaluations=6, rng=0, baseline={"x": 0.9})
    assert asked(found)[0] == {"x": 0.9}
    assert "lower than your settings" in repr(found)
    assert str(found.gain) in repr(found)
    assert repr(found).startswith("minimum: 1")
    assert "<table" in found._repr_html_()
    assert len(found.to_frame()) == 6
    found.report(tmp_path / "page.html")
    assert "Best setting" in (tmp_path / "page.html").read_text()
    assert minimize(bowl, LINE, evaluations=3).gain is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "one of evaluations, seconds and stop must be given, such as evaluations=50"),
        ({"evaluations": 0}, "evaluations must be a whole number from 1, got 0"),
        ({"evaluations": 5, "confirm": -1}, "confirm must be a whole number from 0"),
        ({"seconds": -1}, "seconds must be a number above 0"),
        ({"seconds": "10m"}, "seconds must be a number above 0, got '10m'"),
        ({"evaluations": 5, "storage": True}, "storage must be a path or a URL"),
        ({"stop": "two"}, "stop must be a number above 0"),
        ({"evaluations": 5, "workers": 0}, "workers must be a whole number from 1, or a concurrent"),
        ({"evaluations": 5, "callbacks": print}, "callbacks must be a list"),
        ({"evaluations": 5, "f": 3}, "f must be a function"),
    ],
)
def test_bad_arguments_are_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        minimize(**{"f": bowl, "space": LINE} | arguments)


def test_progress_is_shown_if_it_is_wanted(capsys):
    minimize(bowl, LINE, evaluations=5, rng=0)
    assert capsys.readouterr().err == ""
    minimize(bowl, LINE, evaluations=5, rng=0, progress=True)
    shown = capsys.readouterr().err
    assert shown.startswith("\r[####")
    assert "] 5/5, best 0." in shown.rpartition("\r")[2]


@pytest.mark.slow
def test_a_storage_continues_where_it_was(tmp_path):
    calls, path = [], tmp_path / "study.db"

    def f(x, n):
        calls.append(x)
        return bowl(x, n)

    def stored(evaluations):
        return minimize(f, SQUARE, evaluations=evaluations, confirm=0, storage=path, rng=5)

    plain = minimize(f, SQUARE, evaluations=14, confirm=0, rng=5)
    calls.clear()
    stored(5)
    later = stored(14)
    assert asked(later) == asked(plain)
    assert later.best.params == plain.best.params
    assert len(calls) == 14
    assert repr(stored(14)) == repr(later)
    assert len(calls) == 14, "a finished study is not measured again"
    with pytest.raises(
        ValueError, match=r"study\.db keeps evaluations of another problem: parameters.x was float from 0"
    ):
        minimize(f, SQUARE | {"x": Float(0, 2)}, evaluations=5, storage=path, rng=5)
    with pytest.raises(ValueError, match=r"goal was minimize, now it is maximize\. Change it back, or give another"):
        maximize(f, SQUARE, evaluations=5, storage=path, rng=5)


KILLED = """
import os, sys
from noregret import Float, Int, minimize
calls = iter(range(99))
def f(x, n):
    if next(calls) == 6:
        os._exit(9)
    return (x - 0.3) ** 2 + 0.01 * (n - 3) ** 2
minimize(f, {"x": Float(0, 1), "n": Int(1, 9)}, evaluations=12, confirm=0, storage=sys.argv[1], rng=5)
"""


@pytest.mark.slow
def test_a_killed_process_is_continued_with_the_same_questions(tmp_path):
    path = tmp_path / "study.db"
    assert subprocess.run([sys.executable, "-c", KILLED, path]).returncode == 9
    seen = []
    found = minimize(
        lambda x, n: seen.append({"x": x, "n": n}) or bowl(x, n),
        SQUARE,
        evaluations=12,
        confirm=0,
        storage=path,
        rng=5,
    )
    plain = asked(minimize(bowl, SQUARE, evaluations=12, confirm=0, rng=5))
    assert asked(found) == plain
    assert seen == plain[6:], "the trial that was running is run again"


@pytest.mark.slow
def test_a_storage_keeps_everything_about_a_trial(tmp_path):
    """Failures, constraints, the baseline, tables; and an interrupted trial goes to the next call."""
    rows, calls, path = [{"n": n, "kind": k} for n in range(1, 5) for k in "ab"], iter(range(99)), tmp_path / "study.db"

    def f(row):
        call = next(calls)
        if call == 2:
            raise OSError("disk full")
        if call == 4:
            raise KeyboardInterrupt
        return row["n"], {"memory": 5 - row["n"]}

    options = {"evaluations": 9, "constraints": {"memory": ("<=", 3)}, "baseline": rows[3], "storage": path}
    first = minimize(f, rows, **options)
    assert first.stopped == "interrupted"
    assert [answer.value is None for answer in first.optimizer.answers] == [False, False, True, False]
    found = minimize(f, rows, workers=2, **options)
    assert len(asked(found)) == 9
    assert asked(found)[0] == rows[3]
    assert all(its.constraints["memory"] == 5 - its.value for its in found.optimizer.answers if its.value)
    assert found.gain is not None
    found.optimizer.save(tmp_path / "study.json")
    assert Optimizer.load(tmp_path / "study.json").best() == found.best


@pytest.mark.slow
def test_a_storage_of_failures_says_so(tmp_path):
    def broken(x):
        raise OSError("disk full")

    options = {"evaluations": 3, "storage": tmp_path / "study.db"}
    with pytest.raises(OSError, match="disk full"):
        minimize(broken, LINE, **options)
    with pytest.raises(ValueError, match="all 3 evaluations in the storage failed: fix f and allow more"):
        minimize(bowl, LINE, **options)
    assert len(asked(minimize(bowl, LINE, **options | {"evaluations": 5}))) == 5


@pytest.mark.slow
def test_the_time_of_a_storage_is_that_of_the_call(tmp_path):
    def f(x):
        time.sleep(0.02)
        return x

    first = minimize(f, LINE, seconds=0.1, stop=1e-9, storage=tmp_path / "study.db")
    second = minimize(f, LINE, seconds=0.1, stop=1e-9, storage=tmp_path / "study.db")
    assert first.stopped == second.stopped == "seconds"
    assert len(asked(second)) > len(asked(first))


@pytest.mark.parametrize(
    ("space", "rng", "words"),
    [
        (np.eye(3), None, r"rows of a table must be dicts with text as names"),
        ({"x": Choice([abs, max])}, None, r"values of 'x' must be text, numbers, .* put a name in its place"),
        (LINE, np.random.default_rng(0), "rng must be a whole number"),
    ],
)
def test_what_cannot_be_stored_is_refused(space, rng, words, tmp_path):
    with pytest.raises(ValueError, match=words):
        minimize(bowl, space, evaluations=5, rng=rng, storage=tmp_path / "study.db")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_the_core_is_enough_for_a_storage_too(tmp_path):
    program = (
        "import sys; sys.modules |= dict.fromkeys(['optuna', 'sqlalchemy', 'rich', 'pandas', 'matplotlib'])\n"
        "from noregret import Float, minimize\n"
        "print(minimize(lambda x: x, {'x': Float(0, 1)}, evaluations=4, workers=2, progress=True))\n"
        "for evaluations in (4, 6):\n"
        "    found = minimize(lambda x: x, {'x': Float(0, 1)}, evaluations=evaluations, storage='study.db')\n"
        "print(len(found.optimizer.trials))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.startswith("minimum: "), done.stderr
    assert done.stdout.endswith("\n6\n")


def test_a_returned_cost_beside_a_budget_of_seconds_is_refused():
    with pytest.raises(ValueError, match="the cost is time"):
        minimize(lambda x: {"value": x, "cost": 2.0}, LINE, seconds=5)
    assert minimize(lambda x: {"value": x, "cost": 2.0}, LINE, evaluations=2).optimizer.trials[0].value("cost") == 2.0


def test_what_is_no_number_fails_repeated_calls_with_advice():
    with pytest.raises(ValueError, match="'value'"):
        minimize(lambda x: {"a": x}, LINE, evaluations=9, repeats=(1, 5))
