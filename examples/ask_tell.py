"""Ask and tell: tune anything that Python can measure, without a study file.

The example minimises the time of sorting, over the number of items to sort at a time
and the key. Timings are noisy, with outliers when the machine is busy.

Run: python examples/ask_tell.py
"""

import random
import time

from noregret import Choice, Int, Optimizer

NUMBERS = [random.random() for _ in range(20_000)]
KEYS = {"none": None, "negative": float.__neg__, "text": repr}


def nanoseconds_per_number(chunk: int, key: str) -> float:
    """Time to sort all numbers in chunks, per number."""
    began = time.perf_counter_ns()
    for start in range(0, len(NUMBERS), chunk):
        sorted(NUMBERS[start : start + chunk], key=KEYS[key])
    return (time.perf_counter_ns() - began) / len(NUMBERS)


def main() -> None:
    """Run forty evaluations, and print the best setting."""
    optimizer = Optimizer(
        {"chunk": Int(1, 20_000, log=True), "key": Choice(list(KEYS))},
        goal="minimize",
        rng=0,
    )
    for _ in range(40):
        trial = optimizer.ask()
        optimizer.tell(trial, nanoseconds_per_number(**trial.params))
    best = optimizer.best()
    print(
        f"{best.params}: {best.estimate:.0f} ns per number, "
        f"probably between {best.lower:.0f} and {best.upper:.0f}"
    )


if __name__ == "__main__":
    main()
