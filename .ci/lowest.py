"""Prints the lowest versions that pyproject.toml allows of all that the tests need, as constraints for pip."""

import re
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]
extras = [
    names for extra, names in project["optional-dependencies"].items() if extra not in ("peers", "benchmarks", "check")
]
for requirement in sorted({name for names in [project["dependencies"], *extras] for name in names}):
    bound = re.fullmatch(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)", requirement)
    if bound:
        print("{}=={}".format(*bound.groups()))
    else:
        assert requirement.startswith("noregret["), f"{requirement} needs a lower bound and nothing else"
