"""``noregret mcp``: the studies of a storage as tools of the Model Context Protocol, for agents.

Each method of `Tools` is a tool: its docstring is what the agent reads, its form what the tool takes. An answer is
one of the service with a ``summary`` in front, one or two sentences that an agent can act on.
"""

from __future__ import annotations

import inspect
import json
import logging
import math
import signal
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import anyio
import anyio.to_thread
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.types import CallToolResult, ListToolsResult, TextContent, Tool, ToolAnnotations
from pydantic import AfterValidator, Field, ValidationError, create_model

from noregret.comparison import Comparison
from noregret.comparison.receipts import receipt, write
from noregret.extra import version
from noregret.files import write_atomically
from noregret.formatting import finite, shown
from noregret.gp.threads import one_thread
from noregret.optimizer import LEVEL, Goal, checked_confidence, checked_tolerance
from noregret.service import answers, models
from noregret.service.answers import Contradiction, Unknown
from noregret.service.live import LiveStudy, NoStudy
from noregret.service.models import BadField, Params
from noregret.service.studies import AnotherStudy, Studies
from noregret.studies import ledger as chain
from noregret.studies import words
from noregret.studies.page.page import page
from noregret.studies.store.databases.sqlite import SQLite
from noregret.studies.store.storage import Storage
from noregret.studies.study.forms import MANY, Form, Label
from noregret.studies.study.study import StudyError
from noregret.terminal import printable

LOG = logging.getLogger("noregret.mcp")
INSTRUCTIONS = """\
noregret finds the best of many options from noisy measurements, and says how sure that is. Call create_study once. \
Then repeat: ask for params, measure them yourself, and tell the result, until "stop" in the answer of tell is true. \
"within" says how little may be left to gain then. You may stop earlier, when your budget is spent: best is valid at \
any time. Tell every result, also bad ones, outliers and failures: the model expects them. Use the params of best, \
not those of the luckiest measurement. "lower" and "upper" are the ends of an interval that holds with probability \
"level"; null means that it is not known yet. To learn whether B is really better than A, call versus with \
measurements in pairs; to keep or discard one change after the other, call ledger. Studies are stored on disk: after a \
restart, list_studies and describe show them, with the trials that wait for a result."""
MOST_PENDING = 20
"""Largest number of pending trials in an answer."""
NEEDLESS = ("title", "discriminator", "pattern", "propertyNames", "minLength", "maxLength", "maxItems", "maxProperties")
"""Keys of schemas that agents do not need: requests are checked anyway."""
HINTS = {
    "missing": "is needed",
    "extra_forbidden": "is no field of this: see the schema of the tool",
    "string_pattern_mismatch": "must be 1 to 100 letters, digits, _, . or -, the first a letter, digit or _",
    "union_tag_not_found": 'must have a "type": "float", "int" or "choice"',
}
"""Words for kinds of faults whose own words do not say what to do."""

Answer = dict[str, Any]
Within = Annotated[
    float | Annotated[str, Field(max_length=100)],
    AfterValidator(lambda within: checked_tolerance(within) and within),
    Field(description='Stop when no more than this is left to gain: "1%" of the best estimate, or a number'),
]
Margin = Annotated[Within | None, Field(description='Margin of equality, such as "1%"; without it never "equal"')]
Confidence = Annotated[float, AfterValidator(checked_confidence), Field(description="Level of the statement")]
Context = Annotated[Params | None, Field(description="The current context, if the study has contexts")]
Limits = Annotated[dict[Label, list[str | float]] | None, Field(description='Of objectives: {"cost": ["<=", 0.3]}')]
Weights = Annotated[dict[Label, float] | None, Field(description="Of objectives: the best weighted sum is wanted")]
Values = Annotated[
    list[bool | float | None], Field(max_length=10_000, description="In order; true, false; null for a failed run")
]
Bounds = Annotated[
    Annotated[list[float], Field(min_length=2, max_length=2)] | None,
    Field(description="Least and largest possible value, such as [0, 10] for a score: compares means"),
]


Items = Annotated[
    list[str] | None, Field(max_length=10_000, description="Item of each pair, such as the name of a test")
]
FEWEST_FOR_NO_END = 30
"""Pairs from which a comparison without any end in sight is to stop."""


class Tools:
    """The tools, on the studies of a storage.

    Parameters of a tool are the fields of its request, and ``form`` stands for all fields of a form of the service.
    A request names the ``study``.

    Report pages are written to the ``folder``.
    """

    def __init__(self, studies: Studies, folder: Path) -> None:
        self._studies, self._folder = studies, folder

    def create_study(self, form: models.StudyForm) -> Answer:
        """Create a study: the params to vary, and whether small or large values are wanted. Safe to repeat.

        space, by name: {"rate": {"type": "float", "low": 0.0001, "high": 1, "log": true}, "threads": {"type":
        "int", "low": 1, "high": 64}, "mode": {"type": "choice", "choices": ["fast", "safe"]}}. "log" is for ranges
        over orders of magnitude; "when": {"mode": "fast"} is for a parameter that applies only then. goal is
        "minimize" or "maximize". Several objectives have goals in place of goal: {"latency": "minimize", "cost":
        "minimize"}.

        Optional: baseline, the present params, which gain compares with (measured first); constraints {"memory":
        {"max": 512}} on numbers that come with each value; require ["a <= b"]; context, a space of things that
        are given and not chosen, such as the load; fidelity, {"epochs": {"type": "int", "low": 1, "high": 81,
        "log": true}}, if short runs say something about full ones; drift "auto" if the best params change over
        time; safe 0.99 to stay within the constraints while searching; possible [0, 1], or [0, null], the least and
        the largest value there can be.
        """
        is_new = self._studies.create(form).result()
        said = f"Study {form.name!r} {'is created' if is_new else 'exists, as described'}"
        return {"summary": f"{said}: {_counts(self._studies[form.name])}. Next: ask for params to measure."}

    def ask(self, study: LiveStudy, form: models.AskForm) -> Answer:
        """Return params to measure next, as trials with an id. Measure them yourself, then call tell with the id.

        Ask for several (count) only if you measure them at the same time. With a client key, any text of your own, a
        repeated ask returns the trials that still have no result. If a trial has a fidelity, measure at that one.
        """
        asked = answers.asked(study.ask(answers.ask_request(study, form)).result())
        what = "these params at this fidelity" if study.study.levels else "these params"
        ids = ", ".join(str(trial.id) for trial in asked.trials)
        said = f"Measure {what}, then tell the value with id {ids}."
        return {"summary": said, **asked.model_dump(exclude_none=True)}

    def tell(self, study: LiveStudy, form: models.OutcomeForm, within: Within = "1%") -> Answer:
        """Store one result, and say whether to stop. The same result twice counts once.

        Give the id of a trial, or params of your own choice that you have measured, and one of: value, with several
        objectives an object with a number for each; at_least or at_most if the run was cut short and only a bound is
        known; failed true. A study with constraints needs constraints, {"memory": 320}. Optional: noise, the standard
        deviation of the value if you know it; cost, such as seconds, so that cheap trials are preferred; key, any
        text, for another measurement of the same params of your own with the same value; fidelity, if it is not the
        one that was asked for; context with params, if the study has contexts; readings, other numbers to keep with
        the trial, {"energy": {"value": 12, "noise": 0.5}}; block, what it shares with others, {"machine": "n7"}.
        """
        before = {record.number: record for record in study.records()}
        try:
            (told,) = answers.told(study, models.OutcomesForm(trials=[form])).trials
        except BadField as error:
            raise BadField(error.place[2:], error) from None  # without the place in a list of one
        except Contradiction as error:
            raise Contradiction(str(error).removeprefix("trials[0]: ")) from None
        is_known = told.id in before and before[told.id].is_finished
        stored = f"Trial {told.id} has this result already, it counts once" if is_known else f"Stored trial {told.id}"
        context = form.context if form.id is None else before[told.id].context
        verdict = _verdict(study, context, within, LEVEL)
        return {"summary": f"{stored}. {verdict.pop('summary')}", "id": told.id, **verdict}

    def tell_many(self, study: LiveStudy, form: models.OutcomesForm) -> Answer:
        """Store several results, all or none, such as measurements from the past.

        Each has the fields of tell: {"params": {...}, "value": 3.1} or {"id": 7, "failed": true}. Rows that are stored
        already count once.
        """
        ids = [trial.id for trial in answers.told(study, form).trials]
        return {"summary": f"Stored. {_counts(study)}. Next: ask, or remaining to see whether to stop.", "ids": ids}

    def correct(self, study: LiveStudy, id: int, readings: models.ReadingsForm, because: models.Reason = "") -> Answer:
        """Replace stored numbers of a trial that turned out to be wrong: {"value": 3.2}. Numbers not named stay.

        Numbers of constraints and other readings have their own names, with several objectives these too. What was
        stored before stays on record, with the reason in because, and no longer counts.
        """
        answers.corrected(study, id, models.CorrectionForm(readings=readings, because=because))
        return {"summary": f"Trial {id} is corrected. {_counts(study)}.", "id": id}

    def withdraw(self, study: LiveStudy, id: int, because: models.Reason = "") -> Answer:
        """Take a trial out of all conclusions whose measurement was invalid. It stays on record.

        A bad result is not invalid: leave it in.
        """
        answers.withdrawn(study, id, because)
        return {"summary": f"Trial {id} does not count any more. {_counts(study)}.", "id": id}

    def progress(self, study: LiveStudy, id: int, form: models.ReportForm) -> Answer:
        """Give the value that a running trial has reached, at a fidelity such as {"epochs": 3}: may end the run early.

        Optional, for studies with a fidelity: call it now and then during a run.
        """
        answer = answers.reported(study, id, form)
        said = "Stop this run, and tell its value so far." if answer.stop else "Continue this run."
        return {"summary": said, **answer.model_dump()}

    def best(self, study: LiveStudy, context: Context = None, limits: Limits = None, weights: Weights = None) -> Answer:
        """Return the recommended params with the interval of their true value, not those of the luckiest measurement.

        With several objectives: the front, the best compromises; limits or weights pick one of them. With a fidelity:
        values at the highest one.
        """
        if study.study.goals and limits is None and weights is None:
            front = answers.front(study, context)
            said = f"{len(front.front)} compromises. Choose one, or give limits or weights to pick one."
            return {"summary": said, **front.model_dump()}
        best = answers.best(study, context, limits, weights)
        said = f"{_doubt(study, context, limits, weights)}Use {_in_words(best)}."
        return {"summary": said, **best.model_dump(by_alias=True, exclude={"gap"})}

    def predict(self, study: LiveStudy, form: models.PredictForm) -> Answer:
        """Return the estimate for params of your own with an interval, without measuring them."""
        estimate = answers.predicted(study, form)
        return {"summary": f"Expected of {_in_words(estimate)}.", **estimate.model_dump()}

    def gain(self, study: LiveStudy, context: Context = None, limits: Limits = None, weights: Weights = None) -> Answer:
        """Return how much better the recommended params are than the baseline, with an interval: above 0 is better."""
        gain = answers.gain(study, context, limits, weights)
        return {"summary": f"The recommended params: {gain.text}.", **gain.model_dump(exclude={"text"})}

    def remaining(
        self, study: LiveStudy, context: Context = None, within: Within = "1%", confidence: Confidence = LEVEL
    ) -> Answer:
        """Say what is left to gain by going on, and whether to stop: "Stop: ..." or "Continue: ..."."""
        return _verdict(study, context, within, confidence)

    def versus(
        self,
        a: Values,
        b: Values,
        goal: Goal = "minimize",
        within: Margin = None,
        confidence: Confidence = LEVEL,
        bounds: Bounds = None,
        items: Items = None,
    ) -> Answer:
        """Say whether B is really better than A, from measurements in pairs: a[i] next to b[i]. Nothing is stored.

        Measure A and B in turn, in random order within each pair, and call this after every few pairs with all
        values so far: the interval holds at every stopping time, also with outliers, so stop as soon as it is
        decided. For runs that pass or fail give true and false, with goal "maximize"; for scores and rates give bounds.
        quantity says what estimate is: the median change from A to B, B / A - 1 if relative is true, else B - A; or, of
        true and false and with bounds, the difference of the means, where within 0.05 is 5 points. A failed run loses
        its pair, or counts as the worse bound. Where the pairs are about items, such as tests or prompts, give the item
        of each pair: repeats of an item are no new evidence. This server runs no commands: measure with your own tools.
        """
        comparison = _compared(a, b, goal, within, confidence, bounds, items)
        first = "AB"[comparison.ask()]
        said = f" Continue: measure another pair, {first} first, and call again with all values."
        more = comparison.pairs_to_come
        if comparison.decided:
            said = ""
        elif comparison.pairs >= FEWEST_FOR_NO_END and (more is None or more > 10 * comparison.pairs):
            said = f" Stop: after {comparison.pairs} pairs no decision is in sight. Say that no difference is shown."
        elif comparison.broken:
            said = " Stop: what has never succeeded cannot be compared. Fix it first."
        else:
            said += f" A decision is likely to take about {more} more pairs." if more else ""
            said += " If they are equal, this does not end: stop, or give within." if within is None else ""
        change = {name: finite(getattr(comparison, name)) for name in ("estimate", "lower", "upper")}
        rest = {
            "level": comparison.confidence,
            "pairs": comparison.pairs,
            "relative": comparison.is_relative,
            "next": first,
        }
        about: Answer = {"quantity": comparison.quantity, "evalue": finite(comparison.evalue()), "more_pairs": more}
        about |= {"items": comparison.evidence.items or None, "warnings": comparison.warnings}
        return {"summary": f"{comparison}.{said}", "verdict": comparison.verdict, **change, **about, **rest}

    def ledger(
        self,
        name: models.Name,
        action: Literal["new", "keep", "discard", "show"] = "show",
        a: Values = [],  # noqa: B006
        b: Values = [],  # noqa: B006
        goal: Goal = "minimize",
        within: Margin = None,
        bounds: Bounds = None,
        force: bool = False,
    ) -> Answer:
        """Judge a chain of changes, so that of all kept ones at most 5% are false in expectation, however long it is.

        new: say whether to keep the change from A, the present baseline, to B, by all its pairs as in versus. Measure
        first, until versus is decided at the confidence that show gives: each change is judged once. Then keep or
        discard it, before the next one. Judge every change that was measured, also bad ones; a retest is a new change
        with new measurements. force keeps one against the verdict, outside of the guarantee.
        """
        path = self._folder / f"noregret-{name}.ledger.json"
        if action == "new":
            if not a:
                raise BadField(("a",), ValueError("must have the measurements of A, in pairs with those of B"))
            comparison = _compared(a, b, goal, within, chain.confidence(path), bounds)
            evidence = receipt(comparison, ["A", "B"], "measured by an agent")
            file = self._folder / f"noregret-{name}-{evidence['digest'][-8:]}.receipt.json"
            write(evidence, file)
            try:
                entry = chain.judged(path, evidence, str(file))
            except StudyError:
                file.unlink()
                raise
            return {"summary": f"{chain.verdict(entry)}. Next: {chain.advised(entry)} it. {comparison}.", **entry}
        if action == "show":
            ledger = chain.load(path)
            said = " ".join(map(str.strip, chain.shown(ledger)))
            return {"summary": said, "confidence": chain.confidence(path), **ledger}
        entry = chain.closed(path, action == "keep", force)
        said = f"Entry {entry['number']} is {chain.state(entry)}. {chain.following(chain.load(path))}"
        return {"summary": said, **entry}

    def report(self, study: LiveStudy) -> Answer:
        """Write the report of a study as an HTML page for people; return its path, and which parameters matter."""
        findings, path = study.findings(), self._folder / f"noregret-{study.study.name}.html"
        write_atomically(path, lambda file: file.write(page(findings).encode()))
        shares = {name: share._asdict() for name, share in findings.importance.items()}
        return {"summary": f"The report is in {path}. {_counts(study)}.", "path": str(path), "importance": shares}

    def list_studies(self) -> Answer:
        """List the studies of the storage with the number of their trials."""
        listed = answers.listed(self._studies, "", MANY)
        return {"summary": f"Number of studies: {len(listed.studies)}.", **listed.model_dump(exclude_none=True)}

    def describe(self, study: LiveStudy, context: Context = None) -> Answer:
        """Return how a study was made, its recommended params, and the trials that wait for a result."""
        state = answers.described(study, context)
        waiting = [trial for trial in answers.trials(study).trials if trial.state == "running"]
        shown = {"id", "params", "context", "fidelity"}
        pending = [trial.model_dump(include=shown, exclude_none=True) for trial in waiting[:MOST_PENDING]]
        said = f"{_counts(study)}. Next: {'tell the pending trials, or ' * bool(pending)}ask."
        said += f" The best is {_in_words(state.best)}." if state.best else ""
        return {"summary": said, **state.model_dump(by_alias=True, exclude_none=True), "pending": pending}


def _compared(
    a: Values, b: Values, goal: Goal, within: float | str | None, confidence: float, bounds: Bounds, items: Items = None
) -> Comparison:
    """The comparison of measurements in pairs; BadField if they cannot be compared."""
    if len(a) != len(b):
        said = f"must have as many values as a, to compare them in pairs, got {len(b)} and {len(a)}"
        raise BadField(("b",), ValueError(f"{said}: measure the missing ones, or put null for runs that failed"))
    if items is not None and len(items) != len(a):
        raise BadField(("items",), ValueError(f"must have an item for each of {len(a)} pairs, got {len(items)}"))
    try:
        comparison = Comparison(
            goal=goal, within=within, confidence=confidence, bounds=(bounds[0], bounds[1]) if bounds else None
        )
    except ValueError as error:
        raise BadField(("bounds",), error) from None
    for place, pair in enumerate(zip(a, b, strict=True)):
        for option, value in enumerate(pair):
            try:
                comparison.tell(option, value, None if items is None else items[place])
            except ValueError as error:
                raise BadField(("ab"[option], place), error) from None
    return comparison


def _doubt(study: LiveStudy, context: Any, limits: Any, weights: Any) -> str:
    """Sentence about a gain over the baseline that is not shown, or that was measured in pairs; else empty."""
    if study.study.baseline is None:
        return ""
    try:
        said = answers.gain(study, context, limits, weights).text
    except Contradiction:
        return ""
    is_said = "shown to be better" in said or said.startswith("measured in")
    return f"{words.sentence(said)} " if is_said else ""


def _verdict(study: LiveStudy, context: Any, within: float | str, confidence: float) -> Answer:
    """Advice to stop or to continue, the best params, and what is left to gain."""
    if study.study.goals:
        try:
            volume = answers.front(study, context).hypervolume.model_dump()
        except Contradiction as error:
            return {"summary": f"Continue: {error}.", "stop": False}
        said = "With several objectives no rule says when to stop: stop when your budget is spent."
        return {"summary": said, "stop": None, "hypervolume": volume}
    stop = answers.done(study, within, confidence, context=context).done
    here, known = answers.context_of(study, context), study.known()
    if not known.has_value:
        said = f"Continue: there is no value yet. {_counts(study)}."
        return {"summary": said, "stop": False, "remaining": None, "best": None}
    best = known.optimizer.best(here)
    form = answers.estimated(best)
    left = best.remaining_in_words() if best.has_gap else "too few values to say what is left to gain"
    if best.is_likeliest or (best.feasible < confidence and study.study.constraints):
        left = f"the best params meet all constraints with probability {best.feasible:.2g} only"
    said = f"{'Stop' if stop else 'Continue'}: {left}; the aim is {shown(within)} ({100 * confidence:g}%)."
    said += f" Use {_in_words(form)}." if stop else f" {_counts(study)}."
    if best.has_gap and math.isinf(best.remaining):
        said += " If it stays so, params matter little beside the noise: stop when your budget is spent."
    return {"summary": said, "stop": stop, "remaining": finite(best.remaining), "best": form.model_dump()}


def _in_words(found: models.EstimateForm | models.FrontEstimateForm) -> str:
    """Params with their estimate and its interval; with several objectives, the fields have the intervals."""
    if isinstance(found, models.FrontEstimateForm):
        said = words.values(found.values)
    elif found.lower is None or found.upper is None:
        said = f"{words.number(found.estimate)} (too few values for an interval)"
    else:
        interval = words.with_interval(found.estimate, found.lower, found.upper)
        said = f"{interval}, at {words.percent(found.level)}"
    unsure = f"; meets all constraints with probability {found.feasible:.2g}" if found.feasible < 1 else ""
    return f"{shown(found.params)}: {said}{unsure}"


def _counts(study: LiveStudy) -> str:
    """Number of trials by state, as ``12 values, 1 failed, 2 pending``."""
    counts = answers.states(answers.counted(study))
    rows = (counts.failed, "failed"), (counts.running, "pending")
    return ", ".join([f"{counts.done} value{'s' * (counts.done != 1)}", *(f"{n} {state}" for n, state in rows if n)])


WRITING = ("create_study", "ask", "tell", "tell_many", "correct", "withdraw", "progress", "ledger", "report")
TOOLS = {
    name: ToolAnnotations(
        read_only_hint=name not in WRITING,
        destructive_hint=False,
        idempotent_hint=name not in ("ask", "ledger"),
        open_world_hint=False,
    )
    for name in vars(Tools)
    if not name.startswith("_")
}
"""Names of the tools, with what clients may assume: which ones change nothing, and none destroys anything."""


class OfStudy(Form):
    """A request about a study."""

    study: Annotated[models.Name, Field(description="Name of the study")]


def _request(method: Any) -> type[Form]:
    """Form of a tool's request, from the parameters of its method."""
    hints = get_type_hints(method, include_extras=True)
    bases = tuple({**hints, "study": OfStudy}[key] for key in ("form", "study") if key in hints)
    fields: Any = {
        name: (hints[name], ... if parameter.default is parameter.empty else parameter.default)
        for name, parameter in inspect.signature(method).parameters.items()
        if name not in ("self", "form", "study")
    }
    return create_model(method.__name__, __base__=bases or Form, **fields)


def _plain(schema: Any) -> Any:
    """A schema without what takes an agent's attention and says little: titles, limits of length, nulls for absence."""
    if isinstance(schema, list):
        is_number = {"type": "number"} in schema  # then whole numbers need not be named
        return [_plain(part) for part in schema if not (is_number and part == {"type": "integer"})]
    if not isinstance(schema, Mapping):
        return schema
    plain = {name: _plain(part) for name, part in schema.items() if name not in NEEDLESS}
    if "default" in plain and plain["default"] is None:  # it may be left out: null need not be named
        kinds = [kind for kind in plain.pop("anyOf") if kind != {"type": "null"}]
        plain |= kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
        del plain["default"]
    return plain


def server(studies: Studies, folder: Path) -> Server[Any]:
    """The server of the tools on some studies, for any transport; ``folder`` is where pages are written."""
    tools = Tools(studies, folder)
    methods = {name: getattr(tools, name) for name in TOOLS}
    forms = {name: _request(method) for name, method in methods.items()}

    async def list_tools(context: Any, params: Any) -> ListToolsResult:
        tools = []
        for name, hints in TOOLS.items():
            text, schema = inspect.getdoc(methods[name]), _plain(forms[name].model_json_schema())
            schema.pop("description", None)
            tools.append(Tool(name=name, description=text, input_schema=schema, annotations=hints))
        return ListToolsResult(tools=tools)

    def call(name: str, arguments: Mapping[str, Any]) -> Answer:
        if name not in TOOLS:
            raise Contradiction(f"there is no tool {name!r}: the tools are {', '.join(TOOLS)}")
        form = forms[name].model_validate({key: _unpacked(value) for key, value in arguments.items()})
        given = {
            key: form if key == "form" else getattr(form, key) for key in inspect.signature(methods[name]).parameters
        }
        if isinstance(form, OfStudy):
            given["study"] = studies.opened(form.study) or studies[form.study]
        answer: Answer = methods[name](**given)
        return answer

    async def call_tool(context: Any, params: Any) -> CallToolResult:
        try:
            answer = await anyio.to_thread.run_sync(call, params.name, params.arguments or {})
        except Exception as error:
            said = printable(_explained(error), keep="\n")
            return CallToolResult(content=[TextContent(type="text", text=said)], is_error=True)
        answer["summary"] = printable(answer["summary"])
        return CallToolResult(content=[TextContent(type="text", text=_as_text(answer))], structured_content=answer)

    handlers: Any = {"on_list_tools": list_tools, "on_call_tool": call_tool}
    return Server("noregret", version=version(), instructions=INSTRUCTIONS, **handlers)


def _as_text(answer: Answer) -> str:
    r"""An answer as JSON, with every invisible character of a name or a choice in its JSON form.

    >>> print(_as_text({"summary": "a\x1b[31m", "größe": "\u202egnp\x9b"}))
    {"summary": "a\u001b[31m", "größe": "\u202egnp\u009b"}
    """
    text = json.dumps(answer, ensure_ascii=False)
    return "".join(sign if printable(sign) == sign else json.dumps(sign)[1:-1] for sign in text)


def _unpacked(value: Any) -> Any:
    """An argument; some models send objects and lists as JSON in a string."""
    try:
        return json.loads(value) if isinstance(value, str) and value[:1] in ("{", "[") else value
    except (ValueError, RecursionError):
        return value


def _explained(error: Exception) -> str:
    """Text of an error: the fault, and a remedy."""
    if isinstance(error, ValidationError):
        said = []
        for (place, must, kind), fault in zip(answers.faults(error.errors()), error.errors(), strict=True):
            given = fault["input"]
            is_shown = kind != "value_error" and isinstance(given, str | int | float) and len(str(given)) < 50
            hint = must if must.startswith("unknown key") else HINTS.get(kind, must)
            said.append(f"{_dotted(place)}: {hint}{f', got {given!r}' * is_shown}")
        return f"Nothing was changed. {'; '.join(said)}."
    if isinstance(error, BadField):
        return f"Nothing was changed. {_dotted(error.place)}: {error}."
    if isinstance(error, NoStudy):
        return f"There is no study {error.name!r}: list_studies shows what there is, create_study makes one."
    if isinstance(error, AnotherStudy):
        return f"{error}. Choose another name, or describe it and continue with it."
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename} cannot be written: {error.strerror}."
    if isinstance(error, Contradiction | StudyError | Unknown):
        return str(error)
    LOG.error("a tool failed", exc_info=error)
    return "This is a fault of the server, whose standard error says more. Results that were acknowledged are stored."


def _dotted(place: Iterable[str | int]) -> str:
    """A field, such as ``space.x.low``; the arguments if it is all of them."""
    return ".".join(map(str, place)) or "arguments"


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
            mcp_server = server(studies, folder)
            await mcp_server.run(reading, writing, mcp_server.create_initialization_options())

    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a thread that waits for input would not notice
    try:
        with one_thread():  # studies share the machine; products of their size are no faster on more
            anyio.run(run)
    finally:
        studies.close()
