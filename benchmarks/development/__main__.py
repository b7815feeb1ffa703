"""Results of `Optimizer` on the development suite, and their change between two source trees.

    python -m benchmarks.development --group hills --evaluations 1000 --noises gaussian student spikes --seeds 3

runs this tree's source; ``--against /path/to/other/src`` runs that one too, on the same problems, noises and seeds, and
prints paired differences (this less other) with their standard errors over the runs. Groups:

- classic: the seventeen functions of one to six dimensions on which the first defaults were chosen;
- hills: sixteen functions of two to five dimensions with many hills;
- wide: 10 to 50 dimensions;
- mixed: spaces with whole numbers and choices;
- named: choices only;
- real: timings of a GPU kernel, accuracies of neural networks, and simulations of SimOpt. They have their own noise, so
  ``--noises`` does not apply. Some need ``pip install '.[benchmarks]'``. ``--by problem`` shows them one by one,
  and ``--random`` prints the results of random search at the same budgets and seeds.

Columns: ``recommended``, the regret of `best().params`; ``on the way``, the mean regret of all trials; both are
of true values, and 1 for random points. On the GPU tables regrets are relative: 0.5 is a mean time 50% above the best
one, so a mean over all of ``real`` mixes two units. ``stuck``, the share of runs that end with a recommended regret
above 0.05; ``held``, the share of intervals of `best()` that contain the truth; ``seconds``, CPU time of asking,
telling and recommending, which means something only when both trees ran on the same quiet machine. Finished runs are
kept (``--out``) by what the source files contain, so a tree that has not changed is not run again.
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path

from benchmarks.development.noises import NOISES, named, noises_of
from benchmarks.development.playing import Run, play
from benchmarks.development.problems import GROUPS
from benchmarks.development.random_search import RandomSearch
from benchmarks.development.tables import table
from benchmarks.development.trees import HERE, Kept, Tree

PARTS = {"noise": lambda run: run.noise, "problem": lambda run: run.problem}


def main() -> None:
    options = _options()
    problems = options.problems or [name for group in options.group for name in GROUPS[group]]
    runs = [
        Run(name, noise, seed)
        for name in problems
        for noise, seed in product(noises_of(name, named(options.noises)), range(options.seeds))
    ]
    if options.random:
        readings = {run: play(run, sorted(options.evaluations), RandomSearch) for run in runs}
        for head in options.by:
            print(table(readings, None, PARTS[head], head, ["recommended", "on the way", "stuck"]))
        return
    kept = Kept(options.out, tuple(sorted(options.evaluations)))
    this = kept.of(Tree(options.source.resolve()), runs, options.processes)
    other = kept.of(Tree(options.against.resolve()), runs, options.processes) if options.against else None
    for head in options.by:
        print(table(this, other, PARTS[head], head))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    everything = [name for names in GROUPS.values() for name in names]
    parser.add_argument("--group", nargs="+", default=["classic"], choices=list(GROUPS))
    parser.add_argument("--problems", nargs="+", choices=everything, metavar="NAME", help="instead of groups")
    parser.add_argument("--noises", nargs="+", default=list(NOISES), help=f"beginnings of {', '.join(NOISES)}")
    parser.add_argument("--evaluations", nargs="+", type=int, default=[50], help="one run to the largest, read at each")
    parser.add_argument("--seeds", type=int, default=2, help="seeds 0, 1, ... of this number")
    parser.add_argument("--source", type=Path, default=HERE.parents[1] / "src", help="the tree to judge")
    parser.add_argument("--against", type=Path, help="another tree's src folder")
    parser.add_argument("--random", action="store_true", help="random search instead of the tree; nothing is kept")
    parser.add_argument("--by", nargs="+", default=["noise"], choices=list(PARTS), help="rows of the tables")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path(".benchmarks/development"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
