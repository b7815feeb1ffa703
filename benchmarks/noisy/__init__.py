"""Parts of `benchmarks.noisy_suite`: the functions of bbob-noisy, runs on them, their tables and pictures."""
