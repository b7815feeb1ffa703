"""The report and the live page, in a real browser."""

import http.client
import json
import re
import shutil
import socket
import struct
import subprocess
import sys
import time
from html import escape, unescape
from threading import Thread

import numpy as np
import pytest

from noregret.cli import main
from noregret.optimizer.spaces.parameters import Choice, Float, Int
from noregret.tune.measuring.measure import Outcome
from noregret.tune.page.watch import CONNECTIONS, server
from noregret.tune.store.records import Suggestion, arrived
from noregret.tune.store.store import Store
from noregret.tune.study.reading import load
from noregret.tune.study.results import WallTime
from noregret.tune.study.study import Budget, Study
from noregret.tune.work.running import report

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
    """A study with noise, outliers, failures, repeats and names that are not nice."""
    folder = tmp_path_factory.mktemp("pages")
    space = {"rate": Float(0.001, 1.0, log=True), "size": Int(1, 64), "mode": Choice(["fast", NASTY, "slow"])}
    found = Study(
        folder / "s.toml", ("m",), space, name=NASTY, storage="sqlite:///s.db", budget=Budget(rounds=60), lease=60
    )
    rng = np.random.default_rng(0)
    with Store(found) as store:
        for i in range(45):
            trial = store.claim(lambda records: Suggestion(_params(rng, records), arrived(records)[1])).trial
            params = trial.params
            value = (np.log10(params["rate"]) + 2) ** 2 + params["size"] / 64 + (params["mode"] == "slow")
            value += 0.1 * rng.standard_normal() + (100 if i % 23 == 5 else 0)
            failure = Outcome(None, f"exit code 1 {NASTY}", 0.1, f"trouble {NASTY}")
            store.tell(trial.number, failure if i % 13 == 7 else Outcome(float(value), "", 0.1))
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
    path.write_text(text.replace("</body>", f"{PROBE}</body>"), encoding="utf-8")
    shown = browser(path.as_uri(), "--dump-dom", "--virtual-time-budget=5000", width=width)
    assert "CONSOLE" not in shown.stderr, shown.stderr
    return json.loads(unescape(re.search(r'data-probe="([^"]*)"', shown.stdout)[1]))


@pytest.mark.slow
@pytest.mark.parametrize("width", [1200, 500])
def test_a_browser_shows_the_whole_report_on_desks_and_phones(browser, page, tmp_path, width):
    found = probed(browser, tmp_path / "r.html", page, width)
    sections = ["best", "history", "effects", "noise", "repeats", "outliers", "failures", "trials", "how"]
    assert found["sections"] == sections
    assert found["charts"] == 1 + 3 + 1
    assert found["narrow"] > 250
    assert found["overflow"] == 0
    assert found["smallest"] > 5  # labels can be read


def test_the_report_needs_nothing_else_and_takes_no_text_for_markup(page):
    assert "alert(1)" in page
    assert "<script" not in page
    assert escape(NASTY) in page
    assert not re.search(r"""(src|href)=["']?(?!data:)\w""", page)
    assert "http" not in re.sub(r"http://www.w3.org/\S+", "", page)


def test_the_report_says_how_sure_it_is_in_plain_words(page):
    text = unescape(re.sub(r"<[^>]+>", " ", page))
    assert "42 measurements of 60 planned, 3 failed runs" in text
    assert "Best setting, lowest expected result" in text
    assert "probably between" in text
    assert "clearly worse" in text
    assert "The noise has heavy tails" in text
    assert re.search(r"\d+ measurements \([\d.]+ %\) disagree with what all others say. Nothing was thrown away", text)
    for jargon in ("kernel", "posterior", "regret", "Gaussian", "arm"):
        assert not re.search(rf"\b{jargon}", text.replace("noregret", ""), re.IGNORECASE)


@pytest.mark.slow
def test_reports_of_studies_that_have_hardly_begun(tmp_path):
    study = Study(tmp_path / "s.toml", ("m",), {"x": Float(0, 1)}, storage="sqlite:///s.db", result=WallTime())
    with Store(study) as store:
        assert "Nothing has been measured yet" in report(study)
        for i in range(8):
            trial = store.claim(lambda records: Suggestion({"x": len(records) / 10}, arrived(records)[1])).trial
            assert "<h1>study</h1>" in report(study)
            store.tell(trial.number, Outcome(1.5, "", 0.1))
            found = report(study)
            assert ">1.5 s<" in found
            assert ("measured once, so nobody knows" in found) == (i == 0)


def test_a_table_of_candidates_is_ranked(tmp_path):
    rows = [{"machine": name, "nodes": nodes} for name in ("small", "large") for nodes in (1, 2, 4, 8)]
    study = Study(tmp_path / "s.toml", ("m",), rows, storage="sqlite:///s.db")
    with Store(study) as store:
        for row in rows * 2:
            trial = store.claim(lambda records, row=row: Suggestion(row, arrived(records)[1])).trial
            store.tell(trial.number, Outcome(row["nodes"] + 10.0 * (row["machine"] == "small"), "", 0.1))
    page = report(study)
    assert "Of 8 candidates" in page
    first = re.search(r'id="candidates".*?<tbody><tr>(.*?)</tr>', page)[1]
    assert re.findall(r"<td>(.*?)</td>", first)[2:] == ["2", "large", "1"]
    assert re.search(r"lower than the middle of all settings measured, 9.5", page)


@pytest.mark.slow
def test_a_few_settings_far_worse_than_the_others_do_not_flatten_the_charts(tmp_path):
    study = Study(tmp_path / "s.toml", ("m",), {"x": Float(0, 1)}, storage="sqlite:///s.db", goal="maximize")
    with Store(study) as store:
        for i in range(30):
            trial = store.claim(lambda records, i=i: Suggestion({"x": i / 30}, arrived(records)[1])).trial
            store.tell(trial.number, Outcome(-1e6 if i in (3, 4) else i / 30, "", 0.1))
    history = re.search(r'id="history".*?</section>', report(study))[0]
    assert history.count('beyond"') == 4  # two, on wide pages and on narrow ones
    assert "Arrowheads are measurements beyond the edge." in history
    assert ("Green" in history) == ('class="chosen' in history)
    assert "Circles" not in history
    ticks = re.findall(r'text-anchor="end">([^<]*)<', history)
    assert all(abs(float(tick)) < 10 for tick in ticks)


@pytest.fixture
def live(study, tmp_path):
    """A copy of the study that may change, and a server for its page."""
    shutil.copytree(study.folder, tmp_path / "copy")
    mine = Study(tmp_path / "copy" / "s.toml", study.command, study.space, name=study.name, storage=study.storage)
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


def test_the_live_page_is_fetched_again_only_if_something_has_changed(live):
    _, found = live
    answer, text = ask(found, path="/content")
    assert "<h1>" in text
    assert ask(found, path="/content", **{"If-None-Match": answer.headers["ETag"]})[0].status == 304
    policy = ask(found)[0].headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


@pytest.mark.slow
def test_a_browser_sees_results_arrive(live, browser, tmp_path):
    mine, found = live
    address = f"http://127.0.0.1:{found.server_address[1]}/"
    before = ask(found)[1].count("<title>trial ")

    def arrive():
        time.sleep(1)
        with Store(mine) as store:
            trial = store.claim(lambda records: Suggestion(records[0].params, arrived(records)[1])).trial
            store.tell(trial.number, Outcome(0.123456, "", 0.1))

    thread = Thread(target=arrive)
    thread.start()
    shown = browser(address, "--dump-dom", "--virtual-time-budget=120000")
    thread.join()
    assert "CONSOLE" not in shown.stderr, shown.stderr
    assert "0.123456" in shown.stdout
    assert shown.stdout.count("<title>trial ") > before
    assert 'id="live" role="status" class="">live, looked at' in shown.stdout


def test_trouble_with_the_storage_is_shown_and_the_page_stays(live, browser):
    mine, found = live
    (mine.folder / "s.db").write_bytes(b"damaged" * 1000)
    answer, text = ask(found, path="/content")
    assert answer.status == 503
    assert "the file is damaged" in text


def test_a_page_that_cannot_be_drawn_is_said_to_be(live, monkeypatch):
    monkeypatch.setattr("noregret.tune.page.watch.content", lambda findings: 1 / 0)
    answer, text = ask(live[1], path="/content")
    assert answer.status == 500
    assert text == "this page cannot be drawn, which is noregret's fault: ZeroDivisionError: division by zero"


@pytest.mark.slow
def test_watch_as_a_command(study, tmp_path):
    (tmp_path / "s.toml").write_text(
        'command = ["echo", "{x}"]\n[budget]\nrounds = 3\n[parameters.x]\ntype = "float"\nlow = 0\nhigh = 1\n'
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


def connected(found):
    return socket.create_connection(found.server_address, 10)


@pytest.mark.slow
def test_idle_connections_are_closed_and_few_are_kept(live, monkeypatch, capfd):
    _, found = live
    monkeypatch.setattr(found.RequestHandlerClass, "timeout", 0.5)
    idle = [connected(found) for _ in range(CONNECTIONS)]
    with connected(found) as one_more:
        assert one_more.recv(1) == b""
    for each in idle:
        each.settimeout(20)
        assert each.recv(1) == b""
        each.close()
    assert ask(found)[0].status == 200
    assert "".join(capfd.readouterr()) == ""


@pytest.mark.slow
def test_a_browser_that_has_gone_is_no_error(live, capfd):
    _, found = live
    for _ in range(3):
        with connected(found) as gone:
            gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset, not an end
            gone.sendall(b"GET / HTTP/1.0\r\nHost: localhost\r\n\r\n")
    assert ask(found)[0].status == 200
    time.sleep(0.2)
    assert "".join(capfd.readouterr()) == ""


@pytest.mark.slow
def test_a_live_page_started_before_its_study_waits_for_it(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text(
        'command = ["echo", "{x}"]\n[budget]\nrounds = 3\n[parameters.x]\ntype = "float"\nlow = 0\nhigh = 1\n'
    )
    with server(load(path), 0) as found:
        thread = Thread(target=found.serve_forever, args=(0.05,))
        thread.start()
        assert "s.db does not exist yet: 'noregret tune' makes it" in found.watch.waiting
        assert "Nothing has been measured yet." in ask(found)[1]
        assert main(["tune", str(path)]) == 0
        assert "3 measurements of 3 planned" in ask(found, path="/content")[1]
        assert found.watch.waiting == ""
        (tmp_path / "s.db").rename(tmp_path / "elsewhere.db")
        assert ask(found, path="/content")[0].status == 503
        found.shutdown()
        thread.join()


@pytest.mark.slow
def test_a_live_page_waits_for_a_study_on_a_server(postgresql, tmp_path):
    storage = postgresql.new_database()
    study = Study(tmp_path / "s.toml", ("m",), {"x": Float(0, 1)}, storage=storage)
    with server(study, 0) as found:
        assert "has no study yet" in found.watch.waiting
        Store(Study(tmp_path / "s.toml", ("m",), {"x": Float(0, 1)}, name="another", storage=storage)).close()
        assert found.watch.findings().records == []
        assert "has no study 'study' yet: it has 'another'" in found.watch.waiting


def test_a_port_that_is_taken(live, tmp_path, capsys):
    (tmp_path / "s.toml").write_text(
        'command = ["echo", "{x}"]\n[budget]\nrounds = 1\n[parameters.x]\ntype = "float"\nlow = 0\nhigh = 1\n'
    )
    assert main(["tune", str(tmp_path / "s.toml")]) == 0
    assert main(["watch", str(tmp_path / "s.toml"), "--port", str(live[1].server_address[1])]) == 2
    assert "cannot be used: Address already in use: choose another one" in capsys.readouterr().err
