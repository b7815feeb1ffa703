"""Tune two parameters of a service whose latencies are noisy and stall now and then."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import optuna
import optunahub


def latency(threads: int, batch: float) -> float:
    """Milliseconds in the mean, without noise: the least is 20, at 8 threads and a batch of 64."""
    return 20 + abs(threads - 8) + 8 * abs(np.log2(batch / 64))


def main(module: ModuleType) -> None:
    noise = np.random.default_rng(0)

    def objective(trial: optuna.Trial) -> float:
        mean = latency(
            trial.suggest_int("threads", 1, 32), trial.suggest_float("batch", 1, 1024, log=True)
        )
        measured = mean + 2 * noise.standard_normal()
        stall, lucky = noise.random(2) < 0.05  # ten times as slow, or a clock that jumps
        return 10 * measured if stall else measured / 3 if lucky else measured

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = module.NoRegretSampler(seed=0)
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=60)

    luckiest, best = study.best_trial, sampler.best(study)
    true = latency(**luckiest.params)
    print(f"luckiest trial: {luckiest.value:.1f} ms measured, {true:.1f} ms in truth")
    interval, true = f"{best.lower:.1f} to {best.upper:.1f}", latency(**best.params)
    print(f"recommended: {best.estimate:.1f} ms ({interval}), {true:.1f} ms in truth")
    print(best.params)


if __name__ == "__main__":
    main(optunahub.load_module("samplers/noregret"))
