"""Kernels: values that combine by ``+`` and ``*`` and scale by a number."""

from noregret.belief.kernels import Columns, Kernel, Linear, Matern, RationalQuadratic, SquaredExponential, Tabular

__all__ = ["Columns", "Kernel", "Linear", "Matern", "RationalQuadratic", "SquaredExponential", "Tabular"]
