"""Readers of what benchmark tools write, on samples of their output in ``outputs``."""

import json
import re
from pathlib import Path

import pytest

from noregret.studies.readers import LONGEST_FILTER, read, selected
from noregret.studies.study.results import NoResult

OUTPUTS = Path(__file__).parent / "outputs"


def values(file, kind=None):
    return read(kind or Path(file).stem, (OUTPUTS / file).read_text("utf-8"))


def test_pytest_benchmark():
    """Written by pytest-benchmark 5; names are those of the file and the test, values are medians of the rounds."""
    assert values("pytest-benchmark.json") == {
        "test_text.py::test_split": pytest.approx(1.4488699991943577e-05),
        "test_text.py::test_dumps[10]": pytest.approx(8e-6, rel=1),
        "test_text.py::test_dumps[100]": pytest.approx(3e-5, rel=1),
        "test_text.py::TestRegex::test_find": pytest.approx(2e-5, rel=1),
    }


def test_criterion_and_what_rust_prints_itself():
    assert values("criterion.txt") == {
        "fields": pytest.approx(4.1187e-6),
        "sort/quick sort/10": pytest.approx(98.507e-9),
        "a name that is longer than its column/1000": pytest.approx(1.0052e-3),
    }
    bencher = {"fields": 4118e-9, "sort/quick sort/10": 98e-9, "tests::sum": 1204.31e-9}
    assert values("bencher.txt", "criterion") == pytest.approx(bencher)


def test_go():
    """Written by Go 1.19 with ``-benchmem -count 3``: medians of the times, and nothing of the memory."""
    found = values("go.txt")
    assert list(found) == ["BenchmarkFields-2", "BenchmarkSort/n=10-2", "BenchmarkSort/n=1000-2", "BenchmarkRead-2"]
    assert found["BenchmarkFields-2"] == pytest.approx(8766e-9)
    assert found["BenchmarkRead-2"] == pytest.approx(216.3e-9)


def test_names_of_several_go_packages_do_not_depend_on_which_of_them_were_selected():
    one = "pkg: a.com/one\nBenchmarkSum-2 10 5 ns/op\nPASS\nok  \ta.com/one\t1s\n"
    two = "pkg: a.com/two\nBenchmarkSum-2 10 7 ns/op\nPASS\nok  \ta.com/two\t1s\n"
    assert read("go", one + two) == pytest.approx({"a.com/one.BenchmarkSum-2": 5e-9, "a.com/two.BenchmarkSum-2": 7e-9})
    assert list(read("go", one + "PASS\nok  \ta.com/two\t1s\n")) == ["a.com/one.BenchmarkSum-2"]
    assert list(read("go", one)) == ["BenchmarkSum-2"]
    assert selected("go", ["a.com/one.BenchmarkSum-2"]) == "^BenchmarkSum(-2)?$"


def test_google_benchmark():
    """Written by Google Benchmark 1.7 with three repetitions; one benchmark skips with an error."""
    found = values("google-benchmark.json")
    assert list(found) == ["BM_Sort/8", "BM_Sort/512", "BM_Copy", "BM_Grow<std::pair<int, int>>", "BM_Missing"]
    assert found["BM_Sort/8"] == pytest.approx(143.06157111452701e-9)
    assert 1e-6 < found["BM_Copy"] < 1e-4  # in microseconds
    assert found["BM_Missing"] is None
    rows = json.loads((OUTPUTS / "google-benchmark.json").read_text())
    rows["benchmarks"] = [row for row in rows["benchmarks"] if row["run_type"] == "aggregate"]
    assert read("google-benchmark", json.dumps(rows))["BM_Sort/8"] == pytest.approx(143.06157111452701e-9)


def test_jmh():
    assert values("jmh.json") == {
        "org.example.text.Sort.quick n=1000 order=random": pytest.approx(41.65e-6),
        "org.example.text.Text.fields thrpt": pytest.approx(4e-6),
        "org.example.text.Text.fields sample": pytest.approx(4.2e-6),
    }


def test_hyperfine():
    assert values("hyperfine.json") == {"true": 0.0007128970000000001, "echo 1": 0.000974971}


def test_json_after_other_output_is_found():
    text = (OUTPUTS / "hyperfine.json").read_text()
    assert read("hyperfine", f"Benchmark 1: true [3 runs]\n[1, 2]\n{text}\ndone") == values("hyperfine.json")
    assert read("json", '{"old": 1}\n{"b": 2, "c": {"d": 3}, "text": "x", "ok": true, "n": NaN}') == {
        "b": 2.0,
        "c.d": 3.0,
        "n": None,
    }


@pytest.mark.parametrize(
    "kind", ["json", "pytest-benchmark", "criterion", "go", "google-benchmark", "jmh", "hyperfine"]
)
@pytest.mark.parametrize("text", ["", "no numbers here", '{"a": ', '{"benchmarks": [1], "results": [2]}', '[{"a": 1}]'])
def test_what_a_tool_does_not_write_is_no_result(kind, text):
    with pytest.raises(NoResult, match=f"no output of {kind} that can be read"):
        read(kind, text)


def test_names_of_tests_become_an_expression_that_pytest_reads():
    names = ["a.py::T::test_x[1-a]", "b.py::test_x[1-a]", "b.py::test_y[a b]", "b.py::test_z[x::y]"]
    assert selected("pytest-benchmark", names) == "test_x[1-a] or test_y or test_z[x::y]"


@pytest.mark.parametrize("kind", ["criterion", "google-benchmark"])
def test_a_pattern_selects_its_names_and_no_others(kind):
    names = ["sort(a|b)", "BM<std::pair<int, int>>/8", "x.y$[0]{1}^*+?\\"]
    pattern = re.compile(selected(kind, names))
    assert all(pattern.search(name) for name in names)
    assert not any(pattern.search(name) for name in ("sorta", "sort(a|b)2", "xxy$[0]{1}^*+?\\"))


def test_levels_of_go_are_separate_patterns_and_jmh_is_selected_without_parameters():
    assert selected("go", ["BenchmarkA", "BenchmarkB/x.y/z-8-16"]) == r"^BenchmarkA$|^BenchmarkB$/^x\.y$/^z-8(-16)?$"
    assert selected("jmh", ["a.B.c n=1", "a.B.c n=2 thrpt", "a.D.e"]) == r"^(a\.B\.c|a\.D\.e)$"


def test_all_are_run_if_the_names_are_not_known_or_too_long_together():
    names = ["x" * 1000 + str(i) for i in range(LONGEST_FILTER // 1000)]
    assert [selected(kind, names) for kind in ("criterion", "json")] == [".", ""]
    assert [selected(kind, None) for kind in ("go", "pytest-benchmark")] == [".", ""]
