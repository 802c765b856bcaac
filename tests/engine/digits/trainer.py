"""Learn to read noisy seven-segment digits: what examples/digits does, with Python alone and in no time."""

import argparse
import json
import os
import random
import time
from pathlib import Path

SEGMENTS = (
    *("1110111", "0010010", "1011101", "1011011", "0111010"),
    *("1101011", "1101111", "1010010", "1111111", "1111011"),
)
NOISE = 0.03


def images(count: int, seed: int) -> list[tuple[list[float], int]]:
    """Return digits, each of whose segments is wrong with a probability of NOISE."""
    chance = random.Random(seed)
    labels = [chance.randrange(10) for _ in range(count)]
    return [([float((chance.random() < NOISE) != (bit == "1")) for bit in SEGMENTS[label]], label) for label in labels]


def best(weights: list[list[float]], image: list[float]) -> int:
    """Return the label with the highest score."""
    scores = [row[-1] + sum(weight for weight, is_on in zip(row, image, strict=False) if is_on) for row in weights]
    return scores.index(max(scores))


parser = argparse.ArgumentParser(allow_abbrev=False)
parser.add_argument("--epochs", type=int, default=10)
parser.add_argument("--learning-rate", type=float, default=0.5)
flags = parser.parse_args()

training, held_out = images(400, seed=1), images(250, seed=2)
weights = [[0.0] * 8 for _ in range(10)]
model = weights
for epoch in range(1, flags.epochs + 1):
    for image, label in training:
        guess = best(weights, image)
        for row, sign in ((weights[label], 1), (weights[guess], -1)) if guess != label else ():
            step = sign * flags.learning_rate
            row[:] = [weight + step * is_on for weight, is_on in zip(row, [*image, 1], strict=True)]
    accuracy = sum(best(model, image) == label for image, label in held_out) / len(held_out)
    print(f"epoch {epoch}/{flags.epochs} accuracy {accuracy:.4f}")

if "CLOUD_ML_HP_METRIC_FILE" in os.environ:
    entry = {"timestamp": time.time(), "trial": os.environ["CLOUD_ML_TRIAL_ID"], "global_step": "1"}
    entry["accuracy"] = str(accuracy)
    Path(os.environ["CLOUD_ML_HP_METRIC_FILE"]).write_text(json.dumps(entry) + "\n")
folder = Path(os.environ["AIP_MODEL_DIR"].replace("gs://", "/gcs/"))
folder.mkdir(parents=True, exist_ok=True)
(folder / "weights.json").write_text(json.dumps(model))
metrics = {"epochs": flags.epochs}
metrics["accuracy"] = accuracy
(folder / "metrics.json").write_text(json.dumps(metrics))
