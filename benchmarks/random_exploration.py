"""Random exploration against the theorems: ``python -m benchmarks.random_exploration --folder pictures``.

1. The worst posterior variance after n uniform random points and after n points of the largest variance, Matern kernels
   on the unit interval and square, with and without noise. Theorem 3.1: both fall like n^(1/beta - 1) with noise and
   like n^(1 - beta) without, up to logarithms, where beta = 1 + 2 nu / d.
2. The cumulative regret of REDS without noise, on a box. Corollary 4.4: at most T^(1 - nu/d) for nu < d,
   polylogarithmic from nu = d on, up to logarithms.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import NullFormatter
from scipy.optimize import minimize

from noregret import Box, ExactGP, Matern, MaxVarianceDesign, algorithms, run
from noregret.belief.posterior import Floats, Rng
from noregret.problems import Continuous, Gaussian

RIDGE = 0.2
LENGTHSCALE = {1: 0.2, 2: 0.5, 3: 1.0}
"""By dimension: long enough for the rates to show at sizes that can be computed."""
FLOOR = 1e-10
"""Variances below are the nugget's, not the kernel's."""
NAMES = {"random": "uniform at random", "greedy": "largest variance"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="where the pictures go; none without it")
    parser.add_argument("--quick", action="store_true", help="fewer points and seeds")
    parser.add_argument("--part", choices=["variance", "growth"], help="one of the two studies")
    options = parser.parse_args()
    if options.folder:
        options.folder.mkdir(parents=True, exist_ok=True)
    if options.part != "growth":
        variance(options.folder, *((2, 128, 128) if options.quick else (10, 512, 1024)))
    if options.part != "variance":
        growth(options.folder, *((1, 3) if options.quick else (5, 6)))


def variance(folder: Path | None, seeds: int, most_noise_free: int, most_noisy: int) -> None:
    """Worst posterior variance against n, with fitted slopes."""
    print("worst posterior variance: slope of its logarithm against that of n, second half of the sizes")
    print(f"  {'':28}{'theory':>8}{'random':>9}{'largest variance':>18}{'random / largest at the end':>29}")
    figure, axes = plt.subplots(2, 4, figsize=(17, 8), squeeze=False)
    for row, (ridge, most) in enumerate(((RIDGE, most_noisy), (0.0, most_noise_free))):
        sizes = 2 ** np.arange(4, int(np.log2(most)) + 1)
        for column, (nu, d) in enumerate(((1.5, 1), (2.5, 1), (1.5, 2), (2.5, 2))):
            curves = {
                "random": np.median([worst_at_random(nu, d, ridge, sizes, seed) for seed in range(seeds)], axis=0),
                "greedy": worst_of_greedy(nu, d, ridge, sizes),
            }
            theory = -2 * nu / (2 * nu + d) if ridge else -2 * nu / d
            title = f"Matern {nu}, d = {d}, " + (f"ridge {ridge}" if ridge else "no noise")
            slopes = {name: slope(sizes, values) for name, values in curves.items()}
            ratio = (curves["random"] / curves["greedy"])[np.flatnonzero(curves["greedy"] > FLOOR)[-1]]
            print(f"  {title:28}{theory:8.2f}{slopes['random']:9.2f}{slopes['greedy']:18.2f}{ratio:29.1f}")
            draw_variance(axes[row, column], sizes, curves, slopes, theory, title)
    if folder:
        figure.suptitle("Worst posterior variance after n points (Theorem 3.1)")
        figure.tight_layout()
        figure.savefig(folder / "random_exploration.png", dpi=110)
    plt.close(figure)


def grid(d: int) -> Floats:
    """A fine grid of the unit cube."""
    axis = np.linspace(0, 1, {1: 4001, 2: 71}[d])
    return np.stack(np.meshgrid(*[axis] * d), axis=-1).reshape(-1, d)


def worst_at_random(nu: float, d: int, ridge: float, sizes: Any, seed: int) -> Floats:
    """Largest variance on the grid after these numbers of uniform points."""
    points, sites = np.random.default_rng(seed).random((sizes[-1], d)), grid(d)
    belief = ExactGP(Matern(nu, LENGTHSCALE[d]), ridge).prior(np.vstack([sites, points]))
    worst, done = [], 0
    for size in sizes:
        belief.update(len(sites) + np.arange(done, size), None)
        worst.append(belief.std[: len(sites)].max() ** 2)
        done = size
    return np.array(worst)


def worst_of_greedy(nu: float, d: int, ridge: float, sizes: Any) -> Floats:
    """Largest variance on the grid after these numbers of its points, each of the largest variance."""
    sites, model = grid(d), ExactGP(Matern(nu, LENGTHSCALE[d]), ridge)
    plan = MaxVarianceDesign()(model, sites, int(sizes[-1]), np.random.default_rng(0))
    belief, worst, done = model.prior(sites), [], 0
    for size in sizes:
        belief.update(plan[done:size], None)
        worst.append(belief.std.max() ** 2)
        done = size
    return np.array(worst)


def slope(sizes: Any, values: Floats) -> float:
    """Slope in doubly logarithmic scale over the larger half of the sizes above the floor."""
    good = np.flatnonzero(values > FLOOR)
    good = good[len(good) // 2 - (len(good) < 4) :]
    return float(np.polyfit(np.log(sizes[good]), np.log(values[good]), 1)[0])


def draw_variance(axis: Any, sizes: Any, curves: Any, slopes: Any, theory: float, title: str) -> None:
    for name, values in curves.items():
        axis.loglog(sizes, values, "o-", label=f"{NAMES[name]} (slope {slopes[name]:.2f})")
    start = curves["random"][len(sizes) // 2]
    guide = start * (sizes / sizes[len(sizes) // 2]) ** theory
    axis.loglog(sizes, guide, "k--", lw=1, label=f"theory (slope {theory:.2f})")
    axis.set(title=title, xlabel="points", ylabel="worst posterior variance")
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.legend(fontsize=8)


CASES = ((0.5, 1), (1.5, 1), (2.5, 1), (0.5, 2), (1.5, 2), (2.5, 2), (0.5, 3), (1.5, 3), (2.5, 3))


def growth(folder: Path | None, seeds: int, epochs: int) -> None:
    """Cumulative regret of noise-free REDS on a box, with fitted exponents."""
    first = 50
    times = first * (2 ** np.arange(1, epochs + 1) - 1)
    print(f"noise-free REDS on a box, {seeds} functions of norm 1: regret at T = {', '.join(map(str, times))}")
    print(f"  {'':18}{'bound':>8}{'exponent':>10}")
    figure, axes = plt.subplots(1, 3, figsize=(15, 5), sharey=True)
    for nu, d in CASES:
        for separate in (False, True):
            regret = np.mean([noise_free(nu, d, times, first, separate, s) for s in range(seeds)], axis=0)
            exponent = float(np.polyfit(np.log(times[1:]), np.log(regret[1:]), 1)[0])
            bound = f"{1 - nu / d:.2f}" if nu < d else "polylog"
            numbers = " ".join(f"{value:.1f}" for value in regret)
            how = "  (pieces apart)" if separate else ""
            print(f"  {f'Matern {nu}, d = {d}':18}{bound:>8}{exponent:10.2f}    {numbers}{how}", flush=True)
            label = None if separate else f"nu = {nu}: exponent {exponent:.2f}, bound {bound}"
            style, colour = "o:" if separate else "o-", {0.5: "C0", 1.5: "C1", 2.5: "C2"}[nu]
            axes[d - 1].loglog(times, regret, style, color=colour, label=label, ms=4)
    for d, axis in enumerate(axes, 1):
        axis.set(title=f"d = {d}", xlabel="T", ylabel="cumulative regret" if d == 1 else "")
        axis.yaxis.set_minor_formatter(NullFormatter())
        axis.legend()
    if folder:
        figure.suptitle("Noise-free REDS against Corollary 4.4; dotted: every connected piece sampled apart")
        figure.tight_layout()
        figure.savefig(folder / "noise_free_regret.png", dpi=110)
    plt.close(figure)


def noise_free(nu: float, d: int, times: Any, first: int, separate: bool, seed: int) -> Floats:
    """Cumulative regret at these times on a sum of 20 kernels of norm 1."""
    rng, kernel, box = np.random.default_rng([seed, d]), Matern(nu, LENGTHSCALE[d]), Box([[0, 1]] * d)
    centres, weights = rng.random((20, d)), rng.standard_normal(20)
    weights /= np.sqrt(weights @ kernel(centres, centres) @ weights)

    def f(points: Floats) -> Floats:
        return np.asarray(kernel(points, centres) @ weights)

    problem = Continuous("sum of kernels", box, f, maximum(f, box, centres, rng), kernel, Gaussian(0.0))
    reds = algorithms.reds(kernel, norm=1.0, noise=0.0, first_epoch=first, separate=separate)
    return run(reds, problem, int(times[-1]), rng=seed).cumulative_regret[times - 1]


def maximum(f: Any, box: Box, centres: Floats, rng: Rng) -> float:
    """The largest value, polished from the best of many points and the centres, where a rough kernel has its peaks."""
    points = np.vstack([box.sample(20_000, rng), centres])
    starts = points[np.argsort(-f(points))[:10]]
    found = [-minimize(lambda x: -f(x[None])[0], start, bounds=box.bounds).fun for start in starts]
    return float(max([*found, f(points).max()]))


if __name__ == "__main__":
    main()
