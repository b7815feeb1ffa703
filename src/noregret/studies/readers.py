"""Readers of the output of benchmark tools: text -> value of each benchmark by name, times in seconds.

The value is the median of the samples in the output. Where a tool writes no samples it is the tool's own median, else
its mean. `FILTERS` has the text that makes a tool run some of its benchmarks only.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import median
from typing import Any

from noregret.studies.study.results import NoResult

Numbers = dict[str, float | None]
"""Value of each name; None for a benchmark that failed."""

SECONDS = {"ps": 1e-12, "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "hr": 3600.0}
"""Length of units of time, as the tools write them; both letters for micro are read as u."""
GO = re.compile(r"^(Benchmark\S*)\s+\d+\s+(.*\S)", re.MULTILINE)
GO_PACKAGE = re.compile(r"^(?:pkg:|ok|FAIL)[ \t]+(\S+)", re.MULTILINE)
CRITERION = re.compile(r"time:\s+\[\S+ \S+ (\S+) (\S+) \S+ \S+\]")
BENCHER = re.compile(r"^test (.+?)\s+\.\.\. bench:\s+([\d.,]+) (ns)/iter", re.MULTILINE)
LONGEST_FILTER = 100_000
"""Characters of a filter, above which all benchmarks are run: systems limit the length of a word to 128 KiB."""


def json_object(text: str) -> Numbers:
    r"""Numbers of a JSON object; those of objects inside of it have names with dots, null is a run that failed.

    >>> json_object('done: 2 files\n{"parse": 0.5, "load": {"cold": 3, "warm": null}}')
    {'parse': 0.5, 'load.cold': 3.0, 'load.warm': None}
    """

    def numbers(value: Any, name: str) -> Iterator[tuple[str, float | None]]:
        if isinstance(value, dict):
            for key, each in value.items():
                yield from numbers(each, f"{name}.{key}" if name else key)
        elif value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
            yield name, None if value is None else float(value)

    return dict(numbers(_document(text, lambda value: isinstance(value, dict)), ""))


def pytest_benchmark(text: str) -> Numbers:
    """Medians in the JSON that ``pytest --benchmark-json=FILE`` writes, by the full names of the tests."""
    return {row["fullname"]: float(row["stats"]["median"]) for row in _benchmarks(text)}


def criterion(text: str) -> Numbers:
    r"""Estimates that ``cargo bench`` prints, each the middle of three: the slope or mean of the time per iteration.

    A name that is long has a line of its own before that of its time. The lines of ``--output-format bencher``, and of
    the benchmarks of Rust itself, are read as well.

    >>> criterion("parse/1 time:   [1.0 ms 1.5 ms 2.0 ms]\ntest sum ... bench:   3,000 ns/iter (+/- 9)")
    {'parse/1': 0.0015, 'sum': 3e-06}
    """
    numbers, before = Numbers(), ""
    for line in text.splitlines():
        if match := CRITERION.search(line):
            name = line[: match.start()].strip() or before
            numbers[name] = float(match[1]) * _unit(match[2])
        before = line.strip()
    rows = ((name, float(value.replace(",", "")) * _unit(unit)) for name, value, unit in BENCHER.findall(text))
    return {**numbers, **dict(rows)}


def go(text: str) -> Numbers:
    """Times that ``go test -bench`` prints, medians with ``-count``; names of several packages begin with theirs.

    With ``-benchmem`` the bytes and allocations of an operation are left out, as are other metrics of a benchmark.

    >>> go("BenchmarkSum-8  1000  3000 ns/op  16 B/op  1 allocs/op")
    {'BenchmarkSum-8': 3e-06}
    """
    packages, rows = re.split(r"^pkg: (\S+)$", text, flags=re.MULTILINE), list[tuple[str, float | None]]()
    several = len(set(GO_PACKAGE.findall(text))) > 1  # those whose benchmarks were not selected end in a line, too
    for package, part in zip(["", *packages[1::2]], packages[::2], strict=True):
        for name, metrics in GO.findall(part):
            if time := re.search(r"([\d.e+-]+) ns/op", metrics):
                rows.append((f"{package}.{name}" if several and package else name, float(time[1]) * 1e-9))
    return _medians(rows)


def google_benchmark(text: str) -> Numbers:
    """Real times in the JSON of Google Benchmark, medians of repetitions; a benchmark with an error has failed."""
    runs, summaries = list[tuple[str, float | None]](), dict[str, dict[str, float]]()
    for row in _benchmarks(text):
        name = row.get("run_name", row["name"])
        if row.get("error_occurred"):
            runs.append((name, None))
        elif row.get("run_type", "iteration") == "iteration":
            runs.append((name, float(row["real_time"]) * _unit(row["time_unit"])))
        elif row["aggregate_name"] in ("median", "mean"):
            summaries.setdefault(name, {})[row["aggregate_name"]] = float(row["real_time"]) * _unit(row["time_unit"])
    summary = {name: each.get("median", each.get("mean")) for name, each in summaries.items()}
    return {**summary, **_medians(runs)}


def jmh(text: str) -> Numbers:
    """Times of an operation in the JSON of ``-rf json``: medians over forks and iterations, or the score.

    A throughput is turned into the time of an operation. Parameters are part of the name, and the mode is if a
    benchmark has several.
    """
    rows = _document(text, lambda value: isinstance(value, list) and bool(value) and "primaryMetric" in value[0])
    modes, numbers = Counter(map(_jmh_name, rows)), Numbers()
    for row in rows:
        metric = row["primaryMetric"]
        values = [float(value) for fork in metric.get("rawData", ()) for value in fork] or [float(metric["score"])]
        first, _, second = metric["scoreUnit"].partition("/")
        value = _unit(second) / median(values) if first == "ops" else median(values) * _unit(first)
        name = _jmh_name(row)
        numbers[f"{name} {row['mode']}" if modes[name] > 1 else name] = value
    return numbers


def _jmh_name(row: dict[str, Any]) -> str:
    return " ".join([row["benchmark"], *(f"{key}={each}" for key, each in row.get("params", {}).items())])


def hyperfine(text: str) -> Numbers:
    """Medians in the JSON of ``--export-json``, by command; name the commands by ``-n`` if A and B differ in them."""
    rows = _document(text, lambda value: isinstance(value, dict) and "results" in value)["results"]
    return {row["command"]: float(median(row.get("times") or [row["median"]])) for row in rows}


READERS: dict[str, Callable[[str], Numbers]] = {
    "json": json_object,
    "pytest-benchmark": pytest_benchmark,
    "criterion": criterion,
    "go": go,
    "google-benchmark": google_benchmark,
    "jmh": jmh,
    "hyperfine": hyperfine,
}


def read(kind: str, text: str) -> Numbers:
    """Value of each name in the output of a tool; NoResult if it has none, or is not what the tool writes."""
    try:
        numbers = READERS[kind](text)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, ZeroDivisionError) as error:
        why = str(error) if isinstance(error, NoResult) else f"{type(error).__name__}: {error}"
        raise NoResult(f"no output of {kind} that can be read: {why}") from None
    if not numbers:
        raise NoResult(f"no output of {kind} that can be read: no benchmark in {_end(text)}")
    return {name: value if value is not None and math.isfinite(value) else None for name, value in numbers.items()}


def selected(kind: str, names: Sequence[str] | None) -> str:
    """Text that makes a tool run these benchmarks only, or all if ``names`` is None.

    Regular expressions for criterion, Go, Google Benchmark and JMH, an expression for ``-k`` of pytest, and names with
    commas between them for commands that print JSON. A tool may run more than these: the others are ignored.

    >>> selected("pytest-benchmark", ["test_a.py::test_sort[10]", "test_b.py::test_sum"])
    'test_sort[10] or test_sum'
    >>> selected("go", ["BenchmarkSum-8", "BenchmarkSort/n=10-8"])
    '^BenchmarkSum(-8)?$|^BenchmarkSort$/^n=10(-8)?$'
    >>> selected("google-benchmark", ["BM_Sort/8", "BM_Sum"]), selected("google-benchmark", None)
    ('^(BM_Sort/8|BM_Sum)$', '.')
    """
    is_plain = kind in ("json", "pytest-benchmark")
    if names is None:
        return "" if is_plain else "."
    if kind == "json":
        text = ",".join(names)
    elif kind == "pytest-benchmark":
        text = " or ".join(dict.fromkeys(map(_test, names)))
    elif kind == "go":
        text = "|".join(dict.fromkeys(map(_go_pattern, names)))
    else:  # of JMH the parameters are not part of what is matched
        text = "|".join(dict.fromkeys(_escaped(name.partition(" ")[0] if kind == "jmh" else name) for name in names))
        text = f"^({text})$"
    return text if len(text) < LONGEST_FILTER else selected(kind, None)


def _test(name: str) -> str:
    """The name of a test without its file and class; without its parameters if ``-k`` cannot have them."""
    head, bracket, parameters = name.partition("[")
    head = head.rpartition("::")[2]
    return head + bracket + parameters if re.fullmatch(r"[\w:+.\[\]/-]*", bracket + parameters) else head


def _go_pattern(name: str) -> str:
    """A pattern for each level of a benchmark. The number of processors at its end is not part of its own name."""
    own, processors = re.search(r"(?:^|\.)(Benchmark.*?)(-\d+)?$", name).groups("")  # type: ignore[union-attr]
    levels = [f"^{_escaped(level)}" for level in own.split("/")]
    return "$/".join(levels) + (f"({processors})?" if processors else "") + "$"


def _escaped(name: str) -> str:
    """A name as a regular expression in the syntax that POSIX, Go, Rust and Java have in common."""
    return re.sub(r"([.\[\\()*+?{|^$])", r"\\\1", name)


def _unit(text: str) -> float:
    """Seconds of a unit; 1 for those that are no times, such as cycles."""
    return SECONDS.get(text.replace("µ", "u").replace("μ", "u"), 1.0)


def _medians(rows: Iterable[tuple[str, float | None]]) -> Numbers:
    """Median of the values of each name; None if one of them failed."""
    values: dict[str, list[float | None]] = {}
    for name, value in rows:
        values.setdefault(name, []).append(value)
    whole = {name: [value for value in each if value is not None] for name, each in values.items()}
    return {name: median(known) if len(known) == len(values[name]) else None for name, known in whole.items()}


def _benchmarks(text: str) -> list[dict[str, Any]]:
    document = _document(text, lambda value: isinstance(value, dict) and isinstance(value.get("benchmarks"), list))
    return list(document["benchmarks"])


def _document(text: str, is_it: Callable[[Any], bool]) -> Any:
    """The last JSON value in a text that begins a line and is of the right kind; NoResult if there is none."""
    decoder, document, end = json.JSONDecoder(), None, 0
    for start in re.finditer(r"^[ \t]*(?=[\[{])", text, re.MULTILINE):
        if start.end() >= end:
            try:
                value, last = decoder.raw_decode(text, start.end())
            except (ValueError, RecursionError):
                continue
            end = last  # what is inside of it is a part of it
            document = value if is_it(value) else document
    if document is None:
        raise NoResult(f"no such JSON in {_end(text)}")
    return document


def _end(text: str) -> str:
    return repr(text.strip()[-60:]) if text.strip() else "empty output"
