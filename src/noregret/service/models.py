"""JSON forms of requests and answers, and the study that a request describes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, AliasChoices, BaseModel, Discriminator, Field, Tag, WithJsonSchema, model_validator

from noregret.optimizer import VALUE, BadOption, BadReading, Goal, ProblemDescription, Reading, Readings, checked_bound
from noregret.optimizer import Bound as Side
from noregret.studies.study.forms import (
    MANY,
    SHAPED,
    Bound,
    ChoiceForm,
    FloatForm,
    Form,
    IntForm,
    Label,
    Part,
    Place,
    Scalar,
    about,
    form_of,
)
from noregret.studies.study.parameters import problem_in
from noregret.studies.study.study import Budget, Study

NAME = r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$"
MOST_ASKED = 100
"""Largest number of trials that one request may ask for: choosing them takes a few seconds."""

MOST_ROWS = 10_000
"""Largest number of rows of a table."""
MOST_GOALS = 20
"""Largest number of objectives of a study."""
MOST_CONDITIONS = 50
"""Largest number of conditions of ``require``: each is computed for all params that are tried."""

Name = Annotated[str, Field(pattern=NAME)]
Reason = Annotated[str, Field(max_length=1000)]
Params = dict[Label, Scalar]
Goals = Annotated[dict[Label, Goal], Field(min_length=2, max_length=MOST_GOALS)]
Positive = Annotated[float, Field(gt=0)]
Value = float | dict[str, float | None]
"""A value, or one for each of several objectives, null for one that was not measured."""
KINDS = "(number)", "(object)", "(list)"
"""Names of the kinds of values; errors leave them out."""


def _kind(given: Any) -> str:
    return KINDS[1 if isinstance(given, dict | BaseModel) else 2 if isinstance(given, list) else 0]


Told = Annotated[
    Annotated[float, Tag(KINDS[0])] | Annotated[dict[Label, float | None], Tag(KINDS[1])], Discriminator(_kind)
]
"""A value of a request: errors are about a number unless it is an object."""


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


ParameterForm = Annotated[FloatForm | IntForm | ChoiceForm, Field(discriminator="type")]
FidelityForm = Annotated[
    dict[Label, Annotated[FloatForm | IntForm, Field(discriminator="type")]], Field(min_length=1, max_length=1)
]
SpaceForm = Annotated[dict[Label, ParameterForm], Field(min_length=1, max_length=MANY)]
TableForm = Annotated[
    list[Annotated[Params, Field(min_length=1, max_length=MANY)]], Field(min_length=1, max_length=MOST_ROWS)
]
Possible = Annotated[list[float | None], Field(min_length=2, max_length=2)]


STORED = ("name", "goal", "context", "constraints", "baseline")
"""Fields that are stored where they are as by default, too, as earlier versions have done."""

if TYPE_CHECKING:
    ProblemForm = Form
else:
    ProblemForm = form_of(ProblemDescription, Form, besides=SHAPED)


class StudyForm(ProblemForm):
    """A study: goal, parameters, contexts, constraints and baseline.

    A study with several objectives has ``goals`` in place of ``goal``, which is null then. A study of the rows of a
    ``table`` has no ``space``.
    """

    name: Name
    goal: Goal | None = "minimize"
    space: Annotated[SpaceForm | None, about(ProblemDescription, "space")] = None
    table: Annotated[TableForm | None, Field(description="Rows to choose from, in place of space")] = None
    context: Annotated[SpaceForm | None, about(ProblemDescription, "context")] = None
    constraints: Annotated[dict[Label, Bound], Field(max_length=MANY), about(ProblemDescription, "constraints")] = (
        Field({})
    )
    require: Annotated[list[Label], Field(max_length=MANY), about(ProblemDescription, "require")] = Field([])
    baseline: Annotated[Params | None, about(ProblemDescription, "baseline")] = None
    safe: Annotated[Annotated[float, Field(ge=0.5, lt=1)] | None, about(ProblemDescription, "safe")] = None
    goals: Annotated[Goals | None, about(ProblemDescription, "goals")] = None
    fidelity: Annotated[FidelityForm | None, about(ProblemDescription, "fidelity")] = None
    possible: Annotated[Possible | dict[Label, Possible] | None, about(ProblemDescription, "possible")] = None

    @property
    def problem(self) -> ProblemDescription:
        """The problem as an Optimizer takes it."""
        return problem_in(self.model_dump())

    def study(self, storage: str) -> Study:
        """The study, in the storage with this URL: one without a command, whose trials are measured by clients."""
        known = type(self).model_fields
        usual = {name for name in known if name not in STORED and getattr(self, name) == known[name].default}
        return Study(
            Path(self.name),
            (),
            **self.problem.options,
            name=self.name,
            storage=storage,
            budget=Budget(),
            confirm=0,
            description=self.model_dump(mode="json", exclude=usual),
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
        if (self.space is None) == (self.table is None):
            raise ValueError("must have a space, or a table of rows to choose from, and not both")
        return self

    def checked(self) -> StudyForm:
        """The study as an Optimizer takes it; BadField, with the first field at fault, if it takes none such.

        This may take a second, so it is no part of reading a request.
        """
        if len(self.require) > MOST_CONDITIONS:
            advice = "join some with 'and', or compute one parameter from others"
            said = f"must be at most {MOST_CONDITIONS} conditions, got {len(self.require)}: {advice}"
            raise BadField(("require",), ValueError(said))
        try:
            baseline = self.problem.checked().baseline
        except BadOption as error:
            place = "table" if error.option == "space" and self.table is not None else error.option
            raise BadField((place,), error) from None
        return self.model_copy(update={"baseline": baseline})


def _is_askable(count: int) -> int:
    if count > MOST_ASKED:
        raise ValueError(f"must be at most {MOST_ASKED}, got {count}: ask again for more, best after some results")
    return count


class AskForm(Part, defer_build=False):
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


class ReadingForm(Part, defer_build=False):
    """A number with its standard deviation if that is known, or a ``bound`` that it is beyond."""

    value: float
    noise: Positive | None = None
    bound: Side | None = None

    def reading(self) -> Reading:
        """The same for the Optimizer."""
        return Reading(self.value, noise=self.noise, bound=self.bound)


Run = Annotated[Annotated[float, Tag(KINDS[0])] | Annotated[ReadingForm, Tag(KINDS[1])], Discriminator(_kind)]
Runs = Annotated[
    Annotated[float | None, Tag(KINDS[0])]
    | Annotated[ReadingForm, Tag(KINDS[1])]
    | Annotated[list[Run], Field(min_length=1, max_length=MANY), Tag(KINDS[2])],
    Discriminator(_kind),
]
ReadingsForm = Annotated[dict[Label, Runs], Field(max_length=MANY)]
"""Readings by name: a number, an object, a list of them of several runs, or null for what was not measured."""


class MeasuredForm(Part, defer_build=False):
    """Measurements of a trial."""

    value: Told | None = None
    at_least: float | None = None
    at_most: float | None = None
    noise: Annotated[Positive | None, Field(description="Standard deviation of the value, if it is known")] = None
    constraints: Annotated[
        dict[Label, float | None] | None,
        Field(description="A number for each constraint of the study, null if it was not measured"),
    ] = None
    cost: Annotated[Positive | None, Field(description="Cost in any unit, such as its seconds")] = None
    readings: Annotated[
        ReadingsForm | None,
        Field(description="More numbers by name: a number, an object with its noise, or a list of several runs"),
    ] = None

    def number(self) -> tuple[Any, Side | None]:
        """The value or the bound, and the direction of the bound; ValueError if there are several."""
        return checked_bound(self.value, self.at_least, self.at_most)

    @property
    def is_empty(self) -> bool:
        """True if there is neither a value nor a reading."""
        return self.number()[0] is None and not self.readings

    def told(self, tell: Callable[..., Readings]) -> Readings:
        """Readings of all runs, each by a function that takes a value, noise, constraints, cost and bound.

        BadField, with the field at fault, if they are bad.
        """
        value, bound = self.number()
        try:
            if self.readings is None:
                return tell(value, self.noise, self.constraints, self.cost, bound)
            named = self._named(value, bound)
            runs = max(len(each) for each in named.values())
            known: dict[str, tuple[Reading, ...]] = {}
            for run in range(runs):
                row = {name: each[min(run, len(each) - 1)] for name, each in named.items()}
                for name, own in tell(row, None, self.constraints, self.cost, None).items():
                    if run < len(named.get(name, ("once",))):
                        known[name] = (*known.get(name, ()), *(each for each in own if run == 0 or each.step is None))
            return known
        except BadReading as error:
            raise BadField(self._place(error.place), error) from None

    def _named(self, value: Any, bound: Side | None) -> dict[str, Sequence[Any]]:
        """Readings of each run by name; BadReading if one is given twice."""
        first = value if isinstance(value, dict) else {}
        if value is not None and not isinstance(value, dict):
            first = {VALUE: Reading(value, noise=self.noise, bound=bound)}
        elif self.noise is not None:
            raise BadReading("noise is for one number: give it with its number, in readings", "noise")
        twice = next((name for name in first if name in (self.readings or {})), None)
        if twice is not None:
            raise BadReading(f"{twice!r} must be given once, got it twice", VALUE, twice)
        named: dict[str, Sequence[Any]] = {name: (single,) for name, single in first.items()}
        for name, given in (self.readings or {}).items():
            runs = given if isinstance(given, list) else [given]
            named[name] = [run.reading() if isinstance(run, ReadingForm) else run for run in runs]
        return named

    def _place(self, place: Place) -> Place:
        """The field of a bad reading."""
        if place[0] == "constraints":
            return place[:1]
        if place[-1] in (self.readings or {}):
            return "readings", place[-1]
        return ("readings", *place[1:]) if place[0] == VALUE and self.value is None and self.readings else place


class ValueForm(MeasuredForm):
    """A value, or a bound beyond which it lies, such as the time after which a run was stopped.

    With several objectives the ``value`` is an object with a number for each. Questions weigh improvement by the
    ``cost`` that is expected, if costs are sent. The ``block`` is what it shares with others, such as the machine or a
    seed, by name. ``readings`` are further numbers, or the same ones with their noise:
    names that the study does not know are stored and listed, and are no part of any decision.
    """

    fidelity: Annotated[
        Params | None, Field(description="Where the value was measured; by default as the trial says")
    ] = None
    block: Annotated[Params | None, WithJsonSchema({"anyOf": [{"type": "object"}, {"type": "null"}]})] = None


BECAUSE: Any = Field(validation_alias=AliasChoices("because", "reason"), description="Reason, which is kept")


class CorrectionForm(MeasuredForm):
    """Numbers that take the place of those that were stored of a trial, and the reason.

    Numbers that are not named stay as they are; null takes one back.
    """

    because: Annotated[Reason, BECAUSE] = ""


class WithdrawalForm(Part, defer_build=False):
    """Reason why a trial does not count."""

    because: Annotated[Reason, BECAUSE] = ""


class ReportForm(Part, defer_build=False):
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
        if self.is_empty != self.failed:
            raise ValueError('must have a value, or "failed": true, and not both; at_least or at_most count as a value')
        if self.failed and (self.noise is not None or self.constraints is not None):
            raise ValueError("noise and constraints are of a value: leave them out with failed")
        if self.id is not None and (self.context is not None or self.key is not None):
            raise ValueError("context and key are for params of the past: leave them out with an id")
        return self


class OutcomesForm(Part, defer_build=False):
    """Observations to store, all or none."""

    trials: Annotated[list[OutcomeForm], Field(min_length=1, max_length=MANY)]


class FailForm(Part, defer_build=False):
    """Cost of a failed trial, and the reason of the failure, if they are known."""

    cost: Positive | None = None
    reason: Reason = ""


class TrialForm(BaseModel):
    """A trial to measure, at a fidelity if the study has one."""

    id: int
    params: dict[str, Any]
    fidelity: dict[str, Any] | None = None


class AskedForm(BaseModel):
    """Trials to measure."""

    trials: list[TrialForm]


Stored = dict[str, dict[str, Any] | list[dict[str, Any]]]
"""Readings by name: an object with value, noise, bound and step, or a list of several."""


class TrialState(BaseModel):
    """State of a trial and its readings; with a ``bound``, the value is at least or at most ``value``."""

    id: int
    state: Literal["done", "failed"]
    value: Value | None
    readings: Stored
    bound: Side | None = None


class TrialStates(BaseModel):
    """States of trials, in the order of the request."""

    trials: list[TrialState]


class StateCounts(BaseModel):
    """Number of trials by state; those that were withdrawn count as failed."""

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
    """A trial with all that is stored of it.

    With a ``bound``, the value is at least or at most ``value``. The ``readings`` have every number by its name, and
    ``earlier`` has the trial before each correction.
    """

    value: Value | None
    state: Literal["running", "done", "failed", "withdrawn"]
    context: dict[str, Any] | None
    bound: Side | None = None
    trial: int
    failed: bool
    readings: Stored
    values: dict[str, float | None] | None = None
    noise: float | None = None
    constraints: dict[str, float] | None = None
    cost: float | None = None
    runs: list[float] | None = None
    stopped: bool | None = None
    failure: str | None = None
    reason: str | None = None
    started: str | None = None
    ended: str | None = None
    seconds: float | None = None
    earlier: list[dict[str, Any]] | None = None
    block: dict[str, Any] | None = None


class RecordsForm(BaseModel):
    """All trials, by their ids."""

    trials: list[RecordForm]


class PredictForm(Part, defer_build=False):
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


class PairedForm(BaseModel):
    """Difference within pairs of runs of the recommended params and the baseline: above 0 is better.

    Its interval is valid after selection, at every look; null is no limit. ``percent`` is that of the ratios, as
    estimate, lower and upper, null unless all values are above 0; ``text`` is all of it in words.
    """

    estimate: float | None
    lower: float | None
    upper: float | None
    pairs: int
    level: float
    percent: tuple[float | None, float | None, float | None] | None
    text: str


class GainForm(BaseModel):
    """Difference between the recommended params and the baseline: above 0 is better.

    The true difference lies between ``lower`` and ``upper`` with probability ``level``; ``relative`` are the ends of
    its interval as a part of the baseline's size, null where that may be 0; ``measured`` is what pairs of runs show,
    null if there are too few; ``is_positive`` says that all values are above 0; ``text`` is all of it in words.
    """

    estimate: float
    lower: float | None
    upper: float | None
    level: float
    relative: tuple[float, float] | None
    best: EstimateForm
    baseline: EstimateForm
    goal: Literal["minimize", "maximize"]
    measured: PairedForm | None = None
    is_positive: bool = False
    text: str


class GainsForm(BaseModel):
    """Difference between params of the front and the baseline, in each objective; ``text`` is all of it in words."""

    gains: dict[str, GainForm]
    text: str


class DoneForm(BaseModel):
    """Decision of the stopping rule.

    ``remaining`` is what is left to gain by the model, which decides where ``by`` is "model", and ``gap`` that by the
    strict certificate; null where it is not known. ``text`` is what is known, in words.
    """

    done: bool
    gap: float | None
    remaining: float | None
    level: float
    text: str


class LinkForm(BaseModel):
    """Link to the page of one study, relative to the server's root."""

    link: str


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
