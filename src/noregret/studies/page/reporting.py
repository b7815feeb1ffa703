"""`report`: the page of an `Optimizer` in memory, or of an Optuna study of any sampler."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from html import escape
from importlib import import_module
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


@dataclass
class Page:
    """A page as it was when it was made; a notebook shows it in a frame, so that its styles stay inside."""

    html: str
    """The whole page, as `report` writes it to a file."""
    again: Callable[[], str]
    """Makes the page of what is known now."""
    _shown: Any = None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file whose name ends in ``.html``."""
        path, text = _html_path(path), self.html
        write_atomically(path, lambda file: file.write(text.encode()))

    def refresh(self) -> Page:
        """Take in what is known now; where a notebook shows this page, it changes there."""
        self.html = self.again()
        if self._shown is not None:
            self._shown.update(self._bundle, raw=True)
        return self

    def __str__(self) -> str:
        return self.html

    def __repr__(self) -> str:
        return "<page of a report: shown in notebooks; page.save('page.html') writes it to a file>"

    def _repr_html_(self) -> str:
        style = f"width: 100%; height: {HEIGHT}px; border: 0"
        return f'<iframe title="noregret report" style="{style}" srcdoc="{escape(self.html)}"></iframe>'

    @property
    def _bundle(self) -> dict[str, str]:
        """Forms of the output of a cell, by type."""
        return {"text/html": self._repr_html_(), "text/plain": repr(self)}

    def _ipython_display_(self) -> None:
        self._shown = import_module("IPython.display").display(self._bundle, raw=True, display_id=True)


@overload
def report(subject: Any, path: str | os.PathLike[str], *, against: Any = None, title: str = "") -> None: ...
@overload
def report(subject: Any, path: None = None, *, against: Any = None, title: str = "") -> Page: ...


def report(
    subject: Any, path: str | os.PathLike[str] | None = None, *, against: Any = None, title: str = ""
) -> Page | None:
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
    title : str, optional
        By default the name of the file.

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
    path = None if path is None else _html_path(path)
    name = title or ("optimizer" if path is None else path.stem)

    def again() -> str:
        current = _findings(subject, name)
        return page(current, against=None if against is None else comparable(current, _findings(against, "the other")))

    made = Page(again(), again)
    if path is None:
        return made
    made.save(path)
    return None


def _html_path(path: str | os.PathLike[str]) -> Path:
    """The path; ValueError unless its name ends as that of a page."""
    if Path(path).suffix not in (".html", ".htm"):
        raise ValueError(f"path must end in .html, got {str(path)!r}")
    return Path(path)


def comparable(found: Findings, other: Findings) -> Findings:
    """The other findings; ValueError if their goal is another one, or one of them has several objectives."""
    for side in (found, other):
        if side.study.goals:
            raise ValueError(f"studies that are compared must have one objective, but {side.study.name} has several")
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
