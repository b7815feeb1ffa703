"""noregret's Optimizer against the optimisers people use: ``python -m benchmarks.peers``."""
