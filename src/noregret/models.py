"""Models: recipes of a posterior, with the features and estimators they are made of."""

from noregret.bandits.belief.arms import Box
from noregret.bandits.belief.estimators import (
    ClippedResiduals,
    Estimator,
    LeastSquares,
    MedianOfMeans,
    TruncatedDirections,
    TruncatedRewards,
)
from noregret.bandits.belief.exact import ExactGP
from noregret.bandits.belief.features import Nystrom, QuadratureFourier, RandomFourier
from noregret.bandits.belief.sparse import SparseGP

__all__ = [
    "Box",
    "ClippedResiduals",
    "Estimator",
    "ExactGP",
    "LeastSquares",
    "MedianOfMeans",
    "Nystrom",
    "QuadratureFourier",
    "RandomFourier",
    "SparseGP",
    "TruncatedDirections",
    "TruncatedRewards",
]
