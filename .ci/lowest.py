"""Prints the lowest versions that pyproject.toml allows of all that some extras need, as constraints for pip.

Without an argument they are all extras that the tests need. Where two of them have a bound on one package, the higher
one counts.
"""

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]


def bounds(requirements: Iterable[str]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Packages with their lower bounds, those of extras that are named too."""
    for requirement in requirements:
        bound = re.fullmatch(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)", requirement)
        extras = re.fullmatch(rf"{project['name']}\[([\w,-]+)\]", requirement)
        if bound:
            yield bound[1], tuple(map(int, bound[2].split(".")))
        else:
            assert extras, f"{requirement} needs a lower bound and nothing else"
            for extra in extras[1].split(","):
                yield from bounds(project["optional-dependencies"][extra])


others = {"peers", "benchmarks", "check", "dev", "all"}
extras = sys.argv[1] if len(sys.argv) > 1 else ",".join(project["optional-dependencies"].keys() - others)
lowest: dict[str, tuple[int, ...]] = {}
for package, version in bounds([*project["dependencies"], f"{project['name']}[{extras}]"]):
    lowest[package] = max(version, lowest.get(package, version))
for package, version in sorted(lowest.items()):
    print(f"{package}=={'.'.join(map(str, version))}")
