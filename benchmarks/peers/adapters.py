"""Adapters of other optimisers to ask / tell / best, with their usual settings.

A point of a cube is an array; a row of a table is its number. Optimisers that know no tables search the box of the
rows' features and measure the nearest row; names without features are a categorical parameter (one-hot rows for
BoTorch).
"""

from __future__ import annotations

import logging
import warnings
from typing import Any, Literal, Protocol

import numpy as np
from scipy.spatial import cKDTree


class Space(Protocol):
    """Problem as an optimiser sees it: a cube (``rows`` None) or a table, and whether values are maximised."""

    @property
    def dimension(self) -> int: ...
    @property
    def rows(self) -> Any: ...
    @property
    def named(self) -> bool: ...
    @property
    def goal(self) -> Literal["maximize", "minimize"]: ...


class Peer(Protocol):
    """An optimiser of measured values towards the goal of its space."""

    def ask(self) -> Any: ...
    def tell(self, where: Any, value: float) -> None: ...
    def best(self) -> Any: ...


class NoRegret:
    """noregret.Optimizer with its defaults."""

    def __init__(self, world: Space, seed: int) -> None:
        from noregret import Choice, Float, Optimizer

        self.world = world
        if world.named:
            space: Any = {"row": Choice([str(i) for i in range(len(world.rows))])}
        elif world.rows is not None:
            space = world.rows
        else:
            space = {f"x{i}": Float(0, 1) for i in range(world.dimension)}
        self.opt = Optimizer(space, goal=world.goal, rng=seed)

    def ask(self):
        self.trial = self.opt.ask()
        return self._where(self.trial.params)

    def tell(self, where, value):
        self.opt.tell(self.trial, value)

    def best(self):
        return self._where(self.opt.best().params)

    def _where(self, params):
        if self.world.named:
            return int(params["row"])
        if self.world.rows is not None:
            return int(np.flatnonzero((self.world.rows == params).all(axis=1))[0])
        return np.array(list(params.values()))


class Random:
    """Uniform points; the luckiest measurement is recommended."""

    def __init__(self, world: Space, seed: int) -> None:
        self.world, self.rng, self.seen = world, np.random.default_rng([seed, 99]), []
        self.luckiest = max if world.goal == "maximize" else min

    def ask(self):
        rows = self.world.rows
        return self.rng.random(self.world.dimension) if rows is None else int(self.rng.integers(len(rows)))

    def tell(self, where, value):
        self.seen.append((value, where))

    def best(self):
        return self.luckiest(self.seen, key=lambda pair: pair[0])[1]


class Box:
    """Conversion from parameters to points or rows, for optimisers of boxes."""

    def __init__(self, world: Space) -> None:
        self.world = world
        self.names = ["row"] if world.named else [f"x{i}" for i in range(world.dimension)]
        self.rows = [str(i) for i in range(len(world.rows))] if world.named else None
        self.tree = None if world.rows is None or world.named else cKDTree(world.rows)

    def where(self, params):
        if self.world.named:
            return int(params["row"])
        point = np.array([params[name] for name in self.names])
        return point if self.tree is None else int(self.tree.query(point)[1])


class Optuna:
    """A sampler with its defaults; the luckiest trial is recommended."""

    def __init__(self, world: Space, seed: int, sampler: str) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        self.box = Box(world)
        self.study = optuna.create_study(direction=world.goal, sampler=getattr(optuna.samplers, sampler)(seed=seed))

    def ask(self):
        self.trial = self.study.ask()
        for name in self.box.names:
            if self.box.rows is None:
                self.trial.suggest_float(name, 0, 1)
            else:
                self.trial.suggest_categorical(name, self.box.rows)
        return self.box.where(self.trial.params)

    def tell(self, where, value):
        self.study.tell(self.trial, value)

    def best(self):
        return self.box.where(self.study.best_params)


class BayesianOptimization:
    """Five random points, then its defaults; the luckiest measurement is recommended. Maximises only."""

    def __init__(self, world: Space, seed: int) -> None:
        from bayes_opt import BayesianOptimization as Reference

        self.box = Box(world)
        bounds = {name: (0.0, 1.0) if self.box.rows is None else tuple(self.box.rows) for name in self.box.names}
        self.opt = Reference(None, bounds, random_state=seed, verbose=0, allow_duplicate_points=True)
        self.rng, self.asked = np.random.default_rng([seed, 3]), 0

    def ask(self):
        self.asked += 1
        self.params = self._random() if self.asked <= 5 else self.opt.suggest()
        return self.box.where(self.params)

    def _random(self):
        if self.box.rows is not None:
            return {"row": str(self.rng.integers(len(self.box.rows)))}
        return {name: float(self.rng.random()) for name in self.box.names}

    def tell(self, where, value):
        self.opt.register(params=self.params, target=value)

    def best(self):
        return self.box.where(self.opt.max["params"])


class Skopt:
    """A Gaussian process, gp_hedge, ten initial points; the luckiest measurement is recommended. Maximises only."""

    def __init__(self, world: Space, seed: int) -> None:
        from skopt import Optimizer

        self.box = Box(world)
        dimensions = [(0.0, 1.0)] * len(self.box.names) if self.box.rows is None else [self.box.rows]
        self.opt = Optimizer(dimensions, "GP", n_initial_points=10, random_state=seed)

    def ask(self):
        self.params = self.opt.ask()
        return self._where(self.params)

    def tell(self, where, value):
        self.opt.tell(self.params, -value)

    def best(self):
        return self._where(self.opt.Xi[int(np.argmin(self.opt.yi))])

    def _where(self, params):
        return self.box.where(dict(zip(self.box.names, params, strict=True)))


class BoTorch:
    """SingleTaskGP, refitted before every trial as in its tutorials; the largest posterior mean is recommended."""

    def __init__(self, world: Space, seed: int, acquisition: str) -> None:
        import torch

        torch.set_num_threads(1)
        torch.manual_seed(seed)
        logging.getLogger("botorch").setLevel(logging.ERROR)
        self.torch, self.world, self.acquisition = torch, world, acquisition
        self.sign = 1.0 if world.goal == "maximize" else -1.0
        self.rows = np.eye(len(world.rows)) if world.named else world.rows
        self.dimension = world.dimension if self.rows is None else self.rows.shape[1]
        start = 2 * (world.dimension + 1)
        if self.rows is None:
            sobol = torch.quasirandom.SobolEngine(self.dimension, scramble=True, seed=seed)
            self.design = list(sobol.draw(start, dtype=torch.double).numpy())
        else:
            self.design = np.random.default_rng([seed, 4]).permutation(len(self.rows))[:start].tolist()
        self.asked, self.points, self.values = [], [], []

    def ask(self):
        if len(self.points) < len(self.design):
            return self.design[len(self.points)]
        from botorch.optim import optimize_acqf, optimize_acqf_discrete

        function = self._function(self._model())
        if self.rows is not None:
            chosen, _ = optimize_acqf_discrete(function, 1, self.torch.tensor(self.rows, dtype=self.torch.double))
            return int(np.flatnonzero((self.rows == chosen.numpy()[0]).all(axis=1))[0])
        bounds = self.torch.tensor([[0.0] * self.dimension, [1.0] * self.dimension], dtype=self.torch.double)
        point, _ = optimize_acqf(function, bounds, q=1, num_restarts=10, raw_samples=256)
        return point.detach().numpy()[0]

    def _function(self, model):
        from botorch.acquisition import UpperConfidenceBound, qLogNoisyExpectedImprovement

        if self.acquisition == "ucb":
            return UpperConfidenceBound(model, beta=2.0)
        return qLogNoisyExpectedImprovement(model, self._inputs(), prune_baseline=True)

    def _inputs(self):
        return self.torch.tensor(np.array(self.points), dtype=self.torch.double)

    def _model(self):
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import SingleTaskGP
        from botorch.models.transforms import Standardize
        from gpytorch.mlls import ExactMarginalLogLikelihood

        values = self.torch.tensor(self.values, dtype=self.torch.double)[:, None]
        model = SingleTaskGP(self._inputs(), values, outcome_transform=Standardize(1))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        return model

    def tell(self, where, value):
        self.asked.append(where)
        self.points.append(where if self.rows is None else self.rows[where])
        self.values.append(self.sign * value)

    def best(self):
        model = self._model()
        with self.torch.no_grad():
            return self.asked[int(model.posterior(self._inputs()).mean.argmax())]


PEERS = {
    "noregret": NoRegret,
    "optuna-tpe": lambda world, seed: Optuna(world, seed, "TPESampler"),
    "optuna-gp": lambda world, seed: Optuna(world, seed, "GPSampler"),
    "bayesian-optimization": BayesianOptimization,
    "scikit-optimize": Skopt,
    "botorch-lognei": lambda world, seed: BoTorch(world, seed, "lognei"),
    "botorch-ucb": lambda world, seed: BoTorch(world, seed, "ucb"),
    "random": Random,
}
