"""The public names and their parameters, as versions promise them: tests/public_names.txt.

Removing or changing a line breaks code of users, so deprecate it first (docs/versions.md). If lines are
only added, update the file: ``python -m tests.test_public_names``.
"""

import argparse
import inspect
from pathlib import Path

import noregret.names
from noregret import moved
from noregret.cli import _parser
from noregret.comparison import Comparison, bounded_sequence, catoni_sequence, median_sequence
from noregret.integrations import trackers
from noregret.integrations.optuna import NoRegretPruner, NoRegretSampler
from noregret.integrations.sklearn import NoRegretSearchCV
from noregret.optimizer import Plots
from noregret.service.client import Connection

FILE = Path(__file__).parent / "public_names.txt"


def described():
    """One line for each name, method and command, with the names of its parameters."""
    found = {name: getattr(noregret, name) for name in noregret.names.__all__}
    found |= {old: found[new] for old, new in moved.RENAMED.items()}
    found |= {its.__name__: its for its in (NoRegretPruner, NoRegretSampler, NoRegretSearchCV, Plots, Connection)}
    found |= {
        f"comparison.{its.__name__}": its for its in (Comparison, bounded_sequence, catoni_sequence, median_sequence)
    }
    found |= {f"trackers.{its.__name__}": its for its in (trackers.mlflow, trackers.tensorboard, trackers.wandb)}
    del found["OptimizerConfig"]  # its fields are the parts of the Optimizer, which may change with it
    lines = [line for name, thing in found.items() if callable(thing) for line in _lines(name, thing)]
    for module in ("algorithms", "problems"):
        builders = ((name, getattr(found[module], name)) for name in found[module].__all__)
        lines += [_line(f"{module}.{name}", builder) for name, builder in builders if callable(builder)]
    bounds = inspect.getmembers(noregret.bounds, lambda thing: _module(thing) == "noregret.bandits.bounds")
    lines += [line for name, thing in bounds if name[0] != "_" for line in _lines(f"bounds.{name}", thing)]
    return sorted(lines + _commands())


def _commands():
    """The commands with their options."""
    (choices,) = (action.choices for action in _parser()._actions if isinstance(action, argparse._SubParsersAction))
    return [f"noregret {name}({', '.join(_options(parser))})" for name, parser in choices.items()]


def _options(parser):
    named = (action.option_strings[-1] if action.option_strings else action.dest.upper() for action in parser._actions)
    return sorted(set(named) - {"--help"})


def _lines(name, thing):
    methods = _methods(thing) if inspect.isclass(thing) else {}
    return [_line(name, thing), *(_line(f"{name}.{key}", method) for key, method in methods.items())]


def _methods(kind):
    """Public methods and properties that are defined in this package."""
    found = {key: getattr(kind, key) for key in dir(kind) if not key.startswith("_")}
    return {key: thing for key, thing in found.items() if _module(thing).startswith("noregret")}


def _module(thing):
    defined = getattr(thing, "fget", thing) if callable(thing) or isinstance(thing, property) else None
    return getattr(defined, "__module__", None) or ""


def _line(name, thing):
    if isinstance(thing, property):
        return name
    parameters = [
        _parameter(p)
        for p in inspect.signature(thing).parameters.values()
        if p.name not in ("self", "cls") and p.name[0] != "_"
    ]
    return f"{name}({', '.join(parameters)})"


def _parameter(parameter):
    kinds = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**", parameter.KEYWORD_ONLY: "-"}
    optional = "" if parameter.default is parameter.empty else "="
    return kinds.get(parameter.kind, "") + parameter.name + optional


def _broken(promised, present):
    """Public lines that are broken: a name or a parameter is gone, or a new one is required."""
    now = dict(map(_parts, present))
    return [line for line in promised if not _kept(*_parts(line), now)]


def _parts(line):
    name, _, parameters = line.rstrip(")").partition("(")
    return name, set(parameters.split(", ")) - {""}


def _kept(name, parameters, now):
    needed = {
        each
        for each in now.get(name, set()) - parameters
        if not each.endswith("=") and not each.startswith(("*", "--"))
    }
    return name in now and parameters <= now[name] and not needed


def test_public_names_are_those_that_were_promised():
    promised, present = FILE.read_text(encoding="utf-8").splitlines(), described()
    broken = _broken(promised, present)
    assert broken == [], f"{broken}: deprecate first (docs/versions.md)"
    assert present == promised, "names or parameters are new: python -m tests.test_public_names"


def test_what_breaks_a_promise():
    promised = ["ask(count=)", "best()", "noregret tune(--json, STUDY)"]
    assert _broken(promised, ["ask(count=, context=)", "best()", "noregret tune(--json, --new, STUDY)"]) == []
    assert _broken(promised, ["ask(count=, context)", "noregret tune(STUDY)"]) == promised


if __name__ == "__main__":
    FILE.write_text("\n".join(described()) + "\n", encoding="utf-8")
