"""`report`: the page of an `Optimizer` in memory, or of an Optuna study of any sampler."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any, overload

from noregret.files import write_atomically
from noregret.optimizer import Optimizer, ParameterSpace, Trial, problem_of
from noregret.studies.learning.findings import Findings
from noregret.studies.learning.suggest import as_study
from noregret.studies.page.page import page
from noregret.studies.study.study import Budget, Params

HEIGHT = 800
"""Height of a page in a notebook, in pixels; it scrolls."""


@dataclass(frozen=True)
class Page:
    """A page that a notebook shows, in a frame of its own so that its styles stay inside."""

    html: str
    """The whole page, as `report` writes it to a file."""

    def __repr__(self) -> str:
        return "<page of a report: shown in notebooks; report(subject, 'page.html') writes it to a file>"

    def _repr_html_(self) -> str:
        style = f"width: 100%; height: {HEIGHT}px; border: 0"
        return f'<iframe title="noregret report" style="{style}" srcdoc="{escape(self.html)}"></iframe>'


@overload
def report(subject: Any, path: str | os.PathLike[str], *, against: Any = None) -> None: ...
@overload
def report(subject: Any, path: None = None, *, against: Any = None) -> Page: ...


def report(subject: Any, path: str | os.PathLike[str] | None = None, *, against: Any = None) -> Page | None:
    """Write the findings so far as one HTML page, the one of ``noregret report``, or return it for a notebook.

    Parameters
    ----------
    subject : Optimizer, or optuna.Study
        A study may have been run by any sampler. A parameter that some trials have is shown if it
        is clear when they have it. The last report of a pruned trial counts as a value of its step.
    path : path of a file, optional
        Its name ends in ``.html``. Without it the page is returned, and a notebook shows it below the cell.
    against : Optimizer, or optuna.Study, optional
        Another one with the same goal, whose best setting and progress are shown beside these.

    Examples
    --------
    >>> from noregret import Float, Optimizer, report
    >>> opt = Optimizer({"x": Float(0, 1)}, rng=0)
    >>> for _ in range(10):
    ...     trial = opt.ask()
    ...     opt.tell(trial, (trial.params["x"] - 0.3) ** 2)
    >>> folder = getfixture("tmp_path")
    >>> report(opt, folder / "page.html")
    >>> "Best setting" in (folder / "page.html").read_text()
    True
    """
    path = None if path is None else Path(path)
    if path is not None and path.suffix not in (".html", ".htm"):
        raise ValueError(f"path must end in .html, got {str(path)!r}")
    found = _findings(subject, "optimizer" if path is None else path.stem)
    text = page(found, against=None if against is None else comparable(found, _findings(against, "the other")))
    if path is None:
        return Page(text)
    write_atomically(path, lambda file: file.write(text.encode()))
    return None


def comparable(found: Findings, other: Findings) -> Findings:
    """The other findings; ValueError if their goal is another one, or one of them has several objectives."""
    for its in (found, other):
        if its.study.goals:
            raise ValueError(f"studies that are compared must have one objective, but {its.study.name} has several")
    if found.study.goal != other.study.goal:
        goals = f"{found.study.name} is to {found.study.goal}, {other.study.name} to {other.study.goal}"
        raise ValueError(f"studies that are compared must have the same goal, but {goals}")
    return other


def _findings(subject: Any, name: str) -> Findings:
    if isinstance(subject, Optimizer):
        return _of_optimizer(copy(subject), name)
    if hasattr(subject, "get_trials") and hasattr(subject, "directions"):
        from noregret.integrations.optuna import informed

        return findings(*informed(subject))
    raise ValueError(f"report() takes an Optimizer or an Optuna study, got {type(subject).__name__}")


def _of_optimizer(optimizer: Optimizer, name: str) -> Findings:
    """Findings of an optimizer; one whose columns have no text names is rebuilt with such names."""
    space, trials = optimizer.space, optimizer.trials
    if isinstance(space, ParameterSpace):
        return findings(dict(space.parameters), optimizer, trials, name)
    rows = space.decode(space.everything())
    if isinstance(rows[0], Mapping) and all(isinstance(name, str) for name in rows[0]):
        return findings(rows, optimizer, trials, name)
    named = [_by_column(row) for row in rows]
    trials = [replace(trial, params=_by_column(trial.params)) for trial in trials]
    baseline = None if optimizer.baseline is None else _by_column(optimizer.baseline)
    problem = replace(problem_of(optimizer, named), baseline=baseline, require=())  # the rows meet the conditions
    twin = Optimizer(rng=0, **problem.for_optimizer())
    twin.add(trials)
    return findings(named, twin, trials, name)


def _by_column(row: Any) -> Params:
    """A row of a table with names that are text."""
    if isinstance(row, Mapping):
        return {f"column {name}": value for name, value in row.items()}
    return {f"column {i}": float(value) for i, value in enumerate(row)}


def findings(space: Any, optimizer: Optimizer, trials: Sequence[Trial], name: str) -> Findings:
    """Findings of an optimizer that knows these trials, as of a study without a command."""
    tracked = {name: "" for trial in trials for name in optimizer.measures.tracked(trial)}
    study = as_study(optimizer, Path(), space, name=name, budget=Budget(), tracked=tracked)
    return Findings(study, trials, optimizer)
