"""Thompson sampling on a GPU; on a machine without one, the same on the CPU."""

import torch

import noregret

device = "cuda" if torch.cuda.is_available() else "cpu"
count = 1_000_000 if device == "cuda" else 2_000
generator = torch.Generator(device).manual_seed(0)
arms = torch.rand(count, 3, dtype=torch.float64, device=device, generator=generator)
truth = torch.exp(-8 * ((arms - 0.6) ** 2).sum(1))  # unknown

kernel = noregret.SquaredExponential(0.4)
belief = noregret.ExactGP(kernel, ridge=0.01)
algorithm = noregret.Sequential(belief, noregret.Thompson(noregret.Constant(1.0)))
policy = noregret.Policy(algorithm, arms, rng=0)
noise = torch.Generator().manual_seed(1)
for _ in range(40):
    for arm in policy.ask():
        policy.tell(
            arm, float(truth[arm]) + 0.1 * float(torch.randn(1, generator=noise))
        )

best = policy.best()
print(f"{count:,} arms on {'a GPU' if device == 'cuda' else 'the CPU'}")
print(
    f"within {float(truth.max() - truth[best.arm]):.2f} of the best arm after 40 pulls"
)
