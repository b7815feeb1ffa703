"""A noisy simulator: find the order policy of a shop with the largest profit."""

import numpy as np

from noregret import Int, Optimizer

world = np.random.default_rng(0)


def profit(order_at, order_up_to, days=60):
    """Daily profit in one simulated run of a shop with random customers."""
    stock, earned = order_up_to, 0.0
    for demand in world.poisson(10, days):
        sold = min(stock, demand)
        stock -= sold
        earned += 5 * sold - 0.1 * stock
        if stock <= order_at:
            earned -= 30 + 2 * (order_up_to - stock)
            stock = order_up_to
    return earned / days


opt = Optimizer(
    {"order_at": Int(0, 40), "order_up_to": Int(41, 200)}, goal="maximize", rng=0
)
for _ in range(15):
    trials = opt.ask(4)  # four runs at a time, for four processes
    for trial in trials:
        opt.tell(trial, profit(**trial.params))

best = opt.best()
print(f"{best.params}: {best.estimate:.1f} a day")
print(f"probably between {best.lower:.1f} and {best.upper:.1f}, at {best.level:.0%}")
truth = np.mean([profit(**best.params) for _ in range(500)])
print(f"in 500 more runs: {truth:.1f}")
