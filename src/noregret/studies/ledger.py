"""``noregret ledger``: a file of changes that were kept or discarded, each by its receipt. `Ledger` has the rule.

The file is JSON: the level, and an entry for each proposal in the order in which they were judged. It is written
atomically under a lock of its folder. The last entry must be closed before the next proposal is judged, so that each
threshold follows from the entries before it.
"""

from __future__ import annotations

import json
import math
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from noregret.comparison import Ledger
from noregret.comparison.receipts import write
from noregret.formatting import number
from noregret.studies import receipts
from noregret.studies.errors import StudyError, check_system
from noregret.terminal import printable, say

FORM = 1
"""Number of this form of ledgers."""

Entry = dict[str, Any]


def ledger(args: Namespace) -> int:
    """Carry out an action on the ledger of a file; 1 if a proposal is to be discarded, 0 otherwise."""
    if (args.receipt is None) == (args.action == "new"):
        raise StudyError("new needs a receipt, and no other action takes one: noregret ledger FILE new out.json")
    if args.force and args.action != "keep":
        raise StudyError(f"--force is for keep, not for {args.action}")
    if args.action == "show":
        chain = load(args.file, must_exist=True)
        say(json.dumps(chain | {"summary": "\n".join(shown(chain))}) if args.json else "\n".join(shown(chain)))
        return 0
    if args.action == "new":
        entry = judged(args.file, receipts.checked(args.receipt), str(args.receipt), args.level)
        said, code = f"{verdict(entry)}. Then: noregret ledger {args.file} {advised(entry)}", int(not entry["allowed"])
    else:
        entry, code = closed(args.file, args.action == "keep", args.force), 0
        said = f"Entry {entry['number']} is {state(entry)}. {following(load(args.file), args.file)}"
    say(json.dumps(entry) if args.json else printable(said))
    return code


def load(path: Path, level: float | None = None, must_exist: bool = False) -> dict[str, Any]:
    """The ledger of a file, a new one of this level if there is none; StudyError if it is damaged."""
    try:
        chain = json.loads(path.read_bytes())
        if not (isinstance(chain, dict) and chain["ledger"] == FORM and _follows(chain)):
            raise ValueError
    except FileNotFoundError:
        if must_exist:
            raise StudyError(f"{path} does not exist: 'noregret ledger {path} new RECEIPT' begins a ledger") from None
        chain = {"ledger": FORM, "level": 0.05 if level is None else level, "entries": []}
        _rule(chain)
    except OSError as error:
        raise StudyError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        said = f"{path} is no ledger of form {FORM}, or was edited: an entry does not follow from those before it"
        raise StudyError(f"{said}. Put back a copy, or begin a new one") from None
    if level is not None and level != chain["level"]:
        raise StudyError(f"--level {level:g}: {path} has the level {chain['level']:g}, which stays: begin a new ledger")
    return dict(chain)


def _rule(found: Mapping[str, Any], before: int | None = None) -> Ledger:
    """The rule for the next proposal, or for the one after the first ``before`` entries."""
    entries = found["entries"][:before]
    kept = sum(entry["state"] == "kept" and not entry["forced"] for entry in entries)
    try:
        return Ledger(found["level"], proposals=len(entries), kept=kept)
    except ValueError as error:
        raise StudyError(f"--level: {error}") from None


def _follows(found: Mapping[str, Any]) -> bool:
    """True if each entry has the verdict of its e-value after the ones before it, and is kept by it or by force."""
    for before, entry in enumerate(found["entries"]):
        threshold = _rule(found, before).threshold
        may = entry["allowed"] is (entry["evalue"] >= entry["threshold"])
        may &= entry["number"] == before + 1 and math.isclose(entry["threshold"], threshold, rel_tol=1e-9)
        may &= entry["state"] in ("open", "kept", "discarded")
        if not may or entry["forced"] is not (entry["state"] == "kept" and not entry["allowed"]):
            return False
    return all(entry["state"] != "open" for entry in found["entries"][:-1])


@contextmanager
def _locked(path: Path, level: float | None = None) -> Iterator[dict[str, Any]]:
    """The ledger of a file, to be changed by one process at a time; written unless an error is raised."""
    check_system("ledger")
    import fcntl  # not on Windows, where this module can be imported
    import os

    try:
        folder = os.open(path.resolve().parent, os.O_RDONLY)
    except OSError as error:
        raise StudyError(f"{path}: its folder cannot be opened: {error.strerror}") from None
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        chain = load(path, level)
        yield chain
        write(chain, path)
    except OSError as error:
        raise StudyError(f"{path} cannot be written: {error.strerror}") from None
    finally:
        os.close(folder)


def judged(path: Path, receipt: Mapping[str, Any], name: str, level: float | None = None) -> Entry:
    """Judge the change of a receipt, which must have been checked, and add it to the ledger of a file.

    The e-value is that of "better", and 0 if B has failed more often than A, unless failures are part of the means.
    """
    if len(receipt["commands"]) != 2:
        raise StudyError(f"{name}: a change is compared with its baseline, so two commands are needed")
    if receipt["baseline"] is not None:
        said = f"{name}: the values of A were measured before ({receipt['baseline']}), and others were judged by them"
        raise StudyError(f"{said}: compare with fresh runs of both, without --baseline")
    with _locked(path, level) as chain:
        entries = chain["entries"]
        if entries and entries[-1]["state"] == "open":
            raise StudyError(f"entry {len(entries)} of {path} is open: keep or discard it first")
        if old := [entry["number"] for entry in entries if entry["digest"] == receipt["digest"]]:
            raise StudyError(f"{name} was judged already, as entry {old[0]}: a retest is a new proposal with new runs")
        rule, said = _rule(chain), receipt["statement"]
        fails_more = said["failures"][1] > said["failures"][0] and said["quantity"] != "difference of means"
        threshold, evalue = rule.threshold, 0.0 if fails_more else said["evalue"]
        entry = {
            "number": len(entries) + 1,
            "state": "open",
            "allowed": rule.judge(evalue),
            "forced": False,
            "evalue": evalue,
            "threshold": threshold,
            "commands": receipt["commands"],
            "receipt": name,
            "digest": receipt["digest"],
        }
        entries.append(entry)
    return entry


def closed(path: Path, is_kept: bool, force: bool = False) -> Entry:
    """Keep or discard the change of the last entry."""
    load(path, must_exist=True)
    with _locked(path) as chain:
        entry: Entry = chain["entries"][-1] if chain["entries"] else {"state": "none"}
        if entry["state"] != "open":
            raise StudyError(f"no entry of {path} is open: judge a change first, noregret ledger {path} new RECEIPT")
        if is_kept and not entry["allowed"] and not force:
            why = verdict(entry).partition(", ")[2]
            said = f"entry {entry['number']} may not be kept, {why}"
            raise StudyError(f"{said}: discard it, or add --force, which marks it as outside of the guarantee")
        entry["state"] = "kept" if is_kept else "discarded"
        entry["forced"] = is_kept and not entry["allowed"]
    return entry


def advised(entry: Entry) -> str:
    """The action that the verdict allows: "keep" or "discard"."""
    return "keep" if entry["allowed"] else "discard"


def verdict(entry: Entry) -> str:
    """The verdict on an entry in words.

    >>> verdict({"number": 3, "allowed": False, "evalue": 31.2, "threshold": 474.3})
    'Entry 3: discard, as its e-value of 31.2 is below 474.3'
    """
    said = "reaches" if entry["allowed"] else "is below"
    numbers = f"its e-value of {number(entry['evalue'])} {said} {number(entry['threshold'])}"
    return f"Entry {entry['number']}: {advised(entry)}, as {numbers}"


def state(entry: Entry) -> str:
    """The state of an entry in words."""
    return "kept by force, outside of the guarantee" if entry["forced"] else str(entry["state"])


def following(found: Mapping[str, Any], path: Path | None = None) -> str:
    """The e-value that the next proposal needs, in words."""
    how = f": add --ledger {path} to versus" if path else ""
    return f"The next proposal is kept from an e-value of {math.ceil(_rule(found).threshold)} on{how}."


def confidence(path: Path) -> float:
    """The confidence at which "better" is enough for the next proposal of the ledger of a file."""
    return _rule(load(path)).confidence


def shown(found: Mapping[str, Any]) -> Iterator[str]:
    """The entries, a line each, and the guarantee."""
    for entry in found["entries"]:
        said = f"{number(entry['evalue'])} of {number(entry['threshold'])}"
        yield printable(f"{entry['number']:5}  {state(entry)}: e-value {said}, {entry['receipt']}")
    kept = _rule(found).kept
    of = f"Of {kept} kept change{'s' * (kept != 1)}" if kept else "No change is kept. Of those that will be"
    yield f"{of}, at most {100 * found['level']:g}% are false in expectation, at any time."
    if forced := [str(entry["number"]) for entry in found["entries"] if entry["forced"]]:
        yield f"Kept by force, outside of the guarantee: {', '.join(forced)}."
    yield following(found)
