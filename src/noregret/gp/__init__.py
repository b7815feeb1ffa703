"""The ground of both wings: kernels, linear algebra, threads, seeds, and the contract of a belief on arms."""
