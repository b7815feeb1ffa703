"""Forms: a study as TOML or JSON, read by pydantic, and the JSON Schema of study files.

Options come from `ProblemDescription` and `Study` with their types, checks and descriptions. What is written here are
the keys whose shape in a file or a request is another one than in Python. Importing this needs pydantic.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, fields
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    create_model,
    model_validator,
)
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import InitErrorDetails, PydanticCustomError

from noregret.optimizer import EXACT, Choice, Float, Int, ProblemDescription, checked_fidelity
from noregret.studies.study import checks
from noregret.studies.study.checks import FLAG, FlagWords
from noregret.studies.study.parameters import parameter
from noregret.studies.study.study import FailureRules, Stop, Study

MANY = 1000
"""Largest number of options of a choice in a request, of parameters, and of observations."""

Label = Annotated[str, Field(min_length=1, max_length=200)]
Scalar = bool | int | float | Annotated[str, Field(max_length=1000)]
When = Annotated[dict[Label, Scalar | list[Scalar]], Field(max_length=MANY), BeforeValidator(checks.conditions)]
Number = Annotated[float, BeforeValidator(checks.number)]
Whole = Annotated[int, BeforeValidator(checks.whole(-EXACT, EXACT).check)]
WholeStep = Annotated[int, BeforeValidator(checks.whole(1, EXACT).check)]
Switch = Annotated[bool, BeforeValidator(checks.boolean)]

Place = tuple[str | int, ...]
"""A key of a file or a field of a request, from outside to inside."""


class Form(BaseModel):
    """An object with these fields and no others; numbers are finite, and text is no number."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)


class Part(Form):
    """Part of the description of a study. Of an unknown key it says which one may be meant."""

    model_config = ConfigDict(defer_build=True)

    @model_validator(mode="wrap")
    @classmethod
    def _with_hints(cls, given: Any, read: ModelWrapValidatorHandler[Part]) -> Part:
        try:
            return read(given)
        except ValidationError as error:
            faults = [cls._hinted(fault) for fault in error.errors(include_url=False)]
            raise ValidationError.from_exception_data(cls.__name__, faults) from None

    @classmethod
    def _hinted(cls, fault: Any) -> InitErrorDetails:
        kind, said, place = fault["type"], fault["msg"].removeprefix("Value error, "), fault["loc"]
        if kind == "extra_forbidden" and len(place) == 1:
            close = get_close_matches(place[0], cls.model_fields, 1)
            is_table = issubclass(cls, StudyFile) and isinstance(fault["input"], dict)
            shown = f"[{close[0]}]" if is_table and close else repr(close and close[0])
            hint = f"did you mean {shown}?" if close else f"known are {', '.join(sorted(cls.model_fields))}"
            said = f"unknown {'table' if is_table else 'key'}: {hint}"
        problem = PydanticCustomError(kind, "{said}", {**fault.get("ctx", {}), "said": said})
        return InitErrorDetails(type=problem, loc=place, input=fault["input"])


@cache
def described(kind: type) -> dict[str, tuple[Any, str]]:
    """Types of the fields of a dataclass that have a description, and these texts."""
    hints = get_type_hints(kind, include_extras=True)
    texts = {
        name: next((text for text in getattr(hint, "__metadata__", ()) if isinstance(text, str)), None)
        for name, hint in hints.items()
    }
    return {name: (hints[name], text) for name, text in texts.items() if text is not None}


def about(kind: type, name: str) -> Any:
    """Field of a form that says the same as the one of a dataclass."""
    return Field(description=described(kind)[name][1])


def form_of(kind: type, base: type[Form] = Part, besides: Sequence[str] = ()) -> Any:
    """Form with the described fields of a dataclass, as their types have them, but for some."""
    definitions: dict[str, Any] = {}
    for slot in fields(kind):
        if slot.name not in besides and slot.name in described(kind):
            hint, text = described(kind)[slot.name]
            default = ... if slot.default is MISSING else slot.default
            made: dict[str, Any] = {} if slot.default_factory is MISSING else {"default_factory": slot.default_factory}
            definitions[slot.name] = hint, Field(description=text, **made or {"default": default})
    return create_model(
        f"{kind.__name__}Options", __base__=base, __doc__=(kind.__doc__ or "").partition("\n")[0], **definitions
    )


class Described(Part):
    """A parameter that the Optimizer takes."""

    when: When | None = None

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
    low: Number
    high: Number
    log: Switch = False
    step: Number | None = None


class IntForm(Described):
    """A whole number from ``low`` to ``high``."""

    type: Literal["int"]
    low: Whole
    high: Whole
    log: Switch = False
    step: WholeStep | None = None


class ChoiceForm(Described):
    """One of some values."""

    type: Literal["choice"]
    choices: Annotated[list[Scalar], Field(min_length=1, max_length=MANY)]


class Bound(Part):
    """Bound on a number: at most ``max``, or at least ``min``."""

    max: Number | None = None
    min: Number | None = None

    @model_validator(mode="after")
    def _is_one(self) -> Bound:
        if (self.max is None) == (self.min is None):
            raise ValueError("must have either max or min: for both, write two constraints with the same result")
        return self

    def limit(self) -> tuple[str, float]:
        """The bound as an Optimizer takes it."""
        return ("<=", self.max) if self.max is not None else (">=", self.min or 0.0)


class InFile(Described):
    """A parameter in a study file."""

    when: Annotated[checks.Conditions, Field(description="Values of other parameters for which it applies")] = None
    default: Annotated[Any, Field(description="The value that it had before it was tuned")] = None


class FloatTable(InFile, FloatForm):
    """A number from ``low`` to ``high``."""


class IntTable(InFile, IntForm):
    """A whole number from ``low`` to ``high``."""


class ChoiceTable(InFile, ChoiceForm):
    """One of some values."""

    choices: checks.Choices


class BoolTable(InFile):
    """True or false."""

    type: Literal["bool"]


class FlagTable(InFile):
    """Words of the command, or others."""

    type: Literal["flag"]
    on: Annotated[checks.FlagState, Field(description="Words if it is on")]
    off: Annotated[checks.FlagState, Field(description="Words if it is off, by default none")] = ()

    @property
    def words(self) -> FlagWords:
        """The words of the flag that is off, and of the one that is on."""
        return self.off, self.on


ParameterTable = Annotated[FloatTable | IntTable | ChoiceTable | BoolTable | FlagTable, Field(discriminator="type")]


class BudgetTable(Part):
    """When to stop: evaluations, seconds, or both."""

    evaluations: Annotated[checks.Count | None, Field(description="Results in all, over all calls")] = None
    seconds: Annotated[checks.Seconds | None, Field(description="Seconds of one call")] = None

    @model_validator(mode="after")
    def _has_end(self) -> BudgetTable:
        if self.evaluations is None and self.seconds is None:
            raise ValueError("must say when to stop: evaluations = 100, or seconds = 600, or both")
        return self


class ConstraintTable(Bound):
    """Bound on another number of the same run: at most ``max``, or at least ``min``; one of the two."""

    result: checks.Reader
    safe: Annotated[checks.SafeLevel | None, Field(description="Probability with which every trial meets it")] = None


class ObjectiveTable(Part):
    """One of several numbers of a run that are to be as small, or as large, as possible."""

    goal: Annotated[str, checks.GOAL] = "minimize"
    result: checks.Reader
    possible: Annotated[checks.Possible | None, Field(description="Least and largest value there can be")] = None


class MeasureTable(Part):
    """A further number of a run that is kept and shown, and is no part of any decision."""

    result: checks.Reader
    unit: Annotated[checks.Text | None, Field(description="Unit, such as J")] = None


class FidelityTable(Part):
    """The parameter that says how well and at what cost to measure, such as the number of epochs."""

    parameter: Annotated[str, checks.named("", "epochs"), Field(description="Its name")]
    low: checks.End
    high: checks.End
    log: Switch = True

    @property
    def levels(self) -> dict[str, Float | Int]:
        """The fidelity as a problem has it."""
        kind = Int if isinstance(self.low, int) and isinstance(self.high, int) else Float
        return {self.parameter: kind(self.low, self.high, log=self.log)}  # type: ignore[arg-type]

    @model_validator(mode="after")
    def _is_fidelity(self) -> FidelityTable:
        checked_fidelity(self.levels, [])
        return self


class CleanupTable(Part):
    """Command that runs once after the last trial of a call."""

    command: Annotated[checks.Words, Field(description="A command that puts the setting to keep in place")]


class TrackTable(Part):
    """Tracking services that trials are sent to, with the place at each, or true for its default."""

    mlflow: checks.Place | None = None
    tensorboard: checks.Place | None = None
    wandb: checks.Place | None = None


SHAPED = "space", "goal", "context", "constraints", "require", "safe", "fidelity", "goals", "possible", "baseline"
"""Options of a problem with a shape of their own in study files and requests."""

if TYPE_CHECKING:
    StudyOptions = Part
    StopTable = Part
    FailureTable = Part
else:
    StudyOptions = form_of(Study, besides=(*SHAPED, "name", "storage", "result"))
    StopTable, FailureTable = form_of(Stop), form_of(FailureRules)


class StudyFile(StudyOptions):
    """Study file of noregret: parameters, the command that measures them, and when to stop."""

    name: Annotated[checks.Title | None, about(Study, "name")] = None
    goal: Annotated[str, checks.GOAL, about(ProblemDescription, "goal")] = "minimize"
    result: Annotated[checks.Reader, about(Study, "result"), Field(validate_default=True)] = "last-number"  # type: ignore[assignment]
    storage: Annotated[checks.Storage | None, about(Study, "storage")] = None
    parameters: Annotated[
        dict[Annotated[str, checks.named("a parameter's name", "cache_size")], ParameterTable],
        about(ProblemDescription, "space"),
    ] = Field({})
    flags: Annotated[
        dict[Annotated[str, checks.named("a flag's name", "unroll-loops", FLAG)], checks.Flag],
        Field(description="Flags of the command by name: [off, on], such as ['', '-funroll-loops']"),
    ] = Field({})
    candidates: Annotated[
        checks.Text | None, Field(description="CSV file of rows to choose from, in place of parameters")
    ] = None
    require: Annotated[checks.Require, about(ProblemDescription, "require")] = ()
    baseline: Annotated[dict[str, Any] | None, about(ProblemDescription, "baseline")] = None
    budget: BudgetTable
    stop: StopTable | None = None
    failure: FailureTable | None = None
    constraints: Annotated[
        dict[Annotated[str, checks.named("a constraint's name", "memory")], ConstraintTable],
        about(ProblemDescription, "constraints"),
    ] = Field({})
    objectives: Annotated[
        dict[Annotated[str, checks.named("an objective's name", "latency")], ObjectiveTable],
        about(ProblemDescription, "goals"),
    ] = Field({})
    measures: Annotated[
        dict[Annotated[str, checks.named("a measure's name", "energy")], MeasureTable],
        Field(description="Further numbers of each run, by name, that are kept and shown"),
    ] = Field({})
    fidelity: Annotated[FidelityTable | None, about(ProblemDescription, "fidelity")] = None
    possible: Annotated[checks.Possible | None, Field(description="Least and largest value there can be")] = None
    track: TrackTable | None = None
    cleanup: CleanupTable | None = None

    def options(self) -> dict[str, Any]:
        """Options of a study that have the same shape in its file."""
        failure = FailureRules() if self.failure is None else FailureRules(**dict(self.failure))
        stop = None if self.stop is None else Stop(**dict(self.stop))
        return {name: getattr(self, name) for name in StudyOptions.model_fields} | {"stop": stop, "failure": failure}


TABLES_OF_TABLES = "parameters", "flags", "constraints", "objectives", "measures"
"""Tables of a study file whose keys are names: each entry is one part."""
VALUES = "result", "when", "env"
"""Keys whose value may be a table that is checked as one value."""
ADVICE = {"budget": ": say when to stop, such as [budget] evaluations = 100"}
"""Advice about keys of a study file that are needed."""


def faults(error: ValidationError, content: Mapping[str, Any]) -> dict[tuple[str | None, ...], str]:
    """Faults of a study file with this content in our words, by key; None at the end is for the table itself."""
    messages: dict[tuple[str | None, ...], str] = {}
    given = error.errors(include_url=False)
    unknown = {error["loc"] for error in given if error["type"] == "extra_forbidden"}
    for flaw in given:
        kind, keys = flaw["type"], _place(flaw["loc"], content)
        place: tuple[str | None, ...] = keys
        said = flaw["msg"].removeprefix("Value error, ")
        if kind == "missing":
            key = str(flaw["loc"][-1])
            if get_close_matches(key, [str(loc[-1]) for loc in unknown if loc[:-1] == flaw["loc"][:-1]], 1):
                continue
            place, said = (*place, None), f"{key!r} is missing{ADVICE.get(key, '')}"
        elif kind in ("dict_type", "model_type", "model_attributes_type"):
            said = f"must be a table, got {flaw['input']!r}"
        elif kind == "union_tag_not_found":
            place, said = (*place, None), "'type' is missing"
        elif kind == "union_tag_invalid":
            place, said = (*place, "type"), f"must be one of {flaw['ctx']['expected_tags']}, got {flaw['ctx']['tag']!r}"
        elif kind != "extra_forbidden" and (flaw["loc"][-1:] == ("[key]",) or _is_table(keys, content)):
            place = (*place, None)
        messages.setdefault(place, said)
    return messages


def _place(loc: Iterable[str | int], content: Any) -> tuple[str, ...]:
    """Keys of a place that are in the file: pydantic also names the kinds of parameters, and numbers in lists."""
    path: list[str] = []
    for part in loc:
        if isinstance(content, dict) and part in content and not _is_value(path):
            path.append(str(part))
            content = content[part]
    return tuple(path)


def _is_value(place: Sequence[str]) -> bool:
    """Return True for a key whose table is checked as one value; a parameter may have its name."""
    is_name = len(place) == 2 and place[0] in TABLES_OF_TABLES
    return bool(place) and place[-1] in VALUES and not is_name


def _is_table(place: Sequence[str], content: Any) -> bool:
    """Return True for a table of the file, whose own fault it is, rather than a value that is written as a table."""
    for part in place:
        content = content[part]
    return bool(place) and isinstance(content, dict) and not _is_value(place)


class TomlSchema(GenerateJsonSchema):
    """Schema for TOML, which has no null, and without titles, which repeat the keys."""

    def nullable_schema(self, schema: Any) -> Any:
        return self.generate_inner(schema["schema"])

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def default_schema(self, schema: Any) -> Any:
        keywords = super().default_schema(schema)
        return {key: value for key, value in keywords.items() if (key, value) != ("default", None)}


def schema() -> dict[str, Any]:
    """JSON Schema of study files, for editors."""
    document = StudyFile.model_json_schema(schema_generator=TomlSchema)
    return {"$schema": TomlSchema.schema_dialect, **document, "title": "Study file of noregret"}
