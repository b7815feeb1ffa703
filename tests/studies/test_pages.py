"""The report and the live page, in a real browser."""

import base64
import csv
import gzip
import http.client
import io
import json
import re
import shutil
import socket
import subprocess
import sys
from dataclasses import replace
from datetime import datetime, timedelta
from html import escape, unescape
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from tests.studies import made
from tests.studies.made import outcome, suggested

from noregret.cli import main
from noregret.optimizer import Choice, Estimate, Float, Int
from noregret.studies import words
from noregret.studies.learning.findings import Findings
from noregret.studies.learning.suggest import believed
from noregret.studies.page import page as page_module
from noregret.studies.page import pictures, watch
from noregret.studies.page.page import LEGEND
from noregret.studies.page.page import page as whole_page
from noregret.studies.page.watch import server
from noregret.studies.running import findings, report
from noregret.studies.store.records import arrived
from noregret.studies.store.store import Store
from noregret.studies.study.reading import load
from noregret.studies.study.study import Budget, Study, text

NASTY = '<script>alert(1)</script> & "quotes" \'n all'

PROBE = """
<script>
addEventListener("load", () => {
  const charts = [...document.querySelectorAll("svg.chart")].filter((c) => c.getBoundingClientRect().width > 0);
  const texts = [...document.querySelectorAll("svg.chart text")].map((t) => t.getBoundingClientRect());
  document.body.dataset.probe = JSON.stringify({
    charts: charts.length,
    narrow: Math.min(...charts.map((c) => c.getBoundingClientRect().width)),
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    smallest: Math.min(...texts.filter((t) => t.width > 0).map((t) => Math.min(t.width, t.height))),
    sections: [...document.querySelectorAll("section")].map((s) => s.id),
  });
});
</script>
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A study with noise, outliers, failures, repeats and unusual names."""
    folder = tmp_path_factory.mktemp("pages")
    space = {"rate": Float(0.001, 1.0, log=True), "size": Int(1, 64), "mode": Choice(["fast", NASTY, "slow"])}
    found = Study(
        folder / "s.toml", ("m",), space=space, name=NASTY, storage="sqlite:///s.db", budget=Budget(rounds=60), lease=60
    )
    rng = np.random.default_rng(0)
    with Store(found) as store:
        for i in range(45):
            trial = store.claim(lambda records: suggested(_params(rng, records), arrived(records)[1])).trial
            params = trial.params
            value = (np.log10(params["rate"]) + 2) ** 2 + params["size"] / 64 + (params["mode"] == "slow")
            value += 0.1 * rng.standard_normal() + (100 if i % 23 == 5 else 0)
            failure = outcome(trial.number, None, f"exit code 1 {NASTY}", stderr=f"trouble {NASTY}")
            store.tell(failure if i % 13 == 7 else outcome(trial.number, float(value)))
    return found


def _params(rng, records):
    if len(records) % 3 == 2:
        return records[0].params
    mode = ["fast", NASTY, "slow"][rng.integers(3)]
    return {"rate": float(10 ** rng.uniform(-3, 0)), "size": int(rng.integers(1, 65)), "mode": mode}


@pytest.fixture(scope="module")
def page(study):
    return report(study)


def probed(browser, path, text, width):
    open_to_probes = re.sub(r"<meta http-equiv=[^>]*>", "", text)
    path.write_text(open_to_probes.replace("</body>", f"{PROBE}</body>"), encoding="utf-8")
    shown = browser(path.as_uri(), "--dump-dom", "--virtual-time-budget=5000", width=width)
    assert "CONSOLE" not in shown.stderr, shown.stderr
    return json.loads(unescape(re.search(r'data-probe="([^"]*)"', shown.stdout)[1]))


@pytest.mark.slow
@pytest.mark.parametrize("width", [1200, 500])
def test_a_browser_shows_the_whole_report_on_desks_and_phones(browser, page, tmp_path, width):
    found = probed(browser, tmp_path / "r.html", page, width)
    sections = "best history importance effects together parallel noise repeats outliers failures timeline trials how"
    assert " ".join(found["sections"]) == sections
    assert found["charts"] == 1 + 3 + 1 + 1 + 1 + 1
    assert found["narrow"] > 250
    assert found["overflow"] == 0
    assert found["smallest"] > 5  # labels can be read


@pytest.mark.slow
def test_the_report_needs_nothing_else_and_takes_no_text_for_markup(page):
    assert "alert(1)" in page
    assert page.count("<script") == page.count("</script") == 2  # our own, and its data
    assert NASTY not in page
    assert escape(NASTY) in page
    assert not re.search(r"""(src|href)=["']?(?!data:)\w""", page)
    assert not re.search("https?:", page)


def test_the_report_says_how_sure_it_is_in_plain_words(page):
    text = unescape(re.sub(r"<[^>]+>", " ", page))
    assert "42 measurements of 60 planned, 3 failed runs" in text
    assert "Best setting, lowest expected result" in text
    assert "probably between" in text
    assert "clearly worse" in text
    assert "The noise has heavy tails" in text
    assert re.search(r"\d+ measurements \([\d.]+%\) disagree with all others. None is discarded", text)
    for jargon in ("kernel", "posterior", "regret", "Gaussian", "arm"):
        assert not re.search(rf"\b{jargon}", text.replace("noregret", ""), re.IGNORECASE)


@pytest.mark.slow
def test_the_report_compares_with_the_baseline_and_marks_what_breaks_a_constraint(tmp_path):
    mine = Study(
        tmp_path / "s.toml",
        ("m",),
        space={"x": Float(0, 1)},
        storage="sqlite:///s.db",
        budget=Budget(rounds=12),
        baseline={"x": 1.0},
        constraints={"memory": ("<=", 5)},
    )
    with Store(mine) as store:
        for i in range(12):
            x = 1 - i / 12
            trial = store.claim(lambda records, x=x: suggested({"x": x}, arrived(records)[1])).trial
            store.tell(outcome(trial.number, 1 + x, "", 0.1, constraints={"memory": 7 * (1 - x)}))
    page = report(mine)
    text = unescape(re.sub(r"<[^>]+>", " ", page))
    assert re.search(r"\d+% lower than your settings \(between \d+% and \d+%, at 95%\)\.", text)
    assert re.search(r"(It meets|Nothing measured is likely to meet) all constraints", text)
    assert "Raise [budget] evaluations to continue." in text
    assert [text.count(f"{7 * i / 12:.4g} ✗") for i in range(12)] == [0] * 9 + [1] * 3
    broken = re.search(r'class="broken ring" d="([^"]*)"', re.search(r'id="history".*?</svg>', page)[0])[1]
    assert broken.count("h0") == 3
    assert "a measurement of your settings" in text


def test_probably_is_always_said_with_its_level(page):
    text = unescape(re.sub(r"<[^>]+>", " ", page))
    said = [text[found.start() : found.start() + 120] for found in re.finditer("probably", text)]
    assert len(said) > 3
    assert all("(95%)" in each for each in said), said


def test_legends_name_the_marks_of_their_picture_and_no_others(page):
    for figure in re.findall(r"<figure><svg.*?</figure>", page):
        picture, legend = figure.rsplit("</svg>", 1)[0], figure.rsplit("</svg>", 1)[1]
        drawn = {kind for found in re.findall(r'class="([^"]*)"', picture) for kind in found.split()} & set(LEGEND)
        assert set(re.findall(r'class="key (\w+)"', legend)) == drawn


def test_no_measurement_counts_for_more_than_a_whole_one(study):
    with Store(study, readonly=True) as store:
        found = findings(study, store)
    assert 0.9 < max(found.weights.values()) <= 1.0


def test_the_best_so_far_never_gets_worse_and_ends_at_the_recommendation(study):
    with Store(study, readonly=True) as store:
        found = findings(study, store)
    steps = found.best_so_far
    assert [step.trial for step in steps] == sorted({step.trial for step in steps})
    assert np.all(np.diff([step.estimate.upper for step in steps[:-1]]) < 0)
    assert steps[-1].estimate == found.best


def test_the_download_holds_every_trial_exactly(study, page):
    data = re.search(r'download="[^"]*.csv.gz" href="data:application/gzip;base64,([^"]*)"', page)[1]
    rows = list(csv.DictReader(io.StringIO(gzip.decompress(base64.b64decode(data)).decode())))
    with Store(study, readonly=True) as store:
        records = store.records()
    assert [int(row["trial"]) for row in rows] == [record.number for record in records]
    assert [float(row["value"]) if row["value"] else None for row in rows] == [record.value() for record in records]
    assert [row["mode"] for row in rows] == [record.params["mode"] for record in records]
    assert [float(row["rate"]) for row in rows] == [record.params["rate"] for record in records]


@pytest.mark.slow
def test_a_long_study_has_a_page_of_bounded_size(monkeypatch):
    study, rng = Study(Path("s.toml"), ("m",), space={"x": Float(0, 1), "y": Float(0, 1)}), np.random.default_rng(0)
    monkeypatch.setattr(page_module, "SHOWN", 50)
    monkeypatch.setattr(pictures, "MOST_DOTS", 40)
    records = [
        made.record(i, {"x": float(rng.uniform()), "y": float(rng.uniform())}, "done", float(rng.normal()))
        for i in range(300)
    ]
    text = whole_page(Findings(study, records, believed(study, records)))
    dots = sum(path.count("h0") for path in re.findall(' d="([^"]*)"', text))
    assert 4 * 40 < dots <= 2 * 40 + 2 * 40 + 40 + 2 + 2 * 20  # all charts, the best setting, and outliers
    assert "The 50 best and the 50 last of 300 trials are listed." in text
    assert 50 < re.search('id="trials".*?</section>', text)[0].count("<tr") <= 101
    values = [record.value() for record in records]
    assert f"<td>{words.number(min(values))}</td>" in text


@pytest.mark.slow
def test_a_table_of_candidates_is_ranked(tmp_path):
    rows = [{"machine": name, "nodes": nodes} for name in ("small", "large") for nodes in (1, 2, 4, 8)]
    study = Study(tmp_path / "s.toml", ("m",), space=rows, storage="sqlite:///s.db")
    with Store(study) as store:
        for row in rows * 2:
            trial = store.claim(lambda records, row=row: suggested(row, arrived(records)[1])).trial
            store.tell(outcome(trial.number, row["nodes"] + 10.0 * (row["machine"] == "small"), "", 0.1))
    page = report(study)
    assert "Of 8 candidates" in page
    first = re.search(r'id="candidates".*?<tbody><tr>(.*?)</tr>', page)[1]
    assert re.findall(r"<td>(.*?)</td>", first)[2:] == ["2", "1", "0", "large", "1"]
    assert "the middle of all settings" not in page


@pytest.mark.slow
def test_a_few_settings_far_worse_than_the_others_do_not_flatten_the_charts(tmp_path):
    study = Study(tmp_path / "s.toml", ("m",), space={"x": Float(0, 1)}, storage="sqlite:///s.db", goal="maximize")
    with Store(study) as store:
        for i in range(30):
            trial = store.claim(lambda records, i=i: suggested({"x": i / 30}, arrived(records)[1])).trial
            store.tell(outcome(trial.number, -1e6 if i in (3, 4) else i / 30, "", 0.1))
    history = re.search(r'id="history".*?</section>', report(study))[0]
    arrows = re.findall(r'class="dot beyond" d="([^"]*)"', history)
    assert [path.count("z") for path in arrows] == [2, 2]  # on wide pages and on narrow ones
    assert "a measurement beyond the edge" in history
    assert ("a measurement of the best setting" in history) == ('class="chosen' in history)
    assert "a failed run" not in history
    ticks = re.findall(r'text-anchor="end">([^<]*)<', history)
    assert all(abs(float(tick)) < 10 for tick in ticks)


def test_the_data_of_the_script_are_those_of_the_charts(study, page):
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page)[1])
    with Store(study, readonly=True) as store:
        found = findings(study, store)
    assert data["names"] == list(study.names)
    assert data["order"] == list(found.importance)
    assert {int(number) for number, kind in data["kinds"].items() if kind == "odd"} == {
        its.number for its in found.outliers
    }
    surfaces = {(its["across"], its["down"]): its for its in data["maps"]["surfaces"]}
    assert set(surfaces) == {(its.across, its.down) for its in found.surfaces}
    assert len(surfaces) == 3  # each two of three parameters
    for its in found.surfaces:
        assert np.allclose(surfaces[its.across, its.down]["z"], its.estimate, rtol=1e-3)
        assert surfaces[its.across, its.down]["x"] == [text(value) for value in its.across_values]
    assert [number for number, *_ in data["spans"]] == sorted(found.spans)
    assert data["header"][:7] == ["trial", "state", "value", "noise", "rate", "size", "mode"]
    assert data["header"][-2:] == ["started", "seconds"]


def test_trials_of_one_process_at_the_same_time_are_of_different_workers():
    start = datetime(2026, 1, 1)

    def record(number, begin, end, pid):
        began, ended = (time and start + timedelta(seconds=time) for time in (begin, end))
        its = {"started": began, "ended": ended, "holder": {"machine": "m", "pid": pid}}
        return made.record(number, {"x": 0.5}, "done", 1.0, **its)

    records = [record(0, 1, 5, 7), record(1, 2, 4, 7), record(2, 4, 9, 7), record(3, 3, 6, 8), record(4, 9, None, 7)]
    study = Study(Path("s.toml"), ("m",), space={"x": Float(0, 1)})
    found = Findings(study, records, believed(study, records))
    assert {number: span.worker for number, span in found.spans.items()} == {0: 0, 1: 1, 3: 2, 2: 1, 4: 0}
    assert (found.spans[2].start, found.spans[2].end, found.spans[4].end) == (3, 8, 8)
    text = whole_page(found)
    assert "3 workers in 8 s, busy for 58% of that time." in text


def test_the_command_to_paste_and_the_changes_are_on_the_page():
    study = Study(Path("s.toml"), ("./run", "<a b>", "{x}"), space={"x": Float(0, 1)})
    records = [made.record(0, {"x": 0.5}, "done", 1.0)]
    found = Findings(study, records, believed(study, records))
    text = whole_page(found)
    assert '<div class="command"><code>./run &#x27;&lt;a b&gt;&#x27; 0.5</code></div>' in text
    assert "Changes to your settings" not in text

    class Changed(Estimate):
        changes = (("x", 0.1, 0.5, 2.0, 1.0, 3.0),)

    found.__dict__["best"] = Changed({"x": 0.5}, 1.0, 0.5, 1.5)
    assert "<td>x</td><td>0.1</td><td>0.5</td><td>2</td><td>1 to 3</td>" in whole_page(found)
    assert 'class="command"' not in whole_page(Findings(replace(study, command=()), records, found.optimizer))


@pytest.fixture
def live(study, tmp_path):
    """A copy of the study that may change, and a server for its page."""
    shutil.copytree(study.folder, tmp_path / "copy")
    mine = Study(tmp_path / "copy" / "s.toml", study.command, space=study.space, name=study.name, storage=study.storage)
    with server(mine, 0) as found:
        thread = Thread(target=found.serve_forever, args=(0.05,))
        thread.start()
        yield mine, found
        found.shutdown()
        thread.join()


def ask(found, method="GET", path="/", **headers):
    connection = http.client.HTTPConnection(*found.server_address, timeout=30)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer, text


@pytest.mark.slow
def test_the_live_page_listens_on_loopback_only_and_changes_nothing(live):
    mine, found = live
    assert found.server_address[0] == "127.0.0.1"
    before = {path.name: path.read_bytes() for path in mine.folder.iterdir() if path.suffix in (".db", ".bak")}
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        assert ask(found, method)[0].status == 501
    assert ask(found, "HEAD")[1] == ""
    assert ask(found, path="/../s.db")[0].status == 404
    assert ask(found, path="/s.db")[0].status == 404
    assert ask(found, Host="evil.example:80")[0].status == 403
    assert ask(found)[0].status == ask(found, Host="localhost")[0].status == 200
    assert before == {path.name: path.read_bytes() for path in mine.folder.iterdir() if path.suffix in (".db", ".bak")}


@pytest.mark.slow
def test_the_live_page_is_fetched_again_only_if_something_has_changed(live):
    _, found = live
    answer, text = ask(found, path="/content")
    assert "<h1>" in text
    assert ask(found, path="/content", **{"If-None-Match": answer.headers["ETag"]})[0].status == 304
    policy = ask(found)[0].headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


@pytest.mark.slow
def test_the_live_page_says_that_a_study_is_over_though_no_result_has_come(live):
    mine, found = live
    answer, text = ask(found, path="/content")
    assert "Time limit reached" not in text
    with Store(mine) as store:
        store.out_of_time()
    found.watch._rested_at = 0.0
    answer, text = ask(found, path="/content", **{"If-None-Match": answer.headers["ETag"]})
    assert answer.status == 200
    assert "Time limit reached (" in text


@pytest.mark.slow
def test_many_results_in_a_row_are_not_drawn_one_by_one(live, monkeypatch):
    mine, found = live
    monkeypatch.setattr(watch, "REST", 1000.0)
    before = ask(found, path="/content")[1]
    with Store(mine) as store:
        trial = store.claim(lambda records: suggested(records[0].params, arrived(records)[1])).trial
        store.tell(outcome(trial.number, 0.1, "", 0.1))
    assert ask(found, path="/content")[1] == before
    found.watch._rested_at = 0.0
    assert "43 measurements" in ask(found, path="/content")[1]


def test_trouble_with_the_storage_is_shown_and_the_page_stays(live, browser):
    mine, found = live
    (mine.folder / "s.db").write_bytes(b"damaged" * 1000)
    answer, text = ask(found, path="/content")
    assert answer.status == 503
    assert "the file is damaged" in text


def test_a_page_that_cannot_be_drawn_is_said_to_be(live, monkeypatch):
    monkeypatch.setattr("noregret.studies.page.watch.content", lambda findings: 1 / 0)
    answer, text = ask(live[1], path="/content")
    assert answer.status == 500
    assert text == "this page cannot be drawn, which is noregret's fault: ZeroDivisionError: division by zero"


@pytest.mark.slow
def test_watch_needs_nothing_of_the_service():
    names = ["fastapi", "fastapi_swagger", "prometheus_client", "pydantic", "starlette", "uvicorn"]
    code = f"import sys; sys.modules.update(dict.fromkeys({names})); import noregret.studies.page.watch"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.slow
def test_watch_as_a_command(study, tmp_path):
    (tmp_path / "s.toml").write_text(
        'command = ["echo", "{x}"]\n[budget]\nevaluations = 3\n[parameters.x]\ntype = "float"\nlow = 0\nhigh = 1\n'
    )
    command = [sys.executable, "-m", "noregret", "watch", tmp_path / "s.toml", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    address = re.match(r"http://(127.0.0.1):(\d+)/", process.stdout.readline())
    assert process.stdout.readline().startswith("waiting for the study: ")
    with socket.create_connection((address[1], int(address[2])), 10):
        pass
    process.send_signal(2)
    assert process.wait(30) == 130
    process.communicate()


@pytest.mark.slow
def test_a_live_page_started_before_its_study_waits_for_it(tmp_path, monkeypatch):
    path = tmp_path / "s.toml"
    path.write_text(
        'command = ["echo", "{x}"]\n[budget]\nevaluations = 3\n[parameters.x]\ntype = "float"\nlow = 0\nhigh = 1\n'
    )
    monkeypatch.setattr(watch, "REST", 0.0)
    with server(load(path), 0) as found:
        thread = Thread(target=found.serve_forever, args=(0.05,))
        thread.start()
        found.watch.findings()
        assert "s.db does not exist yet: 'noregret tune' makes it" in found.watch.waiting
        assert "Nothing has been measured yet." in ask(found)[1]
        assert main(["tune", str(path)]) == 0
        assert "3 measurements of 3 planned" in ask(found, path="/content")[1]
        assert found.watch.waiting == ""
        (tmp_path / ".noregret" / "s.db").rename(tmp_path / "elsewhere.db")
        assert ask(found, path="/content")[0].status == 503
        found.shutdown()
        thread.join()


@pytest.mark.slow
def test_a_port_that_is_taken(live, tmp_path, capsys):
    (tmp_path / "s.toml").write_text(
        'command = ["echo", "{x}"]\n[budget]\nevaluations = 1\n[parameters.x]\ntype = "float"\nlow = 0\nhigh = 1\n'
    )
    assert main(["tune", str(tmp_path / "s.toml")]) == 0
    assert main(["watch", str(tmp_path / "s.toml"), "--port", str(live[1].server_address[1])]) == 2
    assert "cannot be used: Address already in use: choose another one" in capsys.readouterr().err


def test_without_a_port_the_next_free_one_is_taken(study, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr(watch, "PORT", port)
        with server(study) as found:
            assert found.server_address[1] > port
