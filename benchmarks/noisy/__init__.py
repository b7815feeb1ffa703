"""What `benchmarks.noisy_suite` is made of: the functions of bbob-noisy, runs on them, their tables and pictures."""
