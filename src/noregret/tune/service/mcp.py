"""``noregret mcp``: the studies of a storage as tools of the Model Context Protocol, for agents.

Each method of `Tools` is a tool: its docstring is what the agent reads, its form what the tool takes. An answer is
a JSON object that begins with a ``summary``, one or two sentences that an agent can act on.
"""

from __future__ import annotations

import inspect
import json
import logging
import math
import signal
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import anyio
import anyio.to_thread
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.types import CallToolResult, ListToolsResult, TextContent, Tool, ToolAnnotations
from pydantic import AfterValidator, Field, ValidationError, WithJsonSchema, model_validator

from noregret.belief.numerics.threads import one_thread
from noregret.comparison import Comparison
from noregret.files import write_atomically
from noregret.formatting import shown
from noregret.optimizer import LEVEL, Estimate, checked_confidence, checked_tolerance
from noregret.tune.learning.findings import finite
from noregret.tune.page import words
from noregret.tune.page.page import page
from noregret.tune.service import answers, models
from noregret.tune.service.answers import BadField, Contradiction
from noregret.tune.service.live import Deleted, LiveStudy, NoStudy
from noregret.tune.service.models import AskForm, Form, Goal, Label, Name, OutcomeForm, OutcomesForm, Params
from noregret.tune.service.studies import AnotherStudy, Studies
from noregret.tune.store.databases.sqlite import SQLite
from noregret.tune.store.storage import Storage
from noregret.tune.study.study import StudyError

LOG = logging.getLogger("noregret.mcp")
INSTRUCTIONS = """\
noregret finds the best of many options from noisy measurements, and says how sure that is. Call create_study once. \
Then repeat: ask for params, measure them yourself, and tell the result, until the summary of tell or remaining \
begins with "Stop". "within" says how little may be left to gain then. You may stop earlier, when your budget is \
spent: best is valid at any time. Tell every result, also bad ones, outliers and failures: the model expects them. \
Use the params of best, not those of the luckiest measurement. "lower" and "upper" are the ends of an interval that \
holds with probability "level"; null means that it is not known yet. tell also takes params of your own choice. To \
learn whether B is really better than A, call versus with measurements in pairs. Studies are stored on disk: after a \
restart, list_studies and describe show them, with the trials that wait for a result."""
DIGITS = 6
"""Significant digits of numbers in answers; params have all of them."""
EXACT = ("params", "space", "baseline", "context", "fidelity", "value", "constraints")
"""Fields whose numbers are not rounded."""
MOST_VALUES = 10_000
"""Largest number of measurements of each option in `Tools.versus`."""
MOST_LISTED = 20
"""Largest number of pending trials, or names of studies, in a sentence or answer."""
WORDY = {"title", "discriminator", "propertyNames"} | {
    f"{end}{of}" for end in ("min", "max") for of in ("Length", "Items", "Properties")
}
"""Keys of schemas that agents do not need: requests are checked anyway."""
HINTS = {
    "missing": "is needed",
    "extra_forbidden": "is no field of this: see the schema of the tool",
    "union_tag_not_found": 'must have a "type": "float", "int" or "choice"',
}
"""Words for kinds of faults whose own words do not say what to do."""
WITHIN = "1%"
"""Default tolerance: the most that may be left to gain when the advice is to stop."""


def _checked_within(within: float | str) -> float | str:
    checked_tolerance(within)
    return within


Tolerance = Annotated[float | Annotated[str, Field(max_length=100)], AfterValidator(_checked_within)]
Within = Annotated[
    Tolerance,
    Field(description='Stop when no more than this is left to gain: "1%" of the best estimate, or a number'),
]
Confidence = Annotated[
    float, AfterValidator(checked_confidence), Field(description="The probability of being right, such as 0.95")
]


class NoArguments(Form):
    """A request without arguments."""


class OfStudy(Form):
    """A request about a study."""

    study: Annotated[Name, Field(description="Name of the study")]


class InContext(OfStudy):
    """A request about a study, in a context."""

    context: Annotated[Params | None, Field(description="The current context, if the study has contexts")] = None


class Ask(AskForm, OfStudy):
    """Request for trials of a study."""


class Tell(OutcomeForm, OfStudy):
    """Observation of a study: ``value`` with one objective, ``values`` with several."""

    value: Annotated[models.Told | None, WithJsonSchema({"type": "number"})] = None
    values: Annotated[
        dict[Label, float | None] | None, Field(description="With several objectives: a number for each, by name")
    ] = None
    within: Within = WITHIN

    @model_validator(mode="before")
    @classmethod
    def _has_value_or_values(cls, given: Any) -> Any:
        if not isinstance(given, Mapping) or given.get("values") is None:
            return given
        if given.get("value") is not None:
            raise ValueError("must have value, or values for several objectives, and not both")
        return {**given, "value": given["values"]}

    def outcomes(self) -> OutcomesForm:
        """The observation as the service stores it."""
        return OutcomesForm(trials=[OutcomeForm(**self.model_dump(exclude={"study", "values", "within"}))])


class TellMany(OutcomesForm, OfStudy):
    """Observations of a study."""


class Pick(InContext):
    """A request about a study; with several objectives, limits or weights pick from the front."""

    limits: Annotated[
        dict[Label, list[str | float]] | None,
        Field(description='With several objectives: {"cost": ["<=", 0.3]} picks the params that meet it'),
    ] = None
    weights: Annotated[
        dict[Label, float] | None, Field(description="With several objectives: the best weighted sum of them")
    ] = None


class Remaining(InContext):
    """Question whether to stop."""

    within: Within = WITHIN
    confidence: Confidence = 0.95


class Versus(Form):
    """Measurements of two options, in pairs."""

    a: Annotated[list[float | None], Field(max_length=MOST_VALUES, description="Values of A; null for a failed run")]
    b: Annotated[
        list[float | None], Field(max_length=MOST_VALUES, description="Values of B: b[i] was measured next to a[i]")
    ]
    goal: Goal = "minimize"
    within: Annotated[
        Tolerance | None,
        Field(description='Margin within which A and B count as equal, such as "1%"; without it never "equal"'),
    ] = None
    confidence: Confidence = 0.95

    @model_validator(mode="after")
    def _are_pairs(self) -> Versus:
        if len(self.a) != len(self.b):
            raise ValueError(
                f"a and b must have the same number of values, as they are compared in pairs, got {len(self.a)} and "
                f"{len(self.b)}: measure the missing ones, or put null for runs that failed"
            )
        return self


class Tools:
    """The tools, on the studies of a storage.

    Parameters
    ----------
    studies : Studies
    folder : Path
        Where report pages are written.
    """

    def __init__(self, studies: Studies, folder: Path) -> None:
        self._studies, self._folder = studies, folder

    def create_study(self, form: models.StudyForm) -> dict[str, Any]:
        """Create a study: the params to vary, and whether small or large values are wanted. Safe to repeat.

        space, by name: {"rate": {"type": "float", "low": 0.0001, "high": 1, "log": true}, "threads": {"type":
        "int", "low": 1, "high": 64}, "mode": {"type": "choice", "choices": ["fast", "safe"]}}. "log" is for ranges
        over orders of magnitude; "when": {"mode": "fast"} is for a parameter that applies only then. goal is
        "minimize" or "maximize". Several objectives have goals in place of goal: {"latency": "minimize", "cost":
        "minimize"}.

        Optional: baseline, the present params, which gain compares with (measured first); constraints {"memory":
        {"max": 512}} on numbers that come with each value; require ["a <= b"]; context, a space of things that
        are given and not chosen, such as the load; fidelity, {"epochs": {"type": "int", "low": 1, "high": 81,
        "log": true}}; drift "auto" if the best params change over time; safe 0.99 to stay within the constraints
        while searching.
        """
        made = "Created" if self._studies.create(form) else "The same study exists: continue with"
        first = "the baseline" if form.baseline else "params"
        return {"summary": f"{made} study {form.name!r}. Next: ask for {first} to measure.", "study": form.name}

    def ask(self, form: Ask) -> dict[str, Any]:
        """Return params to measure next, as trials with an id. Measure them yourself, then call tell with the id.

        Ask for several (count) only if you measure them at the same time. With a client key, any text of your own, a
        repeated ask returns the trials that still have no result.
        """
        study = self._study(form.study)
        trials = study.ask(answers.ask_request(study, form)).result()
        found = answers.asked(trials).model_dump(exclude_none=True)["trials"]
        what = "these params at this fidelity" if study.study.levels else "these params"
        ids = ", ".join(str(its["id"]) for its in found)
        return {"summary": f"Measure {what}, then tell the value with id {ids}.", "trials": found}

    def tell(self, form: Tell) -> dict[str, Any]:
        """Store one result, and say whether to stop. The same result twice counts once.

        Give the id of a trial, or params of your own choice that you have measured, and one of: value; values with
        several objectives; at_least or at_most if the run was cut short and only a bound is known; failed true. A
        study with constraints needs constraints, {"memory": 320}. Optional: noise, the standard deviation of the
        value if you know it; cost, such as seconds, so that cheap trials are preferred; key, any text, for another
        measurement of the same params of your own with the same value; fidelity, that the value was measured at;
        context with params, if the study has contexts.
        """
        study = self._study(form.study)
        try:
            (told,) = answers.told(study, form.outcomes()).trials
        except BadField as error:
            raise BadField(error.place[2:], error) from None  # without the place in a list of one
        except Contradiction as error:
            raise Contradiction(str(error).removeprefix("trials[0]: ")) from None
        context = next(record.context for record in study.records() if record.number == told.id)
        verdict = self._verdict(study, context, form.within, LEVEL)
        return {"summary": f"Stored trial {told.id}. {verdict.pop('summary')}", "id": told.id, **verdict}

    def tell_many(self, form: TellMany) -> dict[str, Any]:
        """Store several results, all or none, such as measurements from the past.

        Each has the fields of tell: {"params": {...}, "value": 3.1} or {"id": 7, "failed": true}; with several
        objectives value is an object with a number for each. Rows that are stored already count once.
        """
        study = self._study(form.study)
        stored = answers.told(study, OutcomesForm(trials=form.trials)).trials
        ids = [its.id for its in stored]
        return {"summary": f"Stored. {_counts(study)}. Next: ask, or remaining to see whether to stop.", "ids": ids}

    def best(self, form: Pick) -> dict[str, Any]:
        """Return the recommended params with the interval of their true value, not those of the luckiest measurement.

        With several objectives: the front, the best compromises; limits or weights pick one of them.
        """
        study = self._study(form.study)
        wished = form.limits is not None or form.weights is not None
        if not study.study.objectives or wished:
            found = answers.best(study, form.context, form.limits, form.weights)
            if isinstance(found, models.BestForm):
                return {"summary": _recommended(self._best(study, form.context)), **_brief(found)}
            said = f"{shown(found.params)} picked from the front: {_joint(found)}."
            return {"summary": f"Use {said}", **_brief(found)}
        front = answers.front(study, form.context)
        first = f"{len(front.front)} compromises. Choose one, or give limits or weights to pick one."
        volume = front.hypervolume.model_dump()
        return {"summary": first, "front": [_brief(member) for member in front.front], "hypervolume": volume}

    def gain(self, form: Pick) -> dict[str, Any]:
        """Return how much better the recommended params are than the baseline, with an interval."""
        found = answers.gain(self._study(form.study), form.context, form.limits, form.weights)
        if isinstance(found, models.GainsForm):
            gains = {name: its.model_dump(exclude={"best", "baseline", "text"}) for name, its in found.gains.items()}
            return {"summary": f"Against the baseline: {found.text}.", "gains": gains}
        sure = "" if found.lower is None or found.lower > 0 or not found.estimate else " It may be no gain at all."
        said = f"The recommended params: {found.text}.{sure}"
        return {"summary": said, **found.model_dump(exclude={"best", "baseline", "text"}), "params": found.best.params}

    def remaining(self, form: Remaining) -> dict[str, Any]:
        """Say what is left to gain by going on, and whether to stop: "Stop: ..." or "Continue: ..."."""
        return self._verdict(self._study(form.study), form.context, form.within, form.confidence)

    def versus(self, form: Versus) -> dict[str, Any]:
        """Say whether B is really better than A, from measurements in pairs. Nothing is stored.

        Measure A and B in turn, in random order within each pair, and call this after every few pairs with all
        values so far: the interval holds at every stopping time, also with outliers, so stop as soon as it is
        decided. This server runs no commands: measure with your own tools.
        """
        found = Comparison(goal=form.goal, within=form.within, confidence=form.confidence)
        for pair in zip(form.a, form.b, strict=True):
            for option, value in enumerate(pair):
                found.tell(option, value)
        change = {name: finite(getattr(found, name)) for name in ("estimate", "lower", "upper")}
        first = "AB"[found.ask()]
        more = f" Continue: measure another pair, {first} first, and call again with all values."
        rest = {"level": found.confidence, "pairs": found.pairs, "relative": found.is_relative, "next": first}
        return {"summary": f"{found}.{'' if found.decided else more}", "verdict": found.verdict, **change, **rest}

    def report(self, form: OfStudy) -> dict[str, Any]:
        """Write the report of a study as an HTML page for people; return its path, and which parameters matter."""
        study = self._study(form.study)
        findings = study.findings()
        path = self._folder / f"noregret-{form.study}.html"
        try:
            write_atomically(path, lambda file: file.write(page(findings).encode()))
        except OSError as error:
            raise Contradiction(f"{path} cannot be written: {error.strerror}") from None
        shares = {
            name: dict(zip(("share", "lower", "upper"), its, strict=False)) for name, its in findings.importance.items()
        }
        said = f"The report is written to {path}. {_counts(study)}."
        said += f" {_recommended(findings.best)}" if findings.best else ""
        return {"summary": said, "path": str(path), **({"importance": shares} if shares else {})}

    def list_studies(self, form: NoArguments) -> dict[str, Any]:
        """List all studies of the storage with the number of their trials."""
        found = answers.listed(self._studies, "", models.MANY).model_dump(exclude_none=True)
        known = [its["name"] for its in found["studies"]]
        said = f"describe shows one of them: {', '.join(known[:MOST_LISTED])}" if known else "create_study makes one"
        return {"summary": f"{len(known)} {'study' if len(known) == 1 else 'studies'}: {said}.", **found}

    def describe(self, form: InContext) -> dict[str, Any]:
        """Return how a study was made, its recommended params, and the trials that wait for a result."""
        study = self._study(form.study)
        state = answers.described(study, form.context)
        waiting = [its for its in answers.trials(study).trials if its.state == "running"]
        pending = [its.model_dump(exclude={"value", "state", "bound"}, exclude_none=True) for its in waiting]
        made = {
            name: its
            for name, its in state.model_dump(exclude={"trials", "states", "best"}, exclude_none=True).items()
            if its
        }
        best = {} if state.best is None else {"best": _brief(state.best)}
        said = f"{_counts(study)}." + (" Tell the pending trials, or ask for another." if pending else "")
        said += f" {_recommended(self._best(study, form.context))}" if best else ""
        return {"summary": said, **made, "states": state.states.model_dump(), **best, "pending": pending[:MOST_LISTED]}

    def _study(self, name: str) -> LiveStudy:
        return self._studies.opened(name) or self._studies[name]

    @staticmethod
    def _best(study: LiveStudy, context: Any) -> Estimate:
        known = study.best(answers.context_of(study, context))
        assert known is not None
        return known[0]

    def _verdict(self, study: LiveStudy, context: Any, within: float | str, confidence: float) -> dict[str, Any]:
        """Advice to stop or to continue, the best params, and what is left to gain."""
        if study.study.objectives:
            try:
                volume = answers.front(study, context).hypervolume
            except Contradiction as error:
                return {"summary": f"Continue: {error}.", "stop": False}
            size = words.with_interval(volume.estimate, volume.lower, volume.upper)
            said = "With several objectives no rule says when to stop: stop when your budget is spent, or best returns "
            said += f"the same front over several trials. Its hypervolume is {size}, at {words.percent(volume.level)}."
            return {"summary": said, "stop": None, "hypervolume": volume.model_dump()}
        stop = answers.done(study, within, confidence, context=context).done
        known = study.best(answers.context_of(study, context))
        if known is None:
            said = f"Continue: there is no value yet. {_counts(study)}."
            return {"summary": said, "stop": False, "remaining": None, "best": None}
        best = known[0]
        aim = words.number(within) if isinstance(within, float) else within
        sure = "" if confidence == best.level else f" with {words.percent(confidence)} confidence"
        left, counts = best.remaining_in_words(), _counts(study)
        if stop:
            said = f"Stop: {left}, and not more than the {aim}{sure} asked for. {_recommended(best, False)}"
        elif best.is_likeliest or (best.feasible < confidence and study.constraints):
            said = (
                f"Continue: the best params meet all constraints with probability {best.feasible:.2g} only. {counts}."
            )
        elif not best.has_gap:
            said = f"Continue: too few values to say what is left to gain. {counts}."
        elif math.isinf(best.remaining):
            said = f"Continue: {left}. {counts}. If it stays so, params matter little beside the noise: stop when your "
            said += "budget is spent."
        else:
            over = f"; {aim}{sure} is asked for" if sure else f", more than the {aim} asked for"
            said = f"Continue: {left.replace('at most', 'up to')}{over}. {counts}."
        brief = _brief(answers.best_form(*known))
        brief.pop("changes", None)
        return {"summary": said, "stop": stop, "remaining": brief.pop("remaining"), "best": brief}


def _recommended(best: Estimate, with_remaining: bool = True) -> str:
    """The recommended params with their interval."""
    left = f"; {best.remaining_in_words()}" if with_remaining and best.has_gap else ""
    likeliest = "; nothing is likely to meet all constraints, this is the likeliest" if best.is_likeliest else ""
    return f"Use {shown(best.params)}: {words.number(best.estimate)}, {words.likely(best)}{left}{likeliest}."


def _joint(found: models.FrontEstimateForm) -> str:
    """The values of several objectives with their intervals."""

    def said(name: str, value: float) -> str:
        low, high = found.lower[name], found.upper[name]
        return f"{name} {words.number(value) if low is None or high is None else words.with_interval(value, low, high)}"

    return ", ".join(said(*its) for its in found.values.items())


def _brief(found: models.EstimateForm | models.FrontEstimateForm) -> dict[str, Any]:
    """An estimate without fields that say nothing: what is unknown stays only in the interval and what remains."""
    said = found.model_dump(by_alias=True, exclude={"gap"})
    plain = {"feasible": 1.0, "changes": [], "half_life": None, "is_likeliest": False}
    return {name: its for name, its in said.items() if name not in plain or its != plain[name]}


def _counts(study: LiveStudy) -> str:
    """Number of trials by state, as ``12 values, 1 failed, 2 pending``."""
    counts = answers.states(answers.counted(study))
    said = [f"{counts.done} value{'s' * (counts.done != 1)}"]
    said += [f"{count} {state}" for count, state in ((counts.failed, "failed"), (counts.running, "pending")) if count]
    return ", ".join(said)


def _rounded(value: Any) -> Any:
    """Numbers with `DIGITS` digits, except for params."""
    if isinstance(value, Mapping):
        return {name: its if name in EXACT else _rounded(its) for name, its in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(its) for its in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


READ_ONLY = ToolAnnotations(read_only_hint=True, open_world_hint=False)
ADDS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
ASKS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False)
TOOLS = {
    "create_study": ADDS,
    "ask": ASKS,
    "tell": ADDS,
    "tell_many": ADDS,
    "best": READ_ONLY,
    "gain": READ_ONLY,
    "remaining": READ_ONLY,
    "versus": READ_ONLY,
    "report": ADDS,
    "list_studies": READ_ONLY,
    "describe": READ_ONLY,
}
"""Names of the tools, with what clients may assume: which ones change nothing, and none destroys anything."""


def _plain(schema: Any) -> Any:
    """A schema without what takes an agent's attention and says little: titles, limits of length, nulls for absence."""
    if isinstance(schema, list):
        return [_plain(its) for its in schema]
    if not isinstance(schema, Mapping):
        return schema
    plain = {
        name: _plain(its) for name, its in schema.items() if name not in WORDY and (name, its) != ("default", None)
    }
    kinds = [its for its in plain.get("anyOf", ()) if its != {"type": "null"}]
    return plain if len(kinds) != 1 else {**{name: its for name, its in plain.items() if name != "anyOf"}, **kinds[0]}


def server(studies: Studies, folder: Path) -> Server[Any]:
    """The server of the tools on some studies, for any transport; ``folder`` is where pages are written."""
    tools = Tools(studies, folder)
    forms: dict[str, type[Form]] = {name: get_type_hints(getattr(Tools, name))["form"] for name in TOOLS}

    async def list_tools(context: Any, params: Any) -> ListToolsResult:
        return ListToolsResult(
            tools=[
                Tool(
                    name=name,
                    description=inspect.getdoc(getattr(Tools, name)),
                    input_schema=_plain(forms[name].model_json_schema()),
                    annotations=hints,
                )
                for name, hints in TOOLS.items()
            ]
        )

    def call(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        method: Callable[[Form], dict[str, Any]] = getattr(tools, name)
        form = forms[name].model_validate({key: _unpacked(value) for key, value in arguments.items()})
        try:
            return method(form)
        except Deleted:
            return method(form)  # another server may have made it again

    async def call_tool(context: Any, params: Any) -> CallToolResult:
        try:
            if params.name not in TOOLS:
                raise Contradiction(f"there is no tool {params.name!r}: the tools are {', '.join(TOOLS)}")
            answer = await anyio.to_thread.run_sync(call, params.name, params.arguments or {})
        except Exception as error:
            return CallToolResult(content=[TextContent(type="text", text=_explained(error))], is_error=True)
        answer = _rounded(answer)
        text = json.dumps(answer, ensure_ascii=False)
        return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=answer)

    return Server(
        "noregret",
        version=version("noregret"),
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _unpacked(value: Any) -> Any:
    """An argument; some models send objects and lists as JSON in a string."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            pass
    return value


def _explained(error: Exception) -> str:
    """Text of an error: the fault, and a remedy."""
    if isinstance(error, ValidationError):
        found = zip(answers.faults(error.errors()), error.errors(), strict=True)
        said = [f"{_dotted(place)}{HINTS.get(kind, must)}{_got(its)}" for (place, must, kind), its in found]
        return f"Nothing was changed. {'; '.join(said)}."
    if isinstance(error, NoStudy):
        return f"There is no study {error.name!r}: list_studies shows what there is, create_study makes one."
    if isinstance(error, BadField):
        return f"Nothing was changed. {_dotted(error.place)}{error}."
    if isinstance(error, AnotherStudy):
        return f"{error}. Choose another name, or describe it and continue with it."
    if isinstance(error, Contradiction | StudyError):
        return str(error)
    LOG.error("a tool failed", exc_info=error)
    return "This is a fault of the server, whose standard error says more. Results that were acknowledged are stored."


def _dotted(place: Sequence[str | int]) -> str:
    """A field, such as ``space.x.low: ``; the arguments if it is all of them."""
    return f"{'.'.join(map(str, place)) or 'arguments'}: "


def _got(fault: Any) -> str:
    """The value at fault, if it is a short one."""
    given = fault["input"]
    is_short = isinstance(given, str | int | float) and len(str(given)) < 50
    return f", got {given!r}" if is_short and fault["type"] not in {"value_error", *HINTS} else ""


def serve(url: str, lease: float) -> None:
    """Serve the studies of a storage over standard input and output until the client ends it.

    Raises
    ------
    StudyError
        If the storage cannot be used.
    """
    storage = Storage(url, Path.cwd())
    folder = storage.where.path.parent if isinstance(storage.where, SQLite) else Path.cwd()
    studies = Studies(storage, lease)

    async def run() -> None:
        async with stdio_server() as (reading, writing):
            found = server(studies, folder)
            await found.run(reading, writing, found.create_initialization_options())

    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a thread that waits for input would not notice
    try:
        with one_thread():  # studies share the machine; products of their size are no faster on more
            anyio.run(run)
    finally:
        studies.close()
