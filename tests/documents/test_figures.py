"""Every figure of the papers at a tiny scale: it runs, is judged and drawn, and the page shows it in a browser."""

import base64
import re
from html.parser import HTMLParser

import pytest
from tests.bandits.lab.test_figures import check_report

from noregret.bandits.lab.figures import FIGURES
from noregret.bandits.lab.reproduce import Lines, Order, reproduce
from noregret.bandits.lab.trials import Engine


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """All figures with 20 rounds and 2 trials: their reports by name, and the folder."""
    out = tmp_path_factory.mktemp("reproduction")
    order = Order(list(FIGURES.values()), out, rounds=20, trials=2, engine=Engine(2))
    return {report.name: report for report in reproduce(order, Lines())}, out


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_runs_is_judged_and_drawn(run, name):
    reports, out = run
    check_report(reports[name], out)


class Page(HTMLParser):
    """Parser of a page: images, links, ids, and references to other hosts."""

    def __init__(self, text):
        super().__init__()
        self.images, self.links, self.ids, self.outside, self.open = [], [], set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.ids.add(attributes.get("id"))
        if tag == "img":
            self.images.append(attributes)
        if tag == "a":
            self.links.append(attributes["href"])
        if tag not in ("meta", "link", "img"):
            self.open.append(tag)
        for name in ("src", "href"):
            if not attributes.get(name, "#").startswith(("#", "data:")):
                self.outside.append(attributes[name])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_whole_and_needs_nothing_else(run):
    reports, out = run
    text = (out / "index.html").read_text(encoding="utf-8")
    page = Page(text)
    assert page.open == []
    assert page.outside == []
    assert "url(" not in text
    assert "@import" not in text
    assert {link.removeprefix("#") for link in page.links} <= page.ids
    assert len(page.images) == sum(len(report.pictures) for report in reports.values())
    for image in page.images:
        kind, _, content = image["src"].partition(";base64,")
        assert kind == "data:image/svg+xml"
        assert base64.b64decode(content).startswith(b"<?xml")
        assert len(image["alt"]) > 10
    for report in reports.values():
        assert report.name.replace("/", "-") in page.ids
    assert "20 rounds, 2 trials; in full: 30,000 rounds, 10 trials" in text
    assert "(119.71 ± 23.75)" in text  # what the REDS paper prints, beside ours
    assert re.search(rf"{len(FIGURES)} figures, \d+ trials run and 0 found from before, in .* on 2 of \d+ cores", text)


PROBE = """
<script>
addEventListener("load", () => {
  const images = [...document.images], main = document.querySelector("main");
  document.title = JSON.stringify({
    images: images.length,
    shown: images.filter((i) => i.complete && i.naturalWidth > 200 && i.getBoundingClientRect().width > 200).length,
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    font: parseFloat(getComputedStyle(main).fontSize),
  });
  document.body.dataset.probe = document.title;
});
</script>
"""


@pytest.mark.parametrize("width", [1200, 390])
def test_a_browser_shows_every_picture_without_complaint(run, tmp_path, browser, width):
    reports, out = run
    probed = tmp_path / "index.html"
    probed.write_text((out / "index.html").read_text(encoding="utf-8") + PROBE, encoding="utf-8")
    shown = browser(probed.as_uri(), "--dump-dom", "--virtual-time-budget=5000", width=width)
    assert "CONSOLE" not in shown.stderr, shown.stderr
    found = re.search(r'data-probe="([^"]*)"', shown.stdout)
    assert found, shown.stdout[-500:]
    probe = found.group(1).replace("&quot;", '"')
    pictures = sum(len(report.pictures) for report in reports.values())
    assert f'"images":{pictures},"shown":{pictures},"overflow":0,' in probe
    assert '"font":16' in probe


def test_a_browser_can_take_a_screenshot(run, tmp_path, browser):
    picture = tmp_path / "page.png"
    browser((run[1] / "index.html").as_uri(), f"--screenshot={picture}")
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 50_000
