"""`report`: the page of an `Optimizer` in memory, or of an Optuna study of any sampler."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any

from noregret.files import write_atomically
from noregret.integrations.replay import tell_all
from noregret.optimizer import Constraint as Bound
from noregret.optimizer import Observation, Optimizer, Product
from noregret.tune.learning.findings import Findings
from noregret.tune.page.page import page
from noregret.tune.store.records import Record, State
from noregret.tune.study.results import LastNumber
from noregret.tune.study.study import Budget, Constraint, Params, Study


def report(subject: Any, path: str | os.PathLike[str]) -> None:
    """Write the findings so far as one HTML page, the one of ``noregret report``.

    Parameters
    ----------
    subject : Optimizer, or optuna.Study
        A study may have been run by any sampler; it has one objective. A parameter that some trials have is shown if it
        is clear when they have it. The last report of a pruned trial counts as its result.
    path : path of a file
        Its name ends in ``.html``.

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
    path = Path(path)
    if path.suffix not in (".html", ".htm"):
        raise ValueError(f"path must end in .html, got {str(path)!r}")
    text = page(_findings(subject, path.stem)).encode()
    write_atomically(path, lambda file: file.write(text))


def _findings(subject: Any, name: str) -> Findings:
    if isinstance(subject, Optimizer):
        return _of_optimizer(copy(subject), name)
    if hasattr(subject, "get_trials") and hasattr(subject, "directions"):
        from noregret.tune.page.from_optuna import informed

        return findings(*informed(subject))
    raise ValueError(f"report() takes an Optimizer or an Optuna study, got {type(subject).__name__}")


def _of_optimizer(optimizer: Optimizer, name: str) -> Findings:
    """Findings of an optimizer; one whose columns have no text names is rebuilt with such names."""
    space, answers = optimizer.space, optimizer.answers
    if isinstance(space, Product):
        named: Any = dict(space.parameters)
    else:
        named = space.decode(space.everything())
        if not isinstance(named[0], Mapping) or not all(isinstance(name, str) for name in named[0]):
            named = [_by_column(row) for row in named]
            answers = [answer._replace(params=_by_column(answer.params)) for answer in answers]
            optimizer = _retold(optimizer, named, answers)
    return findings(named, optimizer, [_record(i, answer) for i, answer in enumerate(answers)], name)


def _record(number: int, answer: Observation) -> Record:
    constraints = {name: its for name, its in answer.constraints.items() if its is not None}
    outcome, context = _outcome(answer.value), answer.context
    return Record(number, answer.params, *outcome, noise=answer.noise, constraints=constraints, context=context)


def _outcome(value: float | None) -> tuple[State, float | None, str]:
    """State, value and failure of an answer."""
    return ("failed", None, "reported as a failure") if value is None else ("done", value, "")


def _retold(optimizer: Optimizer, rows: list[Params], answers: Sequence[Observation]) -> Optimizer:
    """Optimizer of the same kind on these rows that knows these answers."""
    baseline = None if optimizer.baseline is None else _by_column(optimizer.baseline)
    options: dict[str, Any] = {"constraints": optimizer.constraints, "drift": optimizer.drift}
    twin = Optimizer(rows, goal=optimizer.goal, rng=0, baseline=baseline, context=optimizer.context, **options)
    tell_all(twin, answers)
    return twin


def _by_column(row: Any) -> Params:
    """A row of a table with names that are text."""
    if isinstance(row, Mapping):
        return {f"column {name}": value for name, value in row.items()}
    return {f"column {i}": float(value) for i, value in enumerate(row)}


def findings(space: Any, optimizer: Optimizer, records: Sequence[Record], name: str) -> Findings:
    """Findings of an optimizer that knows these records, as of a study without a command."""
    study = Study(
        Path(),
        (),
        space,
        name=name,
        goal=optimizer.goal,
        budget=Budget(),
        baseline=optimizer.baseline,
        constraints={name: _bounded(its) for name, its in optimizer.constraints.items()},
        context=optimizer.context,
        require=optimizer.require,
    )
    return Findings(study, records, optimizer)


def _bounded(its: Bound) -> Constraint:
    """A constraint of an optimizer as one of a study."""
    return Constraint(LastNumber(), **{"max" if its.operator == "<=" else "min": its.bound})
