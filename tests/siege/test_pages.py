"""The report and the live page in a real browser, and connections that stay open."""

import re
import socket
import struct
import time
from datetime import datetime, timedelta
from html import unescape
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from tests.studies import made, test_pages
from tests.studies.made import outcome, suggested
from tests.studies.test_pages import PROBE, ask, probed, study

from noregret.cli import main
from noregret.optimizer import Float
from noregret.studies.learning.findings import Findings
from noregret.studies.learning.suggest import believed
from noregret.studies.page import watch
from noregret.studies.page.page import page as whole_page
from noregret.studies.page.watch import CONNECTIONS, server
from noregret.studies.running import report
from noregret.studies.store.records import arrived
from noregret.studies.store.store import Store
from noregret.studies.study.results import WallTime
from noregret.studies.study.study import Study, text

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
  heads[2].click(); found.ascending = cells(2);
  heads[2].click(); found.descending = cells(2);
  field.value = "size>32 fast"; field.dispatchEvent(new Event("input")); found.filtered = [cells(5), cells(6)];
  document.body.dataset.probe = JSON.stringify(found);
});
</script>
"""


def test_the_table_of_trials_sorts_and_filters(browser, page, tmp_path, monkeypatch):
    monkeypatch.setattr(test_pages, "PROBE", USE)
    found = probed(browser, tmp_path / "r.html", page, 1200)
    numbers = [float(cell) for cell in found["ascending"] if cell]
    assert len(numbers) == 42
    assert numbers == sorted(numbers)
    assert found["ascending"][42:] == [""] * 3
    assert [float(cell) for cell in found["descending"][:42]] == numbers[::-1]
    assert found["descending"][42:] == [""] * 3
    sizes, modes = found["filtered"]
    assert sizes
    assert all(float(size) > 32 for size in sizes)
    assert set(modes) == {"fast"}


LOOK = """
<script>
const look = setInterval(() => {
  if (document.body.dataset.drawn === undefined) return;
  clearInterval(look);
  SVGElement.prototype.setPointerCapture = () => {};  // there is no such pointer
  const seen = name => [...document.querySelectorAll(name)].find(its => its.getBoundingClientRect().width > 0);
  const fire = (svg, kind, x, y) => {
    const at = new DOMPoint(x, y).matrixTransform(svg.getScreenCTM());
    const place = {clientX: at.x, clientY: at.y, pointerId: 1, button: 0, pointerType: "mouse", bubbles: true};
    svg.dispatchEvent(new PointerEvent(kind, place));
  };
  const labels = svg => [...svg.querySelectorAll(".ticks text")].map(its => its.textContent);
  const tip = document.getElementById("tip"), history = seen("#history svg"), map = seen("svg.map"), found = {};
  const [x, y] = history.querySelector(".chosen, .dot").getAttribute("d").match(/[\\d.]+/g);
  history.scrollIntoView();
  fire(history, "pointermove", x, y);
  found.dot = tip.innerText;
  const box = tip.getBoundingClientRect();
  found.inside = box.left >= 0 && box.right <= innerWidth && box.top >= 0 && box.bottom <= innerHeight;
  fire(seen("#effects svg"), "pointermove", 100, 12);
  found.curve = tip.innerText;
  found.before = labels(history);
  fire(history, "pointerdown", 100, 100); fire(history, "pointermove", 200, 101); fire(history, "pointerup", 200, 101);
  found.zoomed = labels(history);
  found.scaled = history.querySelector(".marks").getAttribute("transform");
  seen("#history .reset").click();
  found.after = labels(history);
  const [across, up] = document.querySelectorAll("#choice select");
  found.pair = [across.value, up.value];
  const shades = () => map.querySelector(".shade7").getAttribute("d");
  const one = shades();
  across.value = [...across.options].map(its => its.value).find(its => !found.pair.includes(its));
  across.dispatchEvent(new Event("change"));
  found.changed = [one !== shades(), map.querySelector(".label.x").textContent === across.value];
  up.value = across.value; up.dispatchEvent(new Event("change"));
  found.swapped = [across.value, up.value];
  found.dots = map.querySelector(".dot").getAttribute("d").split("h0").length - 1;
  fire(map, "pointermove", 60, 15);
  found.cell = tip.innerText;
  const [button, code] = [".command button", ".command code"].map(name => document.querySelector(name));
  const writeText = async text => { found.written = text === code.textContent; };  // no other process to wait for
  Object.defineProperty(navigator, "clipboard", {value: {writeText}});
  new MutationObserver(() => {
    found.copied ??= button.textContent;
    document.body.dataset.probe = JSON.stringify(found);
  }).observe(button, {childList: true});
  button.click();
}, 10);
</script>
"""


@pytest.mark.parametrize("width", [1200, 500])
def test_values_under_the_pointer_zoom_and_the_choice_of_the_map(browser, page, tmp_path, monkeypatch, width):
    monkeypatch.setattr(test_pages, "PROBE", LOOK)
    found = probed(browser, tmp_path / "r.html", page, width)
    assert re.match(r"trial \d+", found["dot"])
    assert {"result", "rate", "size", "mode", "took"} <= set(found["dot"].split("\n"))
    assert found["inside"]
    assert re.search(r"^rate [\d.]+\s+result\s+(over )?[\d.]+ \(.* to .*\)$", found["curve"])
    assert found["zoomed"] != found["before"] == found["after"]
    assert re.fullmatch(r"translate\(.*\) scale\([\d.]+ 1\)", found["scaled"])  # a level drag selects trials only
    assert found["changed"] == [True, True]
    assert found["swapped"] == [found["pair"][1], next(n for n in ("rate", "size", "mode") if n not in found["pair"])]
    assert 20 < found["dots"] < 42
    assert found["cell"].startswith("about ")
    assert found["written"]
    assert found["copied"] == "Copied"


@pytest.mark.slow
def test_a_script_lists_the_trials_that_the_page_leaves_out(browser, study, tmp_path, monkeypatch):
    monkeypatch.setattr("noregret.studies.page.page.SHOWN", 5)
    text = report(study)
    assert "The 5 best and the 5 last of 45 trials are listed. The download has all." in text
    count = """<script>const look = setInterval(() => {
      if (document.body.dataset.drawn === undefined) return;
      clearInterval(look);
      document.body.dataset.probe = JSON.stringify(
        [...document.querySelectorAll("#trials tbody tr")].map(row => [...row.cells].map(its => its.textContent)));
      }, 10);</script>"""
    monkeypatch.setattr(test_pages, "PROBE", count)
    rows = probed(browser, tmp_path / "r.html", text, 1200)
    monkeypatch.setattr("noregret.studies.page.page.SHOWN", 50)
    monkeypatch.setattr("noregret.studies.page.page._file", lambda name: "")
    table = re.search(r'id="trials".*?<tbody>(.*?)</tbody>', report(study))[1]
    listed = [re.findall(r"<td>(.*?)</td>", row) for row in table.split("</tr>")[:-1]]
    assert rows == [[unescape(cell) for cell in row] for row in listed]


def test_a_browser_runs_nothing_but_our_own_script(browser, page, tmp_path):
    (tmp_path / "r.html").write_text(page.replace("</main>", f"</main>{PROBE}"), encoding="utf-8")
    shown = browser((tmp_path / "r.html").as_uri(), "--dump-dom", "--virtual-time-budget=5000")
    assert "data-probe" not in shown.stdout.split("<script>")[0]
    assert 'placeholder="filter' in shown.stdout  # ours has run


def test_a_browser_sees_results_arrive(live, browser, tmp_path, monkeypatch):
    mine, found = live
    monkeypatch.setattr(watch, "REST", 0.0)
    address = f"http://127.0.0.1:{found.server_address[1]}/"
    before = ask(found)[1].count("h0")

    def arrive():
        time.sleep(1)
        with Store(mine) as store:
            trial = store.claim(lambda records: suggested(records[0].params, arrived(records)[1])).trial
            store.tell(outcome(trial.number, 0.123456, "", 0.1))

    thread = Thread(target=arrive)
    thread.start()
    shown = browser(address, "--dump-dom", "--virtual-time-budget=120000")
    thread.join()
    assert "CONSOLE" not in shown.stderr, shown.stderr
    assert "<td>0.1235</td>" in shown.stdout
    assert shown.stdout.count("h0") > before
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
    study = Study(tmp_path / "s.toml", ("m",), space={"x": Float(0, 1)}, storage=storage)
    with server(study, 0) as found:
        found.watch.findings()
        assert "has no study yet" in found.watch.waiting
        Store(Study(tmp_path / "s.toml", ("m",), space={"x": Float(0, 1)}, name="another", storage=storage)).close()
        assert found.watch.findings().records == []
        assert "has no study 'study' yet: it has 'another'" in found.watch.waiting


@pytest.mark.slow
def test_reports_of_studies_that_have_hardly_begun(tmp_path):
    study = Study(tmp_path / "s.toml", ("m",), space={"x": Float(0, 1)}, storage="sqlite:///s.db", result=WallTime())
    with Store(study) as store:
        assert "Nothing has been measured yet" in report(study)
        for i in range(8):
            trial = store.claim(lambda records: suggested({"x": len(records) / 10}, arrived(records)[1])).trial
            assert "<h1>study</h1>" in report(study)
            store.tell(outcome(trial.number, 1.5, "", 0.1))
            found = report(study)
            assert ">1.5 s<" in found
            assert ("too few results for an interval" in found) == (i < 2)


def test_the_page_of_21_parameters_and_500_trials_is_at_most_500_kb():
    rng, start = np.random.default_rng(0), datetime(2026, 1, 1)
    study = Study(Path("s.toml"), ("m",), space={f"parameter_{i:02d}": Float(0, 1) for i in range(21)})
    records = []
    for i in range(500):
        params = {name: float(rng.uniform()) for name in study.names}
        value = sum((its - 0.3) ** 2 / (k + 1) for k, its in enumerate(params.values())) + 0.1 * rng.standard_normal()
        began = start + timedelta(seconds=float(i // 3) + rng.uniform())
        times = {"started": began, "ended": began + timedelta(seconds=0.9), "holder": {"machine": "m", "pid": i % 3}}
        records.append(made.record(i, params, "done", float(value), seconds=float(rng.uniform()), **times))
    text = whole_page(Findings(study, records, believed(study, records)))
    assert 300_000 < len(text.encode()) <= 500_000


def test_two_studies_on_one_page(tmp_path, capsys):
    for name, better in (("one", 0), ("two", 5)):
        (tmp_path / f"{name}.toml").write_text(
            f'name = "{name}"\ncommand = ["echo", "{{x}}"]\n[budget]\nevaluations = 12\n[parameters.x]\n'
            f"type = 'float'\nlow = {better}\nhigh = {better + 1}\n"
        )
        assert main(["tune", str(tmp_path / f"{name}.toml")]) == 0
    command = ["report", str(tmp_path / "one.toml"), "--against", str(tmp_path / "two.toml")]
    assert main(command) == 0
    section = re.search(r'<section id="against">.*?</section>', (tmp_path / "one.html").read_text())[0]
    assert "<h2>Compared with two</h2>" in section
    assert re.search(r"the best setting of one is better by [\d.]+ \(\d+%\); clearly so", section)
    assert section.count('class="lineother"') == section.count('class="line"') == 2  # for wide pages and narrow ones
    assert main([*command, "--json"]) == 2
    (tmp_path / "two.toml").write_text(
        (tmp_path / "two.toml").read_text().replace("[budget]", 'goal = "maximize"\n[budget]', 1)
    )
    capsys.readouterr()
    assert main(command) == 2
    assert "--against" in capsys.readouterr().err
