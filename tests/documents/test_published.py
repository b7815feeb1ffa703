"""Measured numbers of the README and the documentation: they equal the stored results."""

import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # the benchmarks are not part of the package

from benchmarks import balance, quotes, story  # noqa: E402
from benchmarks.peers import page, results  # noqa: E402
from benchmarks.peers.ranks import ALL, mean_ranks  # noqa: E402

ROWS = results.read()


def _lines(peer, regrets, problem="hill", noise="spikes"):
    line = {"peer": peer, "problem": problem, "noise": noise, "budget": 50, "cumulative": 1.0, "seconds": 0.5}
    return [line | {"seed": seed, "recommended": regret} for seed, regret in enumerate(regrets)]


def test_the_comparison_is_what_its_results_give():
    assert (ROOT / "docs" / "peers.md").read_text(encoding="utf-8") == page.text(ROWS)
    assert (ROOT / "docs" / "reports" / "peers.md").read_text(encoding="utf-8") == page.all_tables(ROWS)
    for name in (*page.RANKED.values(), "peers_regret.svg", "peers_seconds.svg"):
        assert f"](pictures/{name})" in page.text(ROWS)
        assert (ROOT / "docs" / "pictures" / name).stat().st_size > 10_000


def test_the_comparison_changes_with_its_results():
    worse = [row | {"recommended": row["recommended"] + (row["peer"] == "noregret")} for row in ROWS]
    assert page.text(worse) != page.text(ROWS)
    assert "**It is not first** under Gaussian 0.1" in " ".join(page.text(worse).split())


@pytest.mark.slow
def test_pictures_are_drawn_beside_the_page(tmp_path):
    page.write(ROWS, tmp_path / "peers.md")
    assert {path.name for path in (tmp_path / "pictures").iterdir()} >= set(page.RANKED.values())
    assert (tmp_path / "reports" / "peers.md").read_text(encoding="utf-8") == page.all_tables(ROWS)


def test_results_are_means_over_seeds_with_their_intervals():
    (row,) = results.summarised(_lines("a", [0.1, 0.2, 0.6]), "2026-11-16")
    assert (row["runs"], row["recommended"], row["on"]) == (3, 0.3, "2026-11-16")
    assert row["recommended_half"] == pytest.approx(
        4.303 * 0.2646 / 3**0.5, abs=1e-3
    )  # Student's t, 2 degrees of freedom


def test_results_are_replaced_by_newer_ones_and_not_by_fewer_runs(tmp_path):
    old = results.summarised(_lines("a", [0.1, 0.2]) + _lines("b", [0.3, 0.4, 0.5]), "2026-11-15")
    new = results.summarised(_lines("a", [0.5, 0.7, 0.9]) + _lines("b", [0.9, 0.9]), "2026-11-16")
    both = results.replaced(old, new)
    assert [(row["peer"], row["recommended"]) for row in both] == [("a", 0.7), ("b", 0.4)]
    results.write(both, tmp_path / "kept.csv")
    assert results.read(tmp_path / "kept.csv") == both


def test_ranks_are_of_optimisers_that_met_everything():
    rows = [
        row | {"noise": noise}
        for noise in page.KINDS[:-1]
        for row in results.summarised(
            [
                line
                for p in ("hill", "valley")
                for peer, r in (("a", 0.1), ("b", 0.2))
                for line in _lines(peer, [r, r], p)
            ]
            + _lines("part", [0.0, 0.0]),
            "2026-11-16",
        )
    ]
    ranks = mean_ranks(rows, "recommended", 50)
    assert {peer: by_kind[ALL] for peer, by_kind in ranks.of.items()} == {"a": (1, 1, 1), "b": (2, 2, 2)}
    assert ranks.first("spikes") == "a"


@pytest.mark.parametrize("name", quotes.claims())
def test_pages_quote_what_was_measured(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    assert quotes.filled(text, quotes.claims()[name]) == text, "the results have changed: python -m benchmarks.quotes"
    assert not re.search(r"\d<!--", text), "names stand in claims.json"


def test_wrong_quotes_are_updated_and_missing_ones_are_errors():
    runs = quotes.numbers()["story.runs"]
    claim = "the picture has {story.runs} runs"
    assert quotes.filled("So the picture\nhas 5 runs.", [claim]) == f"So the picture\nhas {runs} runs."
    block = "The end: ```text\nold\n```\n```text\nanother\n```"
    right = quotes.filled(block, ["The end: ```text\n{demo}```"])
    assert quotes.outputs()["demo"] in right
    assert "old" not in right
    assert "another" in right
    with pytest.raises(ValueError, match="0 places match"):
        quotes.filled("nothing", [claim])
    with pytest.raises(KeyError):
        quotes.filled("5", ["{story.parsecs}"])


def test_the_readme_says_where_it_is_first_and_where_it_is_not():
    ranks = mean_ranks(ROWS, "recommended", 50)
    assert {kind for kind in page.KINDS if ranks.first(kind) == "noregret"} >= {"student-1.5", "pareto", "spikes", ALL}
    for kind in ("gaussian-0.1", "gaussian-0.5"):
        ours, *theirs = (ranks.of[name][kind] for name in ("noregret", "botorch-ucb", "botorch-lognei"))
        best = min(theirs, key=lambda rank: rank.mean)
        assert max(ours.low, best.low) <= min(ours.high, best.high), "intervals that overlap"
    assert "under Gaussian noise BoTorch is about as good" in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", ["gauss", "uniform", "cauchy"])
def test_on_the_public_suite_noregret_is_first_or_level_as_the_readme_says(kind):
    peers = ("noregret", "optuna-tpe", "cma-es", "random")
    ranks = [float(quotes.numbers()[f"bbob.50.{kind}.{peer}"]) for peer in peers]
    assert ranks[0] <= min(ranks[1:]) if kind == "uniform" else ranks[0] < min(ranks[1:])
    assert sum(ranks) == pytest.approx(10, abs=0.21), "mean ranks of four, each rounded to a tenth"


def test_the_story_of_the_readme_is_that_of_its_results():
    """Each run of the picture has a claim and a truth; the others claim too little, the interval is honest."""
    runs = story.stored()
    assert {(run.tool, run.seed) for run in runs} == {(tool, run.seed) for tool in story.TOOLS for run in runs}
    assert all(run.claimed < run.true for run in runs if run.tool != "noregret")
    for suffix in (".svg", ".png"):
        assert story.PICTURE.with_suffix(suffix).stat().st_size > 10_000
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "python -m benchmarks.story" in text


@pytest.mark.slow
def test_the_table_of_the_balance_is_that_of_the_constants_of_the_optimizer():
    text = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")
    for case in balance.CASES:
        rows = text.partition(f"| {case.title} |")[2].splitlines()[:2]
        for size, row in zip(balance.RANGES, rows, strict=True):
            bounds = [balance.bound(case, size, c, trials) for trials in balance.TRIALS for c in balance.NOISES]
            numbers = [f"{balance.first_guess(case) / size:.1f}", *(f"{bound:.2f}" for bound in bounds)]
            assert [cell for cell in re.split(r"[\s|]+", row) if cell] == numbers, case.title


def test_measured_numbers_have_a_command_that_the_pages_name():
    text = "".join((ROOT / name).read_text(encoding="utf-8") for name in quotes.claims())
    for entry in json.loads(quotes.MEASURED.read_text(encoding="utf-8")).values():
        assert entry["command"] in text
        assert entry["on"]


def _anchors(page):
    """Anchors of a page as GitHub and mkdocs make them of its headings."""
    headings = re.findall(
        r"^#+ (.+)$", re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.DOTALL | re.M), re.M
    )
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_of_pages_that_mkdocs_does_not_check_lead_somewhere():
    outside = [*ROOT.glob("*.md"), *ROOT.glob("examples/*/README.md"), *ROOT.glob("package/**/*.md")]
    links = [
        (page, *link)
        for page in outside
        for link in re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)", page.read_text("utf-8"))
    ]
    assert len(links) > 50
    assert [link for page, link, _ in links if not (page.parent / link).exists()] == []
    targets = [(page.parent / link if link else page, anchor) for page, link, anchor in links if anchor]
    assert [(str(page), anchor) for page, anchor in targets if anchor not in _anchors(page)] == []
