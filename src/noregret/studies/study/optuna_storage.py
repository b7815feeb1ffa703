"""Trials in a storage of Optuna, by its public functions: exported for its dashboard, and imported from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from noregret.extra import extra
from noregret.optimizer import Reading, Trial
from noregret.studies.study.exchange import Imported
from noregret.studies.study.study import Study, StudyError

STATES = {"done": "COMPLETE", "failed": "FAIL", "withdrawn": "FAIL", "running": "RUNNING", "waiting": "WAITING"}
"""Optuna's name for each state. A trial that lacks an objective has failed: Optuna has no missing values."""
SHOWN = "readings", "context", "fidelity", "failure", "seconds"
"""Parts of a trial that become attributes."""


def write_storage(study: Study, trials: Iterable[Trial], path: Path) -> None:
    """Write trials into a new SQLite file, as an Optuna study of the same name; StudyError if there is such a file."""
    optuna = extra("optuna", "optuna")
    if path.exists():
        raise StudyError(f"--optuna {path}: exists: choose another name, or move it away")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    goals, forms = list(study.goals.values()) or [study.goal], _distributions(study)
    frozen = [_frozen(optuna, study, trial, forms) for trial in trials]
    temporary = path.with_name(f".{path.name}.new")
    temporary.unlink(missing_ok=True)
    theirs = optuna.create_study(storage=f"sqlite:///{temporary}", study_name=study.name, directions=goals)
    theirs.add_trials(frozen)
    temporary.rename(path)


def _distributions(study: Study) -> dict[str, Any]:
    """Distribution of each parameter, or of each column of a table."""
    from noregret.integrations.distributions import column_distribution, distribution

    if isinstance(study.space, Mapping):
        return {name: distribution(parameter) for name, parameter in study.space.items()}
    return {name: column_distribution([row[name] for row in study.space]) for name in study.names}


def _frozen(optuna: Any, study: Study, trial: Trial, forms: Mapping[str, Any]) -> Any:
    values = list(study.measures.values(trial).values())
    state = STATES[trial.state] if trial.state != "done" or None not in values else "FAIL"
    described = study.measures.described(trial)
    began = trial.started or trial.ended or datetime.now()  # Optuna needs a time, also of rows that came without
    return optuna.trial.FrozenTrial(
        number=trial.number,
        trial_id=trial.number,
        state=optuna.trial.TrialState[state],
        value=None,
        values=values if state == "COMPLETE" else None,
        datetime_start=None if state == "WAITING" else began,
        datetime_complete=(trial.ended or began) if trial.is_finished else None,
        params=dict(trial.params),
        distributions={name: forms[name] for name in trial.params},
        user_attrs={name: described[name] for name in SHOWN if described.get(name) not in (None, "", {})},
        system_attrs={},
        intermediate_values={int(its.step): its.value for its in trial.reports() if its.step is not None},
    )


def read_storage(study: Study, where: str, name: str | None = None) -> Imported:
    """Trials of an Optuna study in a file or at a URL; its only study if there is no name.

    Raises
    ------
    StudyError
        If there is no such storage or study, or its goals are others.
    """
    optuna = extra("optuna", "optuna")
    if "://" not in where and not Path(where).is_file():
        raise StudyError(f"{where} does not exist")
    url = where if "://" in where else f"sqlite:///{where}"
    try:
        names = optuna.get_all_study_names(url)
        if name is None and len(names) != 1:
            raise StudyError(f"{where} has {len(names)} studies: say --study NAME, one of {', '.join(names)}")
        theirs = optuna.load_study(study_name=name or names[0], storage=url)
    except KeyError:
        raise StudyError(f"{where} has no study {name!r}: it has {', '.join(names)}") from None
    except StudyError:
        raise
    except Exception as error:  # of SQLAlchemy and drivers, which are no part of this package
        reason = str(error).partition("\n")[0]
        raise StudyError(f"{where} cannot be read as a storage of Optuna: {reason}") from error
    goals = [direction.name.lower() for direction in theirs.directions]
    if goals != (list(study.goals.values()) or [study.goal]):
        raise StudyError(
            f"{where}: its study {theirs.study_name!r} has the goals {', '.join(goals)}, not those of {study.path}"
        )
    found, kept_out = [], []
    for trial in theirs.get_trials(deepcopy=False):
        try:
            found.append((_trial(study, trial), f"optuna {theirs.study_name} {trial.number}"))
        except ValueError as error:
            kept_out.append(f"trial {trial.number}: {error}")
    return Imported(found, kept_out)


def _trial(study: Study, theirs: Any) -> Trial:
    """Trial of Optuna as ours; ValueError if it has no outcome, or its params are no setting of the study."""
    if theirs.state.name not in ("COMPLETE", "FAIL"):
        raise ValueError(f"is {theirs.state.name.lower()}, not complete")
    params = {name: value for name, value in theirs.params.items() if name in study.names}
    checked = dict(study.settings.checked(study.completed(params, study.defaults)))
    values = zip(study.measures.objectives, theirs.values or (), strict=False)
    return Trial(
        theirs.number,
        checked,
        state="failed" if theirs.state.name == "FAIL" else "done",
        readings={name: (Reading(value),) for name, value in values},
        failure="failed in Optuna" if theirs.state.name == "FAIL" else "",
        started=theirs.datetime_start,
        seconds=theirs.duration.total_seconds() if theirs.duration else None,
    )
