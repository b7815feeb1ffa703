"""Kernels: values that combine by ``+`` and ``*`` and scale by a number."""

from noregret.gp.kernels import Columns, Kernel, Linear, Matern, RationalQuadratic, SquaredExponential, Tabular

__all__ = ["Columns", "Kernel", "Linear", "Matern", "RationalQuadratic", "SquaredExponential", "Tabular"]
