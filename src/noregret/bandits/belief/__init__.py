"""Beliefs about f: kernels, models and their posteriors, features, estimators, and the numerics behind them."""
