"""Decisions from a belief: schedules, rules, designs, loops, and the policy that runs a loop by ask and tell."""
