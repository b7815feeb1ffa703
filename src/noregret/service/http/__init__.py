"""HTTP: the application, its requests, and what keeps it safe."""
