"""The few matrix operations that the posteriors share, and how many BLAS threads they use."""
