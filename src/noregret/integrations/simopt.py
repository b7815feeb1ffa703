"""SimOpt: noregret as a solver of SimOpt's library of simulations (extra ``simopt``).

    experiment = ProblemSolver(solver=NoRegretSolver(), problem_name="SSCONT-1")
    experiment.run(n_macroreps=10)

It runs under SimOpt's own experiments, with their random numbers, and is compared by their own plots.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field
from simopt.base import ConstraintType, ObjectiveType, Problem, Solution, Solver, SolverConfig, VariableType

from noregret.optimizer import Float, Int, Optimizer

QUESTIONS = 200
"""Number of settings, repeated ones included, on which a budget is spent by default: more take longer to choose."""
DRAWN = 100
"""Random solutions of a problem that are drawn for the range of a variable without a bound."""
COVERED = 0.95
"""Part of them that lies in that range."""


class NoRegretSolverConfig(SolverConfig):  # type: ignore[misc]
    """Factors of `NoRegretSolver`."""

    crn_across_solns: Annotated[
        bool, Field(default=False, description="use CRN across solutions? The model assumes independent noise.")
    ]
    sample_size: Annotated[
        int, Field(default=0, ge=0, description=f"replications per question; 0 for the budget / {QUESTIONS}")
    ]
    box: Annotated[
        list[tuple[float, float]],
        Field(default=[], description="range of each variable; empty for the problem's bounds, and guesses without"),
    ]


class NoRegretSolver(Solver):  # type: ignore[misc]
    """Solver for problems with one objective and box constraints; variables are real, or all whole numbers.

    A question of the `Optimizer` is ``sample_size`` replications of one solution. It gets the result of each of them,
    and estimates the noise and its outliers itself. Promising solutions are asked for again, and get further
    replications then. A solution that is repeated continues its own random numbers.

    A solution is recommended when ``Optimizer.best()`` changes: by a model of all replications, not by the best
    average. The first one is the problem's initial solution.

    SimOpt leaves most variables without an upper bound. Their range holds the initial solution and the middle 95% of
    100 random solutions of the problem, which cost no replications; ``fixed_factors={"box": [(0, 10), ...]}`` sets it.
    """

    name: str = "NOREGRET"
    config_class: ClassVar[type[SolverConfig]] = NoRegretSolverConfig
    class_name_abbr: ClassVar[str] = "NOREGRET"
    class_name: ClassVar[str] = "noregret"
    objective_type: ClassVar[ObjectiveType] = ObjectiveType.SINGLE
    constraint_type: ClassVar[ConstraintType] = ConstraintType.BOX
    variable_type: ClassVar[VariableType] = VariableType.MIXED
    gradient_needed: ClassVar[bool] = False

    def solve(self, problem: Problem) -> None:
        """Run one macroreplication: until SimOpt's budget ends it."""
        first = tuple(problem.factors["initial_solution"])
        space, seed = self._space(problem, first), int(2**32 * self.rng_list[2].random())
        optimizer = Optimizer(space, goal="maximize" if problem.minmax[0] > 0 else "minimize", rng=seed)
        replications = self.factors["sample_size"] or max(1, self.budget.total // QUESTIONS)
        solutions: dict[tuple[float, ...], Solution] = {}

        def solution_of(x: tuple[float, ...]) -> Solution:
            if x not in solutions:
                solutions[x] = self.create_new_solution(x, problem)
            return solutions[x]

        self._recommend(solution_of(first))
        trial = optimizer.expect(dict(zip(space, first, strict=True)))
        while True:
            solution = solution_of(tuple(trial.params.values()))
            self.budget.request(replications)
            problem.simulate(solution, replications)
            for value in solution.objectives[-replications:, 0]:
                optimizer.tell(trial.params, float(value)) if np.isfinite(value) else optimizer.fail(trial.params)
            if len(optimizer.measurements) > 1:
                self._recommend(solution_of(tuple(optimizer.best().params.values())))
            trial = optimizer.ask()

    def _recommend(self, solution: Solution) -> None:
        """Record a solution if it is another one than the last."""
        if not self.recommended_solns or self.recommended_solns[-1].x != solution.x:
            self.recommended_solns.append(solution)
            self.intermediate_budgets.append(self.budget.used)

    def _space(self, problem: Problem, first: tuple[float, ...]) -> dict[str, Any]:
        """Range of each variable."""
        box = self.factors["box"] or list(zip(problem.lower_bounds, problem.upper_bounds, strict=True))
        if len(box) != problem.dim:
            raise ValueError(f"box must have a range for each of the {problem.dim} variables, got {len(box)}")
        if problem.variable_type == VariableType.MIXED:
            raise ValueError("variables must be all continuous or all discrete: SimOpt does not say which are which")
        drawn = np.array([first, *(problem.get_random_solution(self.rng_list[1]) for _ in range(DRAWN))], dtype=float)
        ends = np.quantile(drawn, [(1 - COVERED) / 2, (1 + COVERED) / 2], axis=0)
        low = np.where(np.isfinite([low for low, _ in box]), [low for low, _ in box], np.minimum(ends[0], first))
        high = np.where(np.isfinite([high for _, high in box]), [high for _, high in box], np.maximum(ends[1], first))
        if problem.variable_type == VariableType.DISCRETE:
            return {f"x{i}": Int(int(np.ceil(a)), int(b)) for i, (a, b) in enumerate(zip(low, high, strict=True))}
        return {f"x{i}": Float(float(a), float(b)) for i, (a, b) in enumerate(zip(low, high, strict=True))}
