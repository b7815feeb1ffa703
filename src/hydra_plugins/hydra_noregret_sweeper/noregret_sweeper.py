"""Sweeper of Hydra: ``python app.py -m hydra/sweeper=noregret 'x=interval(0,1)' 'kind=choice(a,b)'``.

Hydra executes this file at every start of every app, so noregret is imported when a sweep begins. It is not among the
imported modules then, where dataclasses look for annotations that are text.
"""

import logging
import shlex
from collections.abc import Mapping
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.core.plugins import Plugins
from hydra.plugins.launcher import Launcher
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf

if TYPE_CHECKING:
    from noregret.optimizer import Choice, Float, Goal, Int, Trial

LOG = logging.getLogger(__name__)
RESULTS = "optimization_results.yaml"
"""File in the folder of the sweep with the recommended setting."""


@dataclass
class NoRegretSweeperConf:
    """Settings of the sweeper, as ``hydra.sweeper.NAME=...``; all but ``params`` are those of `noregret.minimize`."""

    _target_: str = "hydra_plugins.hydra_noregret_sweeper.noregret_sweeper.NoRegretSweeper"
    goal: str = "minimize"
    evaluations: int = 50
    workers: int = 1
    """Jobs of a batch, which the launcher runs at a time if it can."""
    seed: int = 0
    confirm: int = 3
    stop: Any = None
    params: dict[str, str] = field(default_factory=dict)
    """Overrides such as ``x: interval(0, 1)``; those of the command line come after them."""


ConfigStore.instance().store(
    group="hydra/sweeper", name="noregret", node=NoRegretSweeperConf, provider="hydra_noregret_sweeper"
)


class NoRegretSweeper(Sweeper):  # type: ignore[misc]
    """Sweeper whose jobs are the trials of `noregret.minimize` or `maximize`. The app returns the value.

    Its arguments are described in `NoRegretSweeperConf`.
    """

    hydra_context: HydraContext
    config: DictConfig
    launcher: Launcher

    def __init__(
        self,
        goal: "Goal",
        evaluations: int,
        workers: int,
        seed: int,
        confirm: int,
        stop: float | str | None,
        params: DictConfig,
    ) -> None:
        if workers < 1:
            raise ValueError(f"hydra.sweeper.workers must be a whole number from 1, got {workers}")
        self.goal, self.evaluations, self.workers, self.seed = goal, evaluations, workers, seed
        self.confirm, self.stop, self.params = confirm, stop, params

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        self.hydra_context, self.config = hydra_context, config
        self.launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def sweep(self, arguments: list[str]) -> dict[str, Any]:
        """Run the jobs, log the recommended setting, save it in the folder of the sweep, and return it."""
        from noregret.optimizer import checked_goal
        from noregret.studies.function import maximize, minimize

        given = [f"{name!s}={value}" for name, value in self.params.items()] + arguments
        parser = OverridesParser.create(config_loader=self.hydra_context.config_loader)
        overrides = {its.get_key_element(): its for its in parser.parse_overrides(given)}  # the last of a name counts
        space = {name: parameter(override) for name, override in overrides.items() if override.is_sweep_override()}
        fixed = [str(override.input_line) for override in overrides.values() if not override.is_sweep_override()]
        if not space:
            raise ValueError("a sweep needs a range, such as 'x=interval(0,1)' or 'kind=choice(a,b)'")
        folder = Path(self.config.hydra.sweep.dir)
        folder.mkdir(parents=True, exist_ok=True)
        OmegaConf.save(self.config, folder / "multirun.yaml")
        tuned = {"minimize": minimize, "maximize": maximize}[checked_goal(self.goal)](
            self._app,
            space,
            evaluations=self.evaluations,
            workers=Batch(self, fixed),
            stop=self.stop,
            confirm=self.confirm,
            callbacks=[_warn],
            progress=False,
            rng=self.seed,
        )
        failures = sum(trial.state == "failed" for trial in tuned.optimizer.trials)
        best, words = tuned.best, _words(tuned.params)
        result = {
            "name": "noregret",
            "best_params": {override.key_or_group: override.value() for override in parser.parse_overrides(words)},
            "best_value": best.estimate,
            **{name: getattr(best, name) for name in ("lower", "upper", "level")},
            "evaluations": sum(trial.is_finished for trial in tuned.optimizer.trials),
            "failed": failures,
        }
        OmegaConf.save(OmegaConf.create(result), folder / RESULTS)
        LOG.info("%s\nits overrides: %s", tuned, shlex.join(words))
        return result

    def _app(self, **params: Any) -> Any:
        """Value of a setting: a batch of them is measured by the launcher, so this is not called."""
        raise AssertionError


class Batch(Executor):
    """Executor whose calls are jobs of the launcher of a sweep, started together."""

    def __init__(self, sweeper: NoRegretSweeper, fixed: list[str]) -> None:
        self._sweeper, self._fixed, self._max_workers = sweeper, fixed, sweeper.workers
        self._begun: list[tuple[list[str], Future[Any]]] = []
        self._made = 0

    def submit(self, f: Any, /, *args: Any, **params: Any) -> Future[Any]:
        """The value of a job that `launch` starts."""
        future: Future[Any] = Future()
        self._begun.append(([*_words(params), *self._fixed], future))
        return future

    def launch(self) -> None:
        """Start the jobs, and wait for their ends."""
        begun, self._begun = self._begun, []
        jobs = [job for job, _ in begun]
        self._sweeper.validate_batch_is_legal(jobs)
        returned = self._sweeper.launcher.launch(jobs, self._made) if jobs else ()
        self._made += len(jobs)
        for (_, future), job in zip(begun, returned, strict=True):
            try:
                future.set_result(_value(job.return_value))
            except Exception as error:
                future.set_exception(error)


def _value(returned: Any) -> Any:
    """The dict or number that the app has returned."""
    from noregret.optimizer import checked_value

    try:
        return returned if isinstance(returned, Mapping) else checked_value(returned)
    except ValueError:
        raise ValueError(f"the app must return a finite number, got {returned!r}") from None


def _warn(optimizer: Any, trial: "Trial", value: Any) -> None:
    if trial.failure:
        LOG.warning("job %d failed: %s", trial.number, trial.failure)


def parameter(override: Override) -> "Float | Int | Choice":
    """Parameter for a range of Hydra; the options of a choice are words of the command line.

    ``interval(a, b)`` is a `Float`, and an `Int` as ``int(interval(1, 9))``. ``range(1, 9, 2)`` is an `Int` without its
    end, as everywhere in Hydra. The tag ``log`` is for numbers that span orders of magnitude.
    """
    from noregret.optimizer import Choice, Float, Int

    value: Any = override.value()
    try:
        if override.is_interval_sweep():
            start, end = value.start, value.end
            return (Int if type(start) is int else Float)(start, end, log="log" in value.tags)
        if override.is_range_sweep():
            numbers: Any = sorted(value.range())
            if not numbers:
                raise ValueError("the range has no number")
            low, high, step = numbers[0], numbers[-1], None if value.step == 1 else abs(value.step)
            return (Int if type(low) is int else Float)(low, high, log="log" in value.tags, step=step)
        return Choice(list(override.sweep_string_iterator()))
    except ValueError as error:
        raise ValueError(f"{override.input_line}: {error}") from None


def _words(params: Mapping[str, Any]) -> list[str]:
    return [f"{name}={value}" for name, value in params.items()]
