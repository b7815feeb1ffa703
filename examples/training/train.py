"""Train a linear classifier of digits, and print its loss on others each epoch."""

import argparse
import json
import time

from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

parser = argparse.ArgumentParser()
parser.add_argument("--rate", type=float)
parser.add_argument("--alpha", type=float)
parser.add_argument("--epochs", type=int)
options = parser.parse_args()

images, digits = load_digits(return_X_y=True)
seed = time.time_ns() % 2**32  # another split and order in every run: results are noisy
images, others, digits, truth = train_test_split(
    images / 16, digits, random_state=seed, stratify=digits
)
model = SGDClassifier(
    "log_loss",
    alpha=options.alpha,
    learning_rate="constant",
    eta0=options.rate,
    random_state=seed % 1000,
)
for epoch in range(1, options.epochs + 1):
    model.partial_fit(images, digits, classes=range(10))
    print(
        json.dumps(
            {"epoch": epoch, "loss": log_loss(truth, model.predict_proba(others))}
        ),
        flush=True,
    )
