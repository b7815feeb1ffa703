"""The same search inside Optuna: a sampler that needs no option for heavy tails.

Run: python examples/optuna_sampler.py
"""

import numpy as np
import optuna

from noregret.integrations.optuna import NoRegretSampler


def main() -> None:
    """Minimise a loss; print the luckiest value and the recommendation."""
    noise = np.random.default_rng(0)

    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", -5, 5)
        rate = trial.suggest_float("rate", 1e-4, 1, log=True)
        return float(
            (x - 2) ** 2 / 10 + abs(np.log10(rate) + 2) + 0.1 * noise.standard_t(1.5)
        )

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="minimize", sampler=NoRegretSampler(seed=0))
    study.optimize(objective, n_trials=60)
    best = study.sampler.best(study)
    print(f"luckiest:    {study.best_value:.2f} at {study.best_params}")
    print(
        f"recommended: {best.estimate:.2f} "
        f"(between {best.lower:.2f} and {best.upper:.2f}) at {best.params}"
    )


if __name__ == "__main__":
    main()
