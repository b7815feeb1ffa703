"""Models: recipes of a posterior, with the features and estimators they are made of."""

from noregret.belief.box import Box
from noregret.belief.estimators import (
    ClippedResiduals,
    Estimator,
    LeastSquares,
    MedianOfMeans,
    TruncatedDirections,
    TruncatedRewards,
)
from noregret.belief.exact import ExactGP
from noregret.belief.features.fourier import QuadratureFourier, RandomFourier
from noregret.belief.features.nystrom import Nystrom
from noregret.belief.sparse import SparseGP

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
