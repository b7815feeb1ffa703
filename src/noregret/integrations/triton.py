"""Triton: `autotune` in the place of ``triton.autotune`` (extra ``triton``), with a third of the compilations of a key.

    from noregret.integrations.triton import autotune

    @autotune(configs=[triton.Config({"BLOCK": 128}, num_warps=4), ...], key=["size"])
    @triton.jit
    def kernel(x, size, BLOCK: tl.constexpr): ...

Configurations are compiled as an `Optimizer` asks for them, and timed by launches that alternate with those of the best
one so far. The fastest ones and the known one race in a `Comparison`; the winner is kept in a file with the evidence.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from noregret.comparison import Comparison
from noregret.comparison.receipts import faults, receipt, write
from noregret.extra import extra
from noregret.gp.posterior import Floats
from noregret.optimizer import Optimizer, OptimizerConfig

LOG = logging.getLogger("noregret")

SHARE, FURTHER = 1 / 3, 1 / 12
"""Part of the configurations that is measured for a key, of few three; part that is compiled for each further key."""
DESIGN = 4
"""Configurations in the design of the search, and one more for each setting."""
MARGIN = 0.005
"""Relative difference up to which the known configuration is kept."""
FINALISTS = 5
"""Most configurations that race the known one."""
NEAR = 1.05
"""Time of a finalist at most, in units of the least one."""
BLOCKS, RACE_SECONDS = 60, 2.0
"""Limits of a race."""
OVERHEAD = 0.08
"""Milliseconds of a launch besides the kernel: the L2 cache is cleared before it."""
AHEAD = 8
"""Clearings that the GPU is given first, so that it never waits for the launches."""
MOST_ROUNDS, LEAST = 100, 1e-6
"""Limits of the number of launches in a row, and of a time."""


def autotune(
    configs: Sequence[Any],
    key: Sequence[str],
    prune_configs_by: Mapping[str, Any] | None = None,
    reset_to_zero: Sequence[str] | None = None,
    restore_value: Sequence[str] | None = None,
    pre_hook: Callable[..., Any] | None = None,
    post_hook: Callable[..., Any] | None = None,
    warmup: float | None = None,
    rep: float | None = None,
    use_cuda_graph: bool = False,
    do_bench: Callable[..., Any] | None = None,
    cache_results: bool = True,
    *,
    folder: str | os.PathLike[str] | None = None,
) -> Callable[[Any], TunedKernel]:
    """Decorator that chooses the configuration of a Triton kernel, with the arguments of ``triton.autotune``.

    Parameters
    ----------
    configs : list of triton.Config
        The first one is the known one: another one must be more than 0.5% faster to replace it.
    key : list of str
        Arguments whose values a choice is made for; so are the types of all arguments.
    prune_configs_by : dict, optional
        ``early_config_prune``, ``perf_model`` and ``top_k``, as in Triton.
    reset_to_zero, restore_value : list of str, optional
        Tensors that are set to zero before each launch of a tuning, or restored after it. This is not timed.
    pre_hook, post_hook : callable, optional
        Called in their place as ``pre_hook(arguments, reset_only=False)`` and ``post_hook(arguments, exception=None)``.
    warmup, rep : float, optional
        Milliseconds of launches of a configuration that are not timed, and that are; 10 and 20 by default.
    use_cuda_graph : bool
        Time replays of CUDA graphs, for kernels that are shorter than their launch.
    do_bench : callable, optional
        ``do_bench(call, quantiles=(0.5, 0.2, 0.8))`` returns the times of a call, the median first.
    cache_results : bool
        Keep the winners in files. Unlike in Triton this is the default. No file is written if a configuration has a
        ``pre_hook``.
    folder : path, optional
        Folder of these files; by default ``noregret/triton`` in the user's cache folder. Each file is a receipt:
        ``noregret verify FILE`` checks it.
    """
    extra("triton", "triton")
    configs = list(configs)
    if not configs:
        raise ValueError("configs must have at least one triton.Config, got none: list those to choose from")
    bench = do_bench
    if use_cuda_graph and bench is None:
        graphs = extra("triton.testing", "triton").do_bench_cudagraph

        def bench(call: Any, quantiles: Any) -> Any:
            return graphs(call, rep=20 if rep is None else rep, quantiles=quantiles)

    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "noregret", "triton")
    place = Path(folder) if folder is not None else home
    is_kept = cache_results and not any(config.pre_hook for config in configs)

    def decorate(fn: Any) -> TunedKernel:
        hooks = _Hooks(tuple(reset_to_zero or ()), tuple(restore_value or ()), pre_hook, post_hook)
        timer = _Timer(bench, 10.0 if warmup is None else warmup, 20.0 if rep is None else rep)
        return TunedKernel(fn, configs, list(key), prune_configs_by or {}, hooks, timer, place if is_kept else None)

    return decorate


class TunedKernel:
    """A kernel that chooses its configuration for each key; `autotune` makes it.

    Attributes
    ----------
    cache : dict
        The chosen configuration of each key.
    best_config : triton.Config
        That of the last launch.
    compiled : int
        Number of kernels that were compiled, or did not compile, in tunings so far.
    comparison : Comparison
        The last race; its first option is the known configuration. None before the first one.
    """

    best_config: Any = None
    comparison: Comparison | None = None

    def __init__(
        self, fn: Any, configs: list[Any], key: list[str], prune: Mapping[str, Any], hooks: Any, timer: Any, folder: Any
    ) -> None:
        self.fn, self.arg_names, self.configs, self.keys = fn, fn.arg_names, configs, key
        self.base_fn = fn
        while hasattr(self.base_fn, "fn"):
            self.base_fn = self.base_fn.fn
        self.__name__ = getattr(self.base_fn, "__name__", "kernel")
        self.cache: dict[tuple[Any, ...], Any] = {}
        self.compiled = 0
        self._prune, self._hooks, self._timer, self._folder = dict(prune), hooks, timer, folder
        self._kernels: dict[int, Any] = {}
        self._tried: dict[str, bool] = {}  # False if it does not fit on the device

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        return lambda *args, **kwargs: self.run(*args, grid=grid, warmup=False, **kwargs)

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Launch the kernel with the configuration of these arguments, which is chosen first if there is none."""
        config = self.best_config = self._chosen(args, kwargs)
        if config.pre_hook is not None:
            config.pre_hook({**self._named(args), **kwargs, **config.all_kwargs()})
        return self.fn.run(*args, **kwargs, **config.all_kwargs())

    def _named(self, args: tuple[Any, ...]) -> dict[str, Any]:
        return dict(zip(self.arg_names, args, strict=False))

    def _chosen(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if len(self.configs) == 1:
            return self.configs[0]
        given = {name: value for name, value in (self._named(args) | kwargs).items() if name in self.arg_names}
        types = [str(value.dtype) for value in given.values() if hasattr(value, "dtype")]
        key = tuple([given[name] for name in self.keys if name in given] + types)
        if key not in self.cache:
            self.cache[key] = self._tuned(key, args, kwargs)
        return self.cache[key]

    def _tuned(self, key: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        configs = self._pruned(self._named(args), kwargs)
        if len(configs) == 1:
            return configs[0]
        for config in configs:
            if twice := sorted(kwargs.keys() & config.kwargs.keys()):
                raise ValueError(f"{', '.join(twice)} must be chosen by autotune or be given, got both: leave one out")
        device, version = _device()
        path, earlier = self._files(key, device, [version, *map(str, configs)])
        if path is not None and (kept := _winner_in(path, configs)) is not None:
            return kept
        known = next((config for each in earlier if (config := _winner_in(each, configs)) is not None), configs[0])
        calls = [_Call(self.fn, self._hooks, config, self._named(args), args, kwargs) for config in configs]
        seed = int(_digest([str(key), self.__name__]), 16)
        options, won = self._choice(calls, configs.index(known), seed)
        if path is not None and len(options) > 1 and self.comparison is not None:
            named = [str(configs[option]) for option in options]
            _keep(receipt(self.comparison, named, f"ms of {self.__name__}{key} on {device}", seed), path)
        self._hooks.before(calls[won].full, reset_only=True)
        return configs[won]

    def _choice(self, calls: list[_Call], known: int, seed: int) -> tuple[list[int], int]:
        """Numbers of the configurations that raced, the known one first if it runs, and of the winner."""
        times = self._searched(calls, known, seed)
        fast = sorted(times, key=times.__getitem__)
        first = known if known in times else fast[0]
        others = [option for option in fast if option != first]
        rivals = [option for option in others if times[option] <= NEAR * times[fast[0]]][:FINALISTS] or others[:1]
        if not rivals:
            return [first], first
        options = [first, *rivals]
        self.comparison = self._raced([calls[option] for option in options], seed)
        return options, options[_winner(self.comparison)]

    def _pruned(self, named: dict[str, Any], kwargs: dict[str, Any]) -> list[Any]:
        """The configurations that ``prune_configs_by`` leaves."""
        configs, model, most = self.configs, self._prune.get("perf_model"), self._prune.get("top_k", 1.0)
        if early := self._prune.get("early_config_prune"):
            configs = list(early(configs, named, **kwargs))
            if not configs:
                raise ValueError("early_config_prune must return at least one configuration, got none")
        if not model:
            return configs
        if isinstance(most, float) and most <= 1:
            most = max(1, int(len(configs) * most))
        if not isinstance(most, int):
            raise TypeError(f"top_k must be a whole number, or a part of at most 1.0, got {most!r}")
        return sorted(configs, key=lambda config: model(**named, **kwargs, **config.all_kwargs()))[:most]

    def _searched(self, calls: list[_Call], known: int, seed: int) -> dict[int, float]:
        """Times by number of configuration, of those that the `Optimizer` has asked for and that run.

        Those that were compiled for another key come first: they cost a few launches, unless they must be compiled
        again since Triton specialises them.
        """
        rows, times = _rows([call.config for call in calls]), dict[int, float]()
        config = OptimizerConfig(initial=DESIGN)
        optimizer = Optimizer(rows, goal="minimize", baseline=rows[known], rng=seed, calibration=config)
        left = {tuple(row.values()): number for number, row in reversed(list(enumerate(rows)))}
        count = len(left)
        for number, call in enumerate(calls):
            if left.get(tuple(rows[number].values())) == number and str(call.config) in self._tried:
                compiled = self.compiled
                self._measure(number, calls, rows, times, optimizer)
                del left[tuple(rows[number].values())]
                if self.compiled > compiled:
                    break
        end = count - max(int(SHARE * count), 3, count - len(left) + int(FURTHER * count))
        while len(left) > max(end, 0):
            setting = tuple(optimizer.ask().params.values())
            if setting not in left:  # a repeat is the race's matter
                settings = list(left)
                params = [rows[left[each]] for each in settings]
                expected = [each.estimate for each in optimizer.predict_many(params)] if len(times) > 1 else [0.0]
                setting = settings[int(np.argmin(expected))]
            self._measure(left.pop(setting), calls, rows, times, optimizer)
        if not times:
            raise RuntimeError(
                f"none of the {count - len(left)} configurations that were tried compiles: check the kernel"
            )
        return times

    def _measure(
        self, number: int, calls: list[_Call], rows: list[Any], times: dict[int, float], optimizer: Optimizer
    ) -> None:
        """Time a configuration against the best one so far, and tell it to the `Optimizer`."""
        name = str(calls[number].config)
        if self._tried.get(name, True) and self._compiles(calls[number]):
            best = min(times, key=times.__getitem__, default=number)
            pair = [calls[number], *([calls[best]] if times else [])]
            self._timer.times(pair, self._timer.warmup)
            seconds = np.median(self._timer.times(pair, self._timer.rep), axis=0)
            times[number] = max(float(seconds[0] / seconds[-1] * times[best] if times else seconds[0]), LEAST)
            optimizer.tell(rows[number], math.log(times[number]))
            self._tried[name] = True
        else:
            optimizer.fail(rows[number])
            self._tried[name] = False

    def _compiles(self, call: _Call) -> bool:
        """Launch a configuration once; False if it does not fit on the device."""
        try:
            kernel = call()
        except _failures():
            self.compiled += 1
            return False
        self.compiled += kernel is None or id(kernel) not in self._kernels
        self._kernels[id(kernel)] = kernel
        return True

    def _raced(self, calls: list[_Call], seed: int) -> Comparison:
        """Race of these, in blocks of interleaved launches; the first one is the known one."""
        comparison, end = Comparison(len(calls), within=MARGIN, rng=seed), monotonic() + RACE_SECONDS
        while not comparison.decided and comparison.pairs < BLOCKS and monotonic() < end:
            comparison.ask()
            block = comparison.awaited
            seconds = np.median(self._timer.times([calls[option] for option in block], self._timer.rep / 4), axis=0)
            for option, value in zip(block, seconds.tolist(), strict=True):
                comparison.tell(option, value)
        return comparison

    def _files(self, key: tuple[Any, ...], device: str, about: list[str]) -> tuple[Path | None, list[Path]]:
        """File of this key, and those of the same key under other versions and configurations, the newest first."""
        if self._folder is None:
            return None, []
        inner = self.fn
        while not hasattr(inner, "cache_key") and hasattr(inner, "fn"):
            inner = inner.fn
        start = f"{self.__name__}-{_digest([str(key), device])}"
        path = self._folder / f"{start}-{_digest([str(getattr(inner, 'cache_key', '')), *about])}.json"
        others = [each for each in self._folder.glob(f"{start}-*.json") if each != path]
        return path, sorted(others, key=lambda each: each.stat().st_mtime, reverse=True)


@dataclass(frozen=True)
class _Hooks:
    """Calls before and after a launch."""

    zeroed: tuple[str, ...]
    restored: tuple[str, ...]
    pre: Callable[..., Any] | None
    post: Callable[..., Any] | None
    copies: dict[str, Any] = field(default_factory=dict)

    def before(self, full: dict[str, Any], reset_only: bool = False) -> None:
        if self.pre is not None:
            self.pre(full, reset_only=True) if reset_only else self.pre(full)
            return
        for name in self.zeroed:
            if full[name] is not None:
                full[name].zero_()
        if not reset_only:
            self.copies.update({name: full[name].clone() for name in self.restored if full[name] is not None})

    def after(self, full: dict[str, Any], error: Exception | None = None) -> None:
        if self.post is not None:
            self.post(full, exception=error)
            return
        for name in list(self.copies):
            full[name].copy_(self.copies.pop(name))


class _Call:
    """A launch of a kernel with a configuration."""

    def __init__(self, fn: Any, hooks: _Hooks, config: Any, named: Any, args: Any, kwargs: Any) -> None:
        self.fn, self.hooks, self.config, self.args = fn, hooks, config, args
        self.kwargs = {**kwargs, **config.all_kwargs()}
        self.full = {**named, **self.kwargs}

    def before(self) -> None:
        if self.config.pre_hook is not None:
            self.config.pre_hook(self.full)
        self.hooks.before(self.full)

    def launch(self) -> Any:
        try:
            return self.fn.run(*self.args, **self.kwargs)
        except Exception as error:
            self.hooks.after(self.full, error)
            raise

    def __call__(self) -> Any:
        self.before()
        kernel = self.launch()
        self.hooks.after(self.full)
        return kernel


@dataclass(frozen=True)
class _Timer:
    """Times of launches in milliseconds."""

    bench: Callable[..., Any] | None
    warmup: float
    rep: float

    def times(self, calls: Sequence[_Call], milliseconds: float) -> Floats:
        """Times of interleaved launches, (rounds, calls), in about this time; the first round is not part of them.

        With a ``do_bench`` one call of it each.
        """
        if self.bench is not None:
            quantiles = [self.bench(call, quantiles=(0.5, 0.2, 0.8)) for call in calls]
            return np.array([[float(np.ravel(each)[0]) for each in quantiles]])
        once = float(self._rounds(calls, 1).sum()) + OVERHEAD * len(calls)
        return self._rounds(calls, min(max(int(milliseconds / once), 1), MOST_ROUNDS))

    def _rounds(self, calls: Sequence[_Call], rounds: int) -> Floats:
        driver = extra("triton.runtime", "triton").driver.active
        device, cache = driver.get_device_interface(), driver.get_empty_cache_for_benchmark()
        ends = []
        for _ in range(AHEAD):
            driver.clear_cache(cache)
        for number in range(rounds):
            for call in calls if number % 2 else reversed(calls):
                call.before()
                driver.clear_cache(cache)
                start, end = device.Event(enable_timing=True), device.Event(enable_timing=True)
                start.record()
                call.launch()
                end.record()
                call.hooks.after(call.full)
                ends.append((number, calls.index(call), start, end))
        device.synchronize()
        times = np.empty((rounds, len(calls)))
        for number, option, start, end in ends:
            times[number, option] = start.elapsed_time(end)
        return times


def _device() -> tuple[str, str]:
    """Name of the GPU, and version of Triton with its target; RuntimeError if there is no GPU."""
    triton = extra("triton", "triton")
    try:
        driver = triton.runtime.driver.active
        return str(
            driver.get_device_interface().get_device_name()
        ), f"{triton.__version__} {driver.get_current_target()}"
    except (RuntimeError, AssertionError) as error:
        raise RuntimeError(
            f"autotune needs a GPU that Triton can use, found none ({error}): run this where there is one, or give one "
            "configuration only"
        ) from error


def _failures() -> tuple[type[Exception], ...]:
    """Exceptions of configurations that do not fit on the device."""
    errors = extra("triton.runtime.errors", "triton")
    names = [getattr(errors, name, None) for name in ("OutOfResources", "PTXASError")]
    return (*filter(None, names), extra("triton.compiler.errors", "triton").CompileTimeAssertionFailure)


def _rows(configs: Sequence[Any]) -> list[dict[str, Any]]:
    """Settings by name: powers of two by their exponents, and none that all configurations share.

    >>> from types import SimpleNamespace as Config
    >>> _rows([Config(all_kwargs=lambda n=n: {"BLOCK": 2**n, "num_warps": 4}, pre_hook=None) for n in (7, 9)])
    [{'BLOCK': 7.0}, {'BLOCK': 9.0}]
    """
    settings = [{**config.all_kwargs(), "pre_hook": config.pre_hook} for config in configs]
    columns: dict[str, list[Any]] = {}
    for name in dict.fromkeys(name for each in settings for name in each):
        values: list[Any] = [each.get(name) for each in settings]
        if all(type(value) is int and value > 0 and value & (value - 1) == 0 for value in values):
            values = [math.log2(value) for value in values]
        elif not all(type(value) in (int, float) for value in values):
            values = [str(value) for value in values]
        if len(set(values)) > 1:
            columns[name] = values
    columns = columns or {"configuration": [0] * len(settings)}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _digest(texts: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:12]


def _winner(comparison: Comparison) -> int:
    """The first option, unless another one is faster by more than the margin: then the fastest.

    >>> comparison = Comparison(3, rng=0)
    >>> for _ in range(3):
    ...     for option, value in enumerate((1.0, 0.997, 1.1)):
    ...         comparison.tell(option, value)
    >>> _winner(comparison)
    0
    """
    changes = {option: comparison.change(option).estimate for option in comparison.remaining}
    fastest = min(changes, key=changes.__getitem__)
    return 0 if 0 in changes and changes[fastest] >= -MARGIN else fastest


def _winner_in(path: Path, configs: Sequence[Any]) -> Any:
    """Configuration that a receipt says is the winner; None if there is no such file or it is damaged."""
    try:
        document = json.loads(path.read_bytes())
        if not faults(document):
            name = document["commands"][_winner(Comparison.replay(document["comparison"]))]
            return next((config for config in configs if str(config) == name), None)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, IndexError) as error:
        LOG.warning("%s is not used: %s", path, error)
    return None


def _keep(found: dict[str, Any], path: Path) -> None:
    """Write a receipt; a folder that cannot be written is no error."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(found, path)
    except OSError as error:
        LOG.warning("the winner is not kept in %s: %s", path, error)
