"""``noregret reproduce`` as a user types it."""

import re
import sys

import pytest

from noregret.bandits.lab.figures import FIGURES
from noregret.bandits.lab.page import runs_in
from noregret.cli import main

pytestmark = pytest.mark.slow

SMALL = ["--rounds", "30", "--trials", "2", "--jobs", "1"]


def command(*args):
    return [sys.executable, "-m", "noregret", "reproduce", *map(str, args)]


def trials_in(out):
    return len(list((out / "trials").rglob("*.json")))


def test_list_shows_every_figure_with_its_scale_and_time(capsys):
    assert main(["reproduce", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(FIGURES)
    assert re.search(r"kernelized/fig1 .*30,000 rounds x 10 trials, about [\d.]+ min on two cores\)$", lines[0])


def test_a_figure_is_reproduced_and_the_page_named(tmp_path, capsys):
    assert main(["reproduce", "bkb/fig1", *SMALL, "--out", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    claims, total, page = out.splitlines()
    scale = r"\(30 rounds, 2 trials; in full: 215 rounds, \d+ trials\)"
    assert re.fullmatch(rf"bkb/fig1: claims: [1-3] [a-z ,1-3]+ {scale}", claims)
    assert re.fullmatch(r"all claims: [1-3] [a-z ,1-3]+ \(at a small scale\)", total)
    assert page == str(tmp_path / "index.html")
    assert err == ""
    assert (tmp_path / "index.html").exists()


def test_figures_of_earlier_commands_stay_on_the_page(tmp_path):
    for name in ("bkb/fig1", "heavy-tails/fig1b"):
        main(["reproduce", name, *SMALL, "--out", str(tmp_path)])
    page = (tmp_path / "index.html").read_text()
    assert 'id="bkb-fig1"' in page
    assert 'id="heavy-tails-fig1b"' in page
    assert len(runs_in(tmp_path)) == 2


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["kernelized/fig9"], r"unknown figure 'kernelized/fig9' \(did you mean .*kernelized/fig4.*\?\)"),
        (["bkb/fig1", "--out", __file__], "File exists"),
        (["bkb/fig1", "--scheduler", "tcp://127.0.0.1:1"], "only dask has one"),
        (["bkb/fig1", "--backend", "dask"], "dask needs the address of its scheduler"),
        (["heavy-tails/fig1d", "--data", "nowhere"], "nothing is left to run"),
    ],
)
def test_what_cannot_be_is_refused(args, message, capsys, tmp_path):
    out = [] if "--out" in args else ["--out", str(tmp_path)]
    assert main(["reproduce", *args, *SMALL, *out]) == 2
    assert re.search(rf"^noregret: .*{message}", capsys.readouterr().err, re.MULTILINE)


def test_a_failed_figure_is_told_by_the_exit_code(tmp_path, capsys, monkeypatch):
    def broken(figure, results):
        raise RuntimeError("no ink")

    monkeypatch.setitem(FIGURES, "bkb/fig1", FIGURES["bkb/fig1"])
    object.__setattr__(FIGURES["bkb/fig1"], "draw", broken)
    try:
        assert main(["reproduce", "bkb/fig1", *SMALL, "--out", str(tmp_path)]) == 1
    finally:
        from noregret.bandits.lab.figures.bkb import draw_starvation as draw

        object.__setattr__(FIGURES["bkb/fig1"], "draw", draw)
    assert "failed: RuntimeError: no ink" in capsys.readouterr().out
