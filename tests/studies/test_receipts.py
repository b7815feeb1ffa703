"""``--receipt``, ``noregret verify``, ``noregret ledger`` and ``versus --bisect``."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from noregret.cli import main
from noregret.comparison import Comparison
from noregret.comparison import receipts as forms
from noregret.studies import ledger, receipts
from noregret.studies.errors import StudyError


def called(capsys, *args):
    """Exit code, output and errors of a command."""
    code = main([*map(str, args)])
    return (code, *capsys.readouterr())


def versus(capsys, *args):
    return called(capsys, "versus", "--result", "last-number", "--json", *args)


def written(path, better=12, worse=0, commands=("old", "new"), **more):
    """A receipt of pairs in which B is better or worse, as another run of the same seed would not have it."""
    comparison = Comparison(rng=0)
    for place in range(better + worse):
        for option in (0, 1):
            is_low = (option == 1) == (place < better)
            comparison.tell(option, (1.0 if is_low else 2.0) + 1e-3 * place)
    forms.write(forms.receipt(comparison, commands, "last-number", **more), path)
    return path


def edited(path, change):
    """The receipt of a file after a change, with the digest of the changed one if it is to be a good forgery."""
    found = json.loads(path.read_text())
    change(found)
    path.write_text(json.dumps(found))
    return path


def test_a_receipt_has_the_values_in_order_and_the_statement(tmp_path, capsys):
    path = tmp_path / "out.json"
    code, out, _ = versus(capsys, "echo 4", "echo 5", "--seed", 3, "--receipt", path, "--save", tmp_path / "t.csv")
    found, said = json.loads(path.read_text()), json.loads(out)
    assert (code, found["commands"], found["seed"], found["result"]) == (1, ["echo 4", "echo 5"], 3, "last-number")
    assert [run[0] for run in found["comparison"]["runs"]] != [0, 1] * 7  # the order in which they were run
    assert sorted(run[:2] for run in found["comparison"]["runs"]) == [[0, 4.0]] * 7 + [[1, 5.0]] * 7
    assert {name: said[name] for name in ("verdict", "estimate", "lower", "upper", "quantity", "pairs")} == {
        name: found["statement"][name] for name in ("verdict", "estimate", "lower", "upper", "quantity", "pairs")
    }
    assert found["statement"]["evalue"] < 1
    assert found["versions"]["python"] == sys.version.split()[0]
    assert called(capsys, "verify", path)[:2] == (
        0,
        f"{path}: the statement follows: {Comparison.replay(found['comparison'])}\n",
    )
    again = tmp_path / "again.json"
    versus(capsys, "echo 4", "echo 5", "--seed", 3, "--receipt", again)
    assert json.loads(again.read_text())["comparison"] == found["comparison"]
    rows = (tmp_path / "t.csv").read_text().splitlines()[1:]
    assert [f"{a},{b}" for a, b in zip(*(receipts.values(found, f"echo {n}") for n in (4, 5)), strict=True)] == rows


def test_without_a_seed_the_order_is_drawn_and_on_record(tmp_path, capsys):
    seeds = set()
    for name in ("a.json", "b.json"):
        versus(capsys, "echo 4", "echo 5", "--budget", 2, "--receipt", tmp_path / name)
        seeds.add(json.loads((tmp_path / name).read_text())["seed"])
    assert len(seeds) == 2


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda it: it["comparison"]["runs"][0].__setitem__(1, 9.0), "its digest is not that of its content"),
        (lambda it: it["statement"].update(verdict="better"), 'verdict is "better", and its runs give "worse"'),
        (lambda it: it["statement"].update(lower=0.3), "lower is 0.3, and its runs give 0.9"),
        (lambda it: it["statement"].update(evalue=1e6), "evalue is 1000000.0, and its runs give 0.0"),
        (lambda it: it["statement"].update(pairs=True), "pairs is true, and its runs give 12"),
        (lambda it: it["statement"].pop("upper"), "upper is no part of its statement"),
        (lambda it: it["statement"].update(more=1), "more is no part of a statement"),
        (lambda it: it["comparison"].update(goal="maximize"), 'verdict is "worse", and its runs give "better"'),
        (lambda it: it["comparison"]["runs"].append([2, 1.0, None]), "its runs cannot be compared again: option must"),
        (lambda it: it["comparison"].pop("runs"), "its runs cannot be compared again: 'runs'"),
        (lambda it: it["comparison"].update(options=10**12), "compared again: it has more options than commands"),
        (lambda it: it.update(comparison=3), "its runs cannot be compared again: "),
        (lambda it: it.update(statement=None), "its runs cannot be compared again: "),
    ],
)
@pytest.mark.parametrize("is_forged", [False, True])
def test_what_does_not_follow_is_named(tmp_path, capsys, change, said, is_forged):
    path = edited(written(tmp_path / "r.json", better=0, worse=12), change)
    if is_forged and "digest" not in said:
        edited(path, lambda it: it.update(digest=forms.digest(it)))
    code, out, _ = called(capsys, "verify", path)
    assert code == 1
    assert out.startswith(f"{path}: the statement does not follow\n")
    assert said in out
    assert ("its digest is not that of its content" in out) is not (is_forged and "digest" not in said)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1,2\n", "is no receipt: 'noregret versus A B --receipt r.json' writes one"),
        ("[1]", "is no receipt"),
        ("[" * 100_000, "is no receipt"),
        ('{"receipt": 2}', "has a receipt of form 2, and this version reads form 1"),
        ('{"receipt": 1}', "is no complete receipt: baseline, commands, comparison"),
        (None, "cannot be read: No such file"),
    ],
)
def test_a_file_that_is_no_receipt_is_an_error(tmp_path, capsys, text, said):
    path = tmp_path / "r.json"
    if text is not None:
        path.write_text(text)
    for command in (["verify", path], ["ledger", tmp_path / "l.json", "new", path]):
        code, _, err = called(capsys, *command)
        assert (code, said in err) == (2, True), err
    assert not (tmp_path / "l.json").exists()


def test_one_bad_receipt_of_several_is_found(tmp_path, capsys):
    good, bad = written(tmp_path / "a.json"), edited(written(tmp_path / "b.json"), lambda it: it.update(seed=5))
    assert called(capsys, "verify", good)[0] == 0
    code, out, _ = called(capsys, "verify", bad, good)
    assert (code, out.count("the statement follows"), out.count("does not follow")) == (1, 1, 1)


def test_a_receipt_is_a_baseline(tmp_path, capsys):
    path, again = tmp_path / "old.json", tmp_path / "new.json"
    versus(capsys, "echo 4", "echo 5", "--receipt", path)
    code, out, _ = versus(capsys, "echo 3", "--baseline", path, "--receipt", again)
    assert (code, json.loads(out)["medians"]) == (0, [4.0, 3.0])
    assert called(capsys, "verify", again)[0] == 0
    code, out, _ = versus(capsys, "echo 5", "echo 3", "--baseline", path)  # the values of B, by its name
    assert json.loads(out)["medians"] == [5.0, 3.0]
    edited(path, lambda it: it["comparison"]["runs"][0].__setitem__(1, 9.0))
    code, _, err = versus(capsys, "echo 3", "--baseline", path)
    assert (code, "--baseline" in err, "the statement does not follow" in err) == (2, True, True)


@pytest.mark.slow
def test_failed_runs_are_in_a_receipt(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    flaky = "if mkdir once 2> /dev/null; then exit 1; else echo 3; fi"
    versus(capsys, "echo 4", flaky, "--shell", "--budget", 12, "--receipt", "r.json")
    found = receipts.checked(tmp_path / "r.json")
    assert receipts.values(found, flaky) == [None, *[3.0] * 11]
    code, out, _ = called(capsys, "ledger", "l.json", "new", "r.json")
    assert (code, "e-value of 0 is below" in out) == (1, True)  # better in 11 of 12 pairs, and it fails more often


def test_a_chain_is_judged_kept_and_discarded(tmp_path, capsys):
    file = tmp_path / "chain.json"

    def run(*args):
        return called(capsys, "ledger", file, *args)

    code, out, _ = run("new", written(tmp_path / "1.json"))
    assert (code, out) == (
        0,
        f"Entry 1: keep, as its e-value of 1,320 reaches 429.8. Then: noregret ledger {file} keep\n",
    )
    code, _, err = run("new", written(tmp_path / "2.json", 6))
    assert (code, "entry 1 of" in err, "is open: keep or discard it first" in err) == (2, True, True)
    assert "The next proposal is kept from an e-value of 247 on" in run("keep")[1]
    code, out, _ = run("new", tmp_path / "2.json")
    assert (code, out.startswith("Entry 2: discard, as its e-value of 28.78 is below 246.4.")) == (1, True)
    before = file.read_bytes()
    code, _, err = run("keep")
    assert (code, file.read_bytes()) == (2, before)
    assert "entry 2 may not be kept, as its e-value of 28.78 is below 246.4: discard it, or add --force" in err
    assert run("discard")[1].startswith("Entry 2 is discarded. ")
    assert "no entry of" in run("discard")[2]
    code, _, err = run("new", tmp_path / "2.json")
    assert (code, "was judged already, as entry 2: a retest is a new proposal with new runs" in err) == (2, True)
    run("new", written(tmp_path / "3.json", 5))
    assert "Entry 3 is kept by force, outside of the guarantee." in run("keep", "--force")[1]
    run("new", written(tmp_path / "4.json", 20))
    run("discard")  # allowed, and not kept after all
    code, out, _ = run("show")
    assert [line.split(":")[0].split("  ")[-1] for line in out.splitlines()[:4]] == [
        "kept",
        "discarded",
        "kept by force, outside of the guarantee",
        "discarded",
    ]
    assert out.splitlines()[4:6] == [
        "Of 1 kept change, at most 5% are false in expectation, at any time.",
        "Kept by force, outside of the guarantee: 3.",
    ]
    found = json.loads(run("show", "--json")[1])
    assert [entry["state"] for entry in found["entries"]] == ["kept", "discarded", "kept", "discarded"]
    assert [entry["forced"] for entry in found["entries"]] == [False, False, True, False]
    ratio = [entry["threshold"] for entry in found["entries"]]
    assert ratio[3] < 2 * ratio[1]  # neither the forced keep nor the one that is not kept counts


def test_versus_runs_until_the_ledger_is_satisfied(tmp_path, capsys):
    file, path = tmp_path / "l.json", tmp_path / "r.json"
    code, out, _ = versus(capsys, "echo 4", "echo 3", "--receipt", path, "--ledger", file)
    assert (code, json.loads(out)["pairs"]) == (0, 11)  # 7 decide without it
    assert called(capsys, "ledger", file, "new", path, "--level", "0.05")[0] == 0


def test_what_does_not_suit_a_ledger_is_refused_and_changes_nothing(tmp_path, capsys):
    file, good = tmp_path / "l.json", written(tmp_path / "good.json")
    old = written(tmp_path / "old.json", baseline="before.csv")
    several = written(tmp_path / "several.json", commands=["a", "b", "c"])
    wrong = edited(written(tmp_path / "wrong.json"), lambda it: it["statement"].update(evalue=1e9))
    for args, said in [
        (["new", old], "the values of A were measured before (before.csv)"),
        (["new", several], "two commands are needed"),
        (["new", wrong], "the statement does not follow: its digest is not that of its content; evalue is"),
        (["new"], "new needs a receipt, and no other action takes one"),
        (["keep", good], "new needs a receipt, and no other action takes one"),
        (["discard", "--force"], "--force is for keep, not for discard"),
        (["show"], "does not exist"),
        (["keep"], "does not exist"),
        (["new", good, "--level", "2"], "--level: level must be between 0 and 1"),
    ]:
        code, _, err = called(capsys, "ledger", file, *args)
        assert (code, said in err, file.exists()) == (2, True, False), err
    assert called(capsys, "ledger", file, "new", good, "--level", "0.1", "--json")[0] == 0
    again = written(tmp_path / "again.json", commands=["a", "b"])
    assert "which stays: begin a new ledger" in called(capsys, "ledger", file, "new", again, "--level", "0.2")[2]
    code, _, err = called(capsys, "ledger", tmp_path / "no" / "l.json", "new", good)
    assert (code, "its folder cannot be opened: No such file" in err) == (2, True)


@pytest.mark.parametrize(
    "change",
    [
        lambda it: it["entries"][0].update(evalue=1.0),
        lambda it: it["entries"][0].update(threshold=1.0),
        lambda it: it["entries"][1].update(state="kept"),
        lambda it: it["entries"].pop(0),
        lambda it: it.update(level=0.5),
        lambda it: it.pop("entries"),
        lambda it: it.update(ledger=2),
    ],
)
def test_an_edited_ledger_is_refused(tmp_path, capsys, change):
    file = tmp_path / "l.json"
    for name, better, action in (("1.json", 12, "keep"), ("2.json", 5, "discard")):
        called(capsys, "ledger", file, "new", written(tmp_path / name, better))
        called(capsys, "ledger", file, action)
    assert called(capsys, "ledger", file, "show")[0] == 0
    edited(file, change)
    code, _, err = called(capsys, "ledger", file, "show")
    assert (code, "is no ledger of form 1, or was edited" in err) == (2, True)


def test_of_two_writers_at_a_time_none_is_lost(tmp_path):
    """Each judges and discards until all its receipts are in: an open entry of the other one makes it wait."""
    file = tmp_path / "l.json"

    def work(who):
        for place in range(8):
            receipt = receipts.checked(written(tmp_path / f"{who}{place}.json", 3, commands=[who, str(place)]))
            while True:
                try:
                    ledger.judged(file, receipt, f"{who}{place}")
                    break
                except StudyError:
                    pass
            ledger.closed(file, is_kept=False)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work, ["a", "b"]))
    entries = ledger.load(file)["entries"]
    assert sorted(entry["receipt"] for entry in entries) == [f"{who}{place}" for who in "ab" for place in range(8)]
    assert [entry["number"] for entry in entries] == [*range(1, 17)]


@pytest.mark.parametrize(
    ("one", "other", "options", "code"),
    [
        (2, 1, [], 0),
        (1, 2, [], 1),
        (1000, 1001, ["--within", "1%"], 0),
        (5, 5, ["--budget", "8"], 125),
        (1, 2, ["--budget", "3"], 125),
    ],
)
def test_bisect_has_the_exit_codes_of_git(capsys, one, other, options, code):
    found = versus(capsys, f"echo {one}", f"echo {other}", "--bisect", *options)
    assert (found[0], json.loads(found[1])["passed"]) == (code, {0: True, 1: False, 125: None}[code])
    assert json.loads(found[1])["summary"].startswith({0: "Passed", 1: "Failed", 125: "Undecided"}[code])


def test_bisect_skips_a_commit_that_does_not_run(capsys):
    code, out, err = versus(capsys, "echo 1", "false", "--bisect")
    assert (code, out, "has failed 3 times in a row" in err) == (125, "", True)
    assert versus(capsys, "echo 1", "./not-built", "--bisect")[0] == 125
    assert versus(capsys, "echo 1", "./not-built")[0] == 2


@pytest.mark.parametrize(("options", "code"), [(["--bisect"], 125), ([], 2)])
def test_a_wrong_option_does_not_make_a_commit_bad(options, code):
    with pytest.raises(SystemExit) as ended:
        main(["versus", "echo 1", "echo 2", "--witin", "5%", *options])
    assert ended.value.code == code


@pytest.mark.slow
def test_git_bisect_finds_the_commit_that_is_slower(tmp_path, monkeypatch):
    """Of eight commits the fifth is slower, and the third and sixth do not run."""
    monkeypatch.chdir(tmp_path)

    def git(*words):
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout

    git("init", "-q")
    for number in range(8):
        text = "exit 1\n" if number in (2, 5) else f"echo {10.01 if number < 4 else 12}\n"
        (tmp_path / "bench.sh").write_text(f"# {number}\n{text}")
        git("add", "bench.sh")
        git("commit", "-q", "-m", f"commit {number}")
    git("bisect", "start", "HEAD", "HEAD~7")
    words = ["--result", "last-number", "--within", "5%", "--bisect"]
    out = git("bisect", "run", sys.executable, "-m", "noregret", "versus", "echo 10", "sh bench.sh", *words)
    assert "commit 4" in out[out.index("is the first bad commit") :]
