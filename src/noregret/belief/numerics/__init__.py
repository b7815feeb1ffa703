"""Matrix operations that the posteriors share, and the number of BLAS threads they use."""
