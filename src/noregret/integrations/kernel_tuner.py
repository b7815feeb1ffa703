"""Kernel Tuner: noregret as a search strategy (extra ``kernel-tuner``).

    strategy = NoRegretStrategy()
    results, env = kernel_tuner.tune_kernel(..., strategy=strategy, strategy_options={"max_fevals": 100}, seed=0)
    print(strategy.best())

``env["best_config"]`` is the luckiest measurement, as with all strategies; ``strategy.best()`` recommends by a model of
all of them, with an interval. Every configuration is measured once, see `NoRegretStrategy`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from kernel_tuner.strategies.common import CostFunc
from kernel_tuner.util import StopCriterionReached

from noregret.optimizer import Estimate, Optimizer


class NoRegretStrategy:
    """Search strategy over the configurations that meet the restrictions, for ``tune_kernel(strategy=...)``.

    Configurations that do not compile, run or verify are failed trials. It stops at ``max_fevals``, at ``time_limit``,
    or when all configurations are measured. Suggestions depend on the results and on the ``seed`` of ``tune_kernel``.

    **No repeats.** Kernel Tuner answers a configuration that it has measured from its cache, in simulation mode and on
    a device, and on a device it counts that as an evaluation. So a second measurement tells nothing: where the
    `Optimizer` would repeat one, a neighbour of it that was not measured is measured instead. To average out noise,
    raise ``iterations`` of ``tune_kernel``.

    Attributes
    ----------
    optimizer : Optimizer
        The one of the last run, with all results: for `best`, ``importance()``, ``plot`` and others. Parameters with
        one value only are not part of its space. None before the first run.
    """

    optimizer: Optimizer | None = None

    def tune(self, searchspace: Any, runner: Any, tuning_options: Any) -> list[dict[str, Any]]:
        """Measure configurations until the budget is spent, and return Kernel Tuner's results."""
        if len(tuning_options.objective) != 1:
            raise ValueError(f"NoRegretStrategy needs one objective, got {tuning_options.objective}: name one of them")
        options, is_maximised = tuning_options.strategy_options, tuning_options.objective_higher_is_better[0]
        unknown = set(options) - {"max_fevals", "time_limit", "searchspace_construction_options"}
        if unknown:
            raise ValueError(f"strategy_options of NoRegretStrategy are max_fevals and time_limit, got {unknown}")
        columns = dict(zip(searchspace.param_names, zip(*searchspace.list, strict=True), strict=True))
        self._fixed = {name: values[0] for name, values in columns.items() if len(set(values)) == 1}
        free = [name for name in columns if name not in self._fixed] or [searchspace.param_names[0]]
        table = [dict(zip(free, row, strict=True)) for row in zip(*map(columns.__getitem__, free), strict=True)]
        self.optimizer = Optimizer(table, goal="maximize" if is_maximised else "minimize", rng=tuning_options.seed)

        rng = np.random.default_rng(tuning_options.seed)
        measure = CostFunc(searchspace, tuning_options, runner, snap=False)
        unmeasured, is_over = dict.fromkeys(searchspace.list), False
        while unmeasured and not is_over:
            asked = self._fixed | self.optimizer.ask().params
            config = tuple(asked[name] for name in columns)
            if config not in unmeasured:
                near = [each for each in searchspace.get_neighbors(config, "Hamming") if each in unmeasured]
                config = (near or list(unmeasured))[rng.integers(len(near or unmeasured))]
            del unmeasured[config]
            known = len(measure.results)
            try:
                measure(config, check_restrictions=False)
            except StopCriterionReached:  # before the measurement or after it
                is_over = True
            for result in measure.results[known:]:
                params = {name: value for name, value in zip(columns, config, strict=True) if name in free}
                value = math.nan if "__error__" in result else result[tuning_options.objective[0]]
                self.optimizer.tell(params, float(value)) if np.isfinite(value) else self.optimizer.fail(params)
        return list(measure.results)

    def best(self) -> Estimate:
        """The recommended configuration with its estimate and interval, by all results of the last run."""
        if self.optimizer is None:
            raise ValueError("best() needs a run: pass this strategy to tune_kernel first")
        estimate = self.optimizer.best()
        return replace(estimate, params=self._fixed | estimate.params)
