"""JSON forms of requests and answers, and the study that a request describes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    model_validator,
)

from noregret.optimizer import (
    LONGEST,
    Choice,
    Contexts,
    Float,
    Int,
    as_space,
    check_apart,
    checked_baseline,
    checked_bound,
    checked_constraints,
    checked_contexts,
    checked_drift,
    checked_fidelity,
    checked_safe,
    checked_when,
)
from noregret.tune.store.identity import SERVICE
from noregret.tune.study.parameters import parameter
from noregret.tune.study.results import LastNumber
from noregret.tune.study.study import Budget, Constraint, Objective, Study

NAME = r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$"
MANY = 1000
"""Largest number of observations of one request, of options of a choice, and of parameters."""
MOST_ASKED = 100
"""Largest number of trials that one request may ask for: choosing them takes a few seconds."""

MOST_GOALS = 20
"""Largest number of objectives of a study."""
MOST_CONDITIONS = 50
"""Largest number of conditions of ``require``: each is computed for all params that are tried."""

Name = Annotated[str, Field(pattern=NAME)]
Label = Annotated[str, Field(min_length=1, max_length=200)]
Scalar = bool | int | float | Annotated[str, Field(max_length=1000)]
Params = dict[Label, Scalar]
When = Annotated[dict[Label, Scalar | list[Scalar]], Field(max_length=MANY), AfterValidator(checked_when)]
Goal = Literal["minimize", "maximize"]
Goals = Annotated[dict[Label, Goal], Field(min_length=2, max_length=MOST_GOALS)]
Value = float | dict[str, float | None]
"""A value, or one for each of several objectives, null for one that was not measured."""
KINDS = "(number)", "(object)"
"""Names of the two kinds of values; errors leave them out."""
Told = Annotated[
    Annotated[float, Tag(KINDS[0])] | Annotated[dict[Label, float | None], Tag(KINDS[1])],
    Discriminator(lambda given: KINDS[isinstance(given, dict)]),
]
"""A value of a request: errors are about a number unless it is an object."""
HalfLife = Annotated[float, Field(ge=1, le=LONGEST)]


Place = tuple[str | int, ...]
"""A field of a request, from outside to inside."""


class BadField(ValueError):
    """A field of a request is at fault."""

    def __init__(self, place: Place, error: ValueError) -> None:
        super().__init__(str(error))
        self.place = place


@contextmanager
def field_of(*place: str | int) -> Iterator[None]:
    """Raise a ValueError of the block as BadField."""
    try:
        yield
    except ValueError as error:
        raise BadField(place, error) from None


class Form(BaseModel):
    """A JSON object with these fields and no others; numbers are finite, and text is no number."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)


class Described(Form):
    """A parameter that the Optimizer takes."""

    def parameter(self) -> Float | Int | Choice:
        """Parameter for the Optimizer."""
        return parameter(self.model_dump())

    @model_validator(mode="after")
    def _is_parameter(self) -> Described:
        self.parameter()
        return self


class FloatForm(Described):
    """A number from ``low`` to ``high``."""

    type: Literal["float"]
    low: float
    high: float
    log: bool = False
    step: float | None = None
    when: When | None = None


class IntForm(Described):
    """A whole number from ``low`` to ``high``."""

    type: Literal["int"]
    low: int
    high: int
    log: bool = False
    step: int | None = None
    when: When | None = None


class ChoiceForm(Described):
    """One of some values."""

    type: Literal["choice"]
    choices: Annotated[list[Scalar], Field(min_length=1, max_length=MANY)]
    when: When | None = None


ParameterForm = Annotated[FloatForm | IntForm | ChoiceForm, Field(discriminator="type")]
FidelityForm = Annotated[
    dict[Label, Annotated[FloatForm | IntForm, Field(discriminator="type")]], Field(min_length=1, max_length=1)
]
SpaceForm = Annotated[dict[Label, ParameterForm], Field(min_length=1, max_length=MANY)]


class Bound(Form):
    """Bound on a number: at most ``max``, or at least ``min``."""

    max: float | None = None
    min: float | None = None

    @model_validator(mode="after")
    def _is_one(self) -> Bound:
        if (self.max is None) == (self.min is None):
            raise ValueError("a constraint must have max or min, and not both")
        return self


class StudyForm(Form):
    """A study: goal, parameters, contexts, constraints and baseline.

    A study with several objectives has ``goals`` in place of ``goal``, which is null then.
    """

    name: Name
    goal: Goal | None = "minimize"
    space: Annotated[SpaceForm, Field(description="Parameters by name")]
    context: Annotated[SpaceForm | None, Field(description="What is given, not chosen: each ask names its values")] = (
        None
    )
    constraints: Annotated[
        dict[Label, Bound], Field(max_length=MANY, description="Limits on further numbers that are measured, by name")
    ] = {}
    require: Annotated[
        list[Label],
        Field(max_length=MANY, description="At most 50 conditions on params, such as threads * batch <= 4096"),
    ] = []
    baseline: Annotated[Params | None, Field(description="The settings of today: asked for first, compared with")] = (
        None
    )
    drift: Annotated[
        HalfLife | Literal["auto"] | None,
        BeforeValidator(checked_drift),
        Field(description="Half-life of observations in evaluations, if the best setting changes"),
    ] = None
    safe: Annotated[
        Annotated[float, Field(ge=0.5, lt=1)] | None,
        Field(description="Probability with which each trial must meet all constraints"),
    ] = None
    goals: Annotated[Goals | None, Field(description="Several objectives by name, in place of goal")] = None
    fidelity: Annotated[
        FidelityForm | None, Field(description="A parameter that makes trials cheaper and less exact where it is low")
    ] = None

    def study(self, storage: str) -> ServiceStudy:
        """The study, in the storage with this URL."""
        safe = None if self.safe is None else 1 - (1 - self.safe) / len(self.constraints)
        return ServiceStudy(
            path=Path(self.name),
            command=(),
            space=_parameters(self.space),
            name=self.name,
            goal=self.goal or "minimize",
            storage=storage,
            budget=Budget(),
            baseline=self.baseline,
            constraints={
                name: Constraint(LastNumber(), its.max, its.min, safe) for name, its in self.constraints.items()
            },
            require=tuple(self.require),
            description=self.model_dump(
                mode="json",
                exclude={name for name in ("drift", "require", "safe", "goals", "fidelity") if not getattr(self, name)},
            ),
            context=None if self.context is None else _parameters(self.context),
            drift=self.drift,
            confirm=0,
            objectives={name: Objective(goal, LastNumber()) for name, goal in (self.goals or {}).items()},
            fidelity=None if self.fidelity is None else {name: its.parameter() for name, its in self.fidelity.items()},  # type: ignore[misc]
        )

    @model_validator(mode="before")
    @classmethod
    def _has_goal_or_goals(cls, given: Any) -> Any:
        if not isinstance(given, dict) or given.get("goals") is None:
            return given
        if given.get("goal") is not None:
            raise ValueError("must have goal, or goals for several objectives, and not both")
        return {**given, "goal": None}

    @model_validator(mode="after")
    def _is_sought(self) -> StudyForm:
        if self.goal is None and self.goals is None:
            raise ValueError('must have a goal, "minimize" or "maximize", or goals for several objectives')
        return self

    def checked(self) -> StudyForm:
        """The study as an Optimizer takes it; BadField, with the first field at fault, if it takes none such.

        This may take a second, so it is no part of reading a request.
        """
        parameters, baseline = _parameters(self.space), self.baseline
        context = {} if self.context is None else _parameters(self.context)
        with field_of("space"):
            space = as_space(parameters)
        with field_of("context"):
            if self.context is not None:
                as_space(context)
        with field_of("require"):
            if len(self.require) > MOST_CONDITIONS:
                advice = "join some with 'and', or compute one parameter from others"
                raise ValueError(f"must be at most {MOST_CONDITIONS} conditions, got {len(self.require)}: {advice}")
            space = as_space(parameters, self.require) if self.require else space
        with field_of("baseline"):
            baseline = None if baseline is None else dict(checked_baseline(space, baseline))
        with field_of("safe"):
            bounds = checked_constraints(dict.fromkeys(self.constraints, ("<=", 0.0)))
            checked_safe(self.safe, bounds, baseline, self.drift)
        with field_of("fidelity" if self.fidelity else "safe"):
            check_apart(fidelity=self.fidelity, drift=self.drift, goals=self.goals, safe=self.safe)
            if self.fidelity is not None:
                checked_fidelity(_parameters(self.fidelity), [*self.space, *context])
        return self.model_copy(update={"baseline": baseline})


def _parameters(space: dict[str, Any]) -> dict[str, Float | Int | Choice]:
    return {name: form.parameter() for name, form in space.items()}


@dataclass(frozen=True)
class ServiceStudy(Study):
    """A study whose trials are measured by clients: like one of a file, but without a command."""

    description: Mapping[str, Any] = field(default_factory=dict)
    """The request that created it; without drift, require or safe there are no such keys, as in older studies."""

    @cached_property
    def contexts(self) -> Contexts:
        """Params and contexts as an Optimizer has them."""
        return checked_contexts(self.settings, self.context)

    def identity(self) -> dict[str, Any]:
        return {SERVICE: dict(self.description)}


def _is_askable(count: int) -> int:
    if count > MOST_ASKED:
        raise ValueError(f"must be at most {MOST_ASKED}, got {count}: ask again for more, best after some results")
    return count


class AskForm(Form):
    """Request for ``count`` trials, in a context, by a client with a key of its own."""

    count: Annotated[
        int,
        Field(ge=1, description="At most 100 trials", json_schema_extra={"maximum": MOST_ASKED}),
        AfterValidator(_is_askable),
    ] = 1
    context: Annotated[Params | None, Field(description="Needed if the study has contexts")] = None
    client: Annotated[
        Label | None, Field(description="Name of the caller; a repeated ask with it returns its pending trials")
    ] = None


class ValueForm(Form):
    """A value, or a bound beyond which it lies, such as the time after which a run was stopped.

    With several objectives the ``value`` is an object with a number for each. Questions weigh improvement by the
    ``cost`` that is expected, if costs are sent.
    """

    value: Told | None = None
    at_least: float | None = None
    at_most: float | None = None
    noise: Annotated[
        Annotated[float, Field(gt=0)] | None, Field(description="Standard deviation of the value, if it is known")
    ] = None
    constraints: Annotated[
        dict[Label, float | None] | None,
        Field(description="A number for each constraint of the study, null if it was not measured"),
    ] = None
    cost: Annotated[
        Annotated[float, Field(gt=0)] | None, Field(description="Cost of the trial, in any unit: such as its seconds")
    ] = None
    fidelity: Annotated[
        Params | None, Field(description="Where the value was measured; by default as the trial says")
    ] = None

    def number(self) -> tuple[float | None, Literal["at_least", "at_most"] | None]:
        """The value or the bound, and the direction of the bound; ValueError if there are several."""
        return checked_bound(self.value, self.at_least, self.at_most)


class ReportForm(Form):
    """Intermediate value of a trial that is running, and the fidelity that it has reached."""

    fidelity: Params
    value: float


class VerdictForm(BaseModel):
    """Decision about a running trial: if it is to be stopped, tell its last value."""

    stop: bool


class TellForm(ValueForm):
    """Observation of a trial: its ``value``, or ``at_least`` or ``at_most`` if only a bound is known."""

    @model_validator(mode="after")
    def _is_one(self) -> TellForm:
        self.number()
        return self


class OutcomeForm(ValueForm):
    """Observation of a trial, by its ``id``, or of ``params`` that were measured in the past.

    It has a ``value``, or ``at_least`` or ``at_most``, or ``failed`` is true. The same observation of the past twice
    counts once; a repeated measurement with the same numbers counts if it has another ``key``, which is any text.
    """

    id: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None
    params: Params | None = None
    context: Params | None = None
    key: Label | None = None
    failed: bool = False

    @model_validator(mode="after")
    def _is_one(self) -> OutcomeForm:
        if (self.id is None) == (self.params is None):
            raise ValueError("must have the id of a trial, or params that were measured in the past, and not both")
        if (self.number()[0] is None) != self.failed:
            raise ValueError('must have a value, or "failed": true, and not both; at_least or at_most count as a value')
        if self.failed and (self.noise is not None or self.constraints is not None):
            raise ValueError("noise and constraints are of a value: leave them out with failed")
        if self.id is not None and (self.context is not None or self.key is not None):
            raise ValueError("context and key are for params of the past: leave them out with an id")
        return self


class OutcomesForm(Form):
    """Observations to store, all or none."""

    trials: Annotated[list[OutcomeForm], Field(min_length=1, max_length=MANY)]


class FailForm(Form):
    """Cost of a failed trial, if it is known."""

    cost: Annotated[float, Field(gt=0)] | None = None


class TrialForm(BaseModel):
    """A trial to measure, at a fidelity if the study has one."""

    id: int
    params: dict[str, Any]
    fidelity: dict[str, Any] | None = None


class AskedForm(BaseModel):
    """Trials to measure."""

    trials: list[TrialForm]


class TrialState(BaseModel):
    """State of a trial; with a ``bound``, the value is at least or at most ``value``."""

    id: int
    state: Literal["done", "failed"]
    value: Value | None
    bound: Literal["at_least", "at_most"] | None = None


class TrialStates(BaseModel):
    """States of trials, in the order of the request."""

    trials: list[TrialState]


class StateCounts(BaseModel):
    """Number of trials by state."""

    running: int = 0
    done: int = 0
    failed: int = 0


class ListedStudy(BaseModel):
    """A study in the list.

    ``trials`` is the number of all trials, and ``last`` the time of the last outcome.
    """

    name: str
    goal: Goal | None
    trials: int
    states: StateCounts
    last: str | None
    goals: dict[str, Goal] | None = None


class StudiesForm(BaseModel):
    """Studies by name; if there are more, ``next`` is the name for ``after``."""

    studies: list[ListedStudy]
    next: str | None


class RecordForm(TrialForm):
    """A trial with its outcome: its state is ``running``, ``done`` or ``failed``.

    With a ``bound``, the value is at least or at most ``value``.
    """

    value: Value | None
    state: Literal["running", "done", "failed"]
    context: dict[str, Any] | None
    bound: Literal["at_least", "at_most"] | None = None


class RecordsForm(BaseModel):
    """All trials, by their ids."""

    trials: list[RecordForm]


class PredictForm(Form):
    """Params to predict, in a context."""

    params: Params
    context: Params | None = None


class EstimateForm(BaseModel):
    """Estimate for some params.

    The true value lies between ``lower`` and ``upper`` with probability ``level``; both are null with too few
    observations. ``feasible`` is the probability that the params meet all constraints.
    """

    params: dict[str, Any]
    estimate: float
    lower: float | None
    upper: float | None
    level: float
    feasible: float


class ChangeForm(BaseModel):
    """A change of a parameter from the baseline: its gain lies between ``lower`` and ``upper``."""

    name: str
    before: Any = Field(alias="from")
    after: Any = Field(alias="to")
    gain: float | None
    lower: float | None
    upper: float | None


class BestForm(EstimateForm):
    """The recommended params.

    No other params are better by more than ``gap``, which is null while there is no such bound. By the model, at most
    ``remaining`` is left to gain, at ``level``; null if unknown. ``changes`` are those from the baseline, the one with
    the largest gain first. An observation counts half after ``half_life`` evaluations, null if no drift was found.
    """

    gap: float | None
    remaining: float | None
    changes: list[ChangeForm]
    half_life: float | None


class FrontEstimateForm(BaseModel):
    """Estimate for some params in several objectives, by name.

    The true value of each lies between ``lower`` and ``upper`` with probability ``level``; both are null with too few
    observations. ``probability`` is that of belonging to the true front, ``feasible`` that of meeting all constraints.
    ``is_likeliest`` is true if nothing is likely to meet all constraints and limits, and this comes nearest.
    """

    params: dict[str, Any]
    values: dict[str, float]
    lower: dict[str, float | None]
    upper: dict[str, float | None]
    probability: float
    level: float
    feasible: float
    is_likeliest: bool


class HypervolumeForm(BaseModel):
    """Volume between a front and the ``reference``; it lies between ``lower`` and ``upper`` with ``level``."""

    estimate: float
    lower: float
    upper: float
    reference: dict[str, float]
    level: float


class FrontForm(BaseModel):
    """The params that are likely best in some trade-off of the objectives, and the hypervolume of that front."""

    front: list[FrontEstimateForm]
    hypervolume: HypervolumeForm


class StudyState(StudyForm):
    """A study, the number of its trials, and the recommended params.

    ``best`` is null before the first value, in a study with contexts if the request names none, and with several
    objectives: see the front.
    """

    trials: int
    states: StateCounts
    best: BestForm | None


class GainForm(BaseModel):
    """Difference between the recommended params and the baseline: above 0 is better.

    The true difference lies between ``lower`` and ``upper`` with probability ``level``; ``relative`` are the ends of
    its interval as a part of the baseline's size, null where that may be 0; ``text`` is all of it in words.
    """

    estimate: float
    lower: float | None
    upper: float | None
    level: float
    relative: tuple[float, float] | None
    best: EstimateForm
    baseline: EstimateForm
    goal: Literal["minimize", "maximize"]
    text: str


class GainsForm(BaseModel):
    """Difference between params of the front and the baseline, in each objective; ``text`` is all of it in words."""

    gains: dict[str, GainForm]
    text: str


class DoneForm(BaseModel):
    """Decision of the stopping rule."""

    done: bool
    gap: float | None
    level: float


class HealthForm(BaseModel):
    """State of the server."""

    status: Literal["ok"] = "ok"


class FaultForm(BaseModel):
    """Reason of an error."""

    detail: str


class FieldFault(BaseModel):
    """Error in a field of a request."""

    loc: list[str | int]
    msg: str
    type: str


class FieldFaults(BaseModel):
    """Errors in the fields of a request."""

    detail: list[FieldFault]
