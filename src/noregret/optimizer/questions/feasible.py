"""Questions under constraints: what is better, weighed with how likely it is that all constraints are met."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np

from noregret.belief.posterior import Floats, Ints, Posterior, Rng
from noregret.decision.rules import Rule
from noregret.optimizer.model.condensing import Belief
from noregret.optimizer.model.constraints import FAINT, Margins, closeness, log_chances, log_chances_at

LIKELY = 0.95
"""What meets all constraints with at least this probability may be recommended."""

POSSIBLE = 0.5
"""While nothing that was measured meets all constraints with this probability, questions look for what does."""

WIDTH = 2.0
"""How many standard deviations above its mean a constraint is looked at where nothing has more than a faint chance."""


class Constrained:
    """A belief as questions under constraints see it.

    What counts as ``pulled`` is what is likely feasible of it, and predicted means are lowered by what the constraints
    take off: -ln P(feasible), in units of the values' spread. Everything else is the belief's own.
    """

    def __init__(self, belief: Belief, margins: Margins, pulled: Ints | None = None) -> None:
        self._belief, self._margins = belief, margins
        self.pulled = belief.pulled if pulled is None else pulled

    def __getattr__(self, name: str) -> Any:
        return getattr(self._belief, name)

    def predict(self, points: Floats) -> tuple[Floats, Floats]:
        """Lowered means and std, each (n,), at (n, d) points."""
        mean, std = self._belief.predict(points)
        return mean + log_chances_at(self._margins, points), std


def penalised(belief: Belief, margins: Margins) -> Posterior:
    """The belief with means that are lowered where a constraint is likely not met; as it is without constraints."""
    return cast(Posterior, Constrained(belief, margins)) if margins else belief


def among_likely(belief: Belief, margins: Margins, here: Ints | None = None) -> Posterior:
    """The belief with what is likely feasible, or else the likeliest, as all that counts as pulled.

    In a context every arm that is ``here`` counts as pulled before that: few or none of them have been, but what was
    measured in other contexts tells about them.
    """
    if not margins and here is None:
        return belief
    pulled = belief.pulled if here is None else here
    chances = log_chances(margins, len(belief.arms))[pulled]
    likely = chances >= min(math.log(LIKELY), float(chances.max()))
    return cast(Posterior, Constrained(belief, margins, pulled[likely]))


def question_scores(rule: Rule, belief: Belief, margins: Margins, rng: Rng, here: Ints | None = None) -> Floats:
    """The rule's scores, which are taken for logarithms, plus ln P(feasible), (N,).

    While nothing that was measured is possible, the most likely feasible arm scores highest, as long as measuring it
    still tells something; where no arm has more than a faint chance, the one that comes nearest if it is very good.
    """
    if not margins:
        return np.array(rule(among_likely(belief, margins, here), rng))
    chances = log_chances(margins, len(belief.arms))
    if chances[belief.pulled if here is None else here].max() >= math.log(POSSIBLE):
        return np.asarray(rule(among_likely(belief, margins, here), rng) + chances)
    if chances.max() < math.log(FAINT):
        chances = closeness(margins, len(chances), WIDTH)
    return np.asarray(chances + np.log(_news(margins)))


def recommended(scores: Floats, margins: Margins) -> int:
    """The arm with the highest score, (N,), of those that are likely feasible, or else the likeliest.

    Where no arm has more than a faint chance it is the one that is expected to come nearest: how faint a chance is says
    more about what nobody has measured.
    """
    if not margins:
        return int(np.argmax(scores))
    chances = np.where(np.isfinite(scores), log_chances(margins, len(scores)), -np.inf)
    if chances.max() < math.log(FAINT):
        chances = np.where(np.isfinite(scores), closeness(margins, len(scores), 0.0), -np.inf)
    return int(np.argmax(np.where(chances >= min(math.log(LIKELY), chances.max()), scores, -np.inf)))


def _news(margins: Margins) -> Floats | float:
    known = [margin.belief for margin in margins if margin is not None]
    news = [np.minimum(1.0, 5 * belief.std**2 / belief.ridge) for belief in known]
    return np.maximum(np.max(news, axis=0), 1e-300) if news else 1.0
