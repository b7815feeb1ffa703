"""The report and the live page in a real browser, and connections that stay open."""

import socket
import struct
import time
from threading import Thread

import pytest
from tests.tune import test_pages
from tests.tune.test_pages import PROBE, ask, probed

from noregret.optimizer import Float
from noregret.tune.measuring import Outcome
from noregret.tune.page import watch
from noregret.tune.page.watch import CONNECTIONS, server
from noregret.tune.store.records import Suggestion, arrived
from noregret.tune.store.store import Store
from noregret.tune.study.results import WallTime
from noregret.tune.study.study import Study
from noregret.tune.work.running import report

live = test_pages.live
page = test_pages.page
study = test_pages.study


USE = """
<script>
addEventListener("load", () => {
  const cells = column => [...document.querySelectorAll("#trials tbody tr")].filter(row => !row.hidden)
    .map(row => row.cells[column].textContent);
  const field = document.querySelector("#trials input"), heads = document.querySelectorAll("#trials th button");
  const found = {};
  heads[1].click(); found.ascending = cells(1);
  heads[1].click(); found.descending = cells(1);
  field.value = "size>32 fast"; field.dispatchEvent(new Event("input")); found.filtered = [cells(4), cells(5)];
  document.body.dataset.probe = JSON.stringify(found);
});
</script>
"""


def test_the_table_of_trials_sorts_and_filters(browser, page, tmp_path, monkeypatch):
    monkeypatch.setattr(test_pages, "PROBE", USE)
    found = probed(browser, tmp_path / "r.html", page, 1200)
    numbers = [float(cell) for cell in found["ascending"] if cell != "failed"]
    assert len(numbers) == 42
    assert numbers == sorted(numbers)
    assert found["ascending"][42:] == ["failed"] * 3
    assert [float(cell) for cell in found["descending"][:42]] == numbers[::-1]
    assert found["descending"][42:] == ["failed"] * 3
    sizes, modes = found["filtered"]
    assert sizes
    assert all(float(size) > 32 for size in sizes)
    assert set(modes) == {"fast"}


def test_a_browser_runs_nothing_but_our_own_script(browser, page, tmp_path):
    (tmp_path / "r.html").write_text(page.replace("</main>", f"</main>{PROBE}"), encoding="utf-8")
    shown = browser((tmp_path / "r.html").as_uri(), "--dump-dom", "--virtual-time-budget=5000")
    assert "data-probe" not in shown.stdout.split("<script>")[0]
    assert 'placeholder="filter' in shown.stdout  # ours has run


def test_a_browser_sees_results_arrive(live, browser, tmp_path, monkeypatch):
    mine, found = live
    monkeypatch.setattr(watch, "REST", 0.0)
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
    assert "<td>0.1235</td>" in shown.stdout
    assert shown.stdout.count("<title>trial ") > before
    assert 'id="live" role="status" class="">live, updated' in shown.stdout


def connected(found):
    return socket.create_connection(found.server_address, 10)


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


def test_a_browser_that_has_gone_is_no_error(live, capfd):
    _, found = live
    for _ in range(3):
        with connected(found) as gone:
            gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset, not an end
            gone.sendall(b"GET / HTTP/1.0\r\nHost: localhost\r\n\r\n")
    assert ask(found)[0].status == 200
    time.sleep(0.2)
    assert "".join(capfd.readouterr()) == ""


def test_a_live_page_waits_for_a_study_on_a_server(postgresql, tmp_path):
    storage = postgresql.new_database()
    study = Study(tmp_path / "s.toml", ("m",), {"x": Float(0, 1)}, storage=storage)
    with server(study, 0) as found:
        found.watch.findings()
        assert "has no study yet" in found.watch.waiting
        Store(Study(tmp_path / "s.toml", ("m",), {"x": Float(0, 1)}, name="another", storage=storage)).close()
        assert found.watch.findings().records == []
        assert "has no study 'study' yet: it has 'another'" in found.watch.waiting


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
            assert ("too few results for an interval" in found) == (i < 2)
