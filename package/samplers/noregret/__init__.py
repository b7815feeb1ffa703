from noregret.integrations.optuna import NoRegretPruner
from noregret.integrations.optuna import NoRegretSampler


__all__ = ["NoRegretPruner", "NoRegretSampler"]
