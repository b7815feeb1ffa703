"""noregret: find the best of many options from noisy, heavy-tailed measurements, and say how sure that is."""

import logging
from typing import TYPE_CHECKING, Any

from noregret import moved

if TYPE_CHECKING:
    from noregret.names import *  # noqa: F403
    from noregret.names import Ranking

    Comparison = Ranking

    __version__: str
else:
    HOMES = {
        "Choice Estimate Float Gain Int Observation Optimizer OptimizerConfig Reading Trial": "noregret.optimizer",
        "TuningResult maximize minimize": "noregret.studies.function",
        "report": "noregret.studies.page.reporting",
        "connect": "noregret.service.client",
        "Ledger versus": "noregret.comparison",
    }
    """Modules of the names that are imported alone: who tunes something does not wait for the laboratory."""

    def __getattr__(name: str) -> Any:
        """Import a public name when it is used, so that ``import noregret`` alone costs nothing."""
        home = next((home for names, home in HOMES.items() if name in names.split()), None)
        if home is not None:
            from importlib import import_module

            found = globals()[name] = getattr(import_module(home), name)
            return found
        if name == "__version__":
            from noregret.extra import version

            return version()
        if name == "__all__":
            return _public().__all__
        if not name.startswith("_") and name in _public().__all__:
            return getattr(_public(), name)
        if name in moved.RENAMED:
            return moved.renamed(name, _public())
        raise AttributeError(f"module 'noregret' has no attribute {name!r}")


moved.install()
logging.getLogger("noregret").addHandler(logging.NullHandler())


def __dir__() -> list[str]:
    return sorted({*globals(), *_public().__all__, "__version__"})


def _public() -> Any:
    from importlib import import_module  # "from noregret import names" would ask __getattr__ for it

    return import_module("noregret.names")
