"""Every figure of the papers, at a tiny scale: it runs, is judged and drawn, and the page shows it in a browser."""

import base64
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from noregret.cli import main
from noregret.experiments.figure import Scale, Setting
from noregret.experiments.figures import FIGURES, PAPERS
from noregret.experiments.plot import style
from noregret.experiments.reproduce import Lines, Order, reproduce
from noregret.experiments.reproduce_command import chosen, missing
from noregret.experiments.trials import Engine

pytestmark = pytest.mark.slow

ISSUE = (
    "kernelized/fig1 kernelized/fig2 kernelized/fig3 kernelized/fig4 heavy-tails/fig1a heavy-tails/fig1b "
    "heavy-tails/fig1c heavy-tails/fig1d heavy-tails/fig1e heavy-tails/fig1f bkb/fig1 bkb/scaling reds/fig1 "
    "reds/table1 reds/random-exploration reds/noise-free beyond/widths beyond/sketching beyond/robust beyond/unknown "
    "beyond/contexts beyond/drift"
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """All figures with 20 rounds and 2 trials: their reports by name, and the folder."""
    out = tmp_path_factory.mktemp("reproduction")
    order = Order(list(FIGURES.values()), out, rounds=20, trials=2, engine=Engine(2))
    return {report.name: report for report in reproduce(order, Lines())}, out


def test_the_figures_are_those_of_the_papers():
    assert list(FIGURES) == ISSUE.split()
    assert {name.partition("/")[0] for name in FIGURES} == set(PAPERS)


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_runs_is_judged_and_drawn(run, name):
    report, out = run[0][name], run[1]
    assert not report.failure
    assert report.verdicts
    unlike = [bool(claim.unlike) for claim in FIGURES[name].claims]
    assert [verdict.outcome == "not comparable" for verdict in report.verdicts] == unlike
    assert report.pictures
    for picture in report.pictures:
        assert (out / name / f"{picture.file}.png").stat().st_size > 5000
        assert b"<svg" in (out / name / f"{picture.file}.svg").read_bytes()
    assert {curve.panel for curve in report.curves} == {panel.title for panel in FIGURES[name].panels}


@pytest.mark.parametrize("figure", FIGURES.values(), ids=list(FIGURES))
def test_every_figure_says_what_it_is(figure):
    assert len(figure.says) > 40
    assert len(figure.how) > 80
    assert figure.quick.rounds <= figure.scale.rounds
    assert figure.quick.trials <= figure.scale.trials
    assert 0 < figure.minutes < 10


def test_the_times_are_those_of_the_documentation(capsys):
    assert sum(figure.minutes for figure in FIGURES.values()) <= 30
    page = (Path(__file__).parents[1] / "docs" / "lab.md").read_text(encoding="utf-8")
    assert re.search(r"noregret reproduce  .*: half an hour on two cores\n", page)
    assert re.search(r"noregret reproduce --quick .*: two minutes\n", page)
    with pytest.raises(SystemExit):
        main(["reproduce", "--help"])
    assert "in two minutes" in capsys.readouterr().out


def test_keys_of_panels_are_unique_but_for_shared_trials():
    panels = {id(panel): panel for figure in FIGURES.values() for panel in figure.panels}
    keys = [panel.key for panel in panels.values()]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("figure", FIGURES.values(), ids=list(FIGURES))
def test_no_two_curves_of_a_comparison_look_the_same(figure):
    for panel in figure.panels:
        looks = [str(style(label)) for label in getattr(panel, "entrants", ())]
        assert len(set(looks)) == len(looks)


def test_figures_are_chosen_by_name_and_by_paper():
    assert [figure.name for figure in chosen(["bkb", "kernelized/fig2"])] == [
        "kernelized/fig2",
        "bkb/fig1",
        "bkb/scaling",
    ]
    assert len(chosen([])) == len(FIGURES)


def test_missing_data_are_named(tmp_path):
    figure = FIGURES["heavy-tails/fig1d"]
    assert missing(figure, tmp_path) == f"stocks_dow29.csv not found in {tmp_path}"
    (tmp_path / "stocks_dow29.csv.gz").touch()
    assert not missing(figure, tmp_path)
    assert not missing(FIGURES["bkb/fig1"], tmp_path)
    assert not any(missing(figure, None) for figure in FIGURES.values())


def test_trials_on_other_data_are_kept_apart(tmp_path):
    scale = Scale(20, 1)
    (panel,) = FIGURES["heavy-tails/fig1d"].panels
    kept = {task.path for task in panel.tasks(Setting(scale, 0))}
    assert kept.isdisjoint(task.path for task in panel.tasks(Setting(scale, 0, tmp_path)))


class Page(HTMLParser):
    """What a reader would see: images, links, ids; and what a page from a file must not have."""

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
    assert re.search(r"22 figures, \d+ trials run and 0 found from before, in .* on 2 of \d+ cores", text)


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
