"""noregret's Optimizer against other optimisers: ``python -m benchmarks.peers``."""
