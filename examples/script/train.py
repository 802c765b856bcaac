"""Fits a line to points by gradient descent, with nothing but Python."""

import argparse
import json
import os
import random
from pathlib import Path


def points(count: int) -> list[tuple[float, float]]:
    """Points near y = 2 x + 1, the same in every run."""
    source = random.Random(0)
    return [(x, 2 * x + 1 + source.gauss(0, 0.05)) for x in (source.random() for _ in range(count))]


def fit(data: list[tuple[float, float]], epochs: int, rate: float) -> tuple[float, float]:
    """The slope and the intercept after so many passes over the data."""
    slope = intercept = 0.0
    for epoch in range(1, epochs + 1):
        loss = 0.0
        for x, y in data:
            error = slope * x + intercept - y
            loss += error * error
            slope -= rate * error * x
            intercept -= rate * error
        print(f"epoch {epoch}/{epochs} loss {loss / len(data):.5f}", flush=True)
    return slope, intercept


def model_folder() -> Path:
    """`AIP_MODEL_DIR` is a gs:// URI, and buckets lie below /gcs; without it the model stays beside the script."""
    given = os.environ.get("AIP_MODEL_DIR")
    folder = Path(given.replace("gs://", "/gcs/", 1)) if given else Path(__file__).with_name("model")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--learning-rate", type=float, default=0.1)
    flags = parser.parse_args()
    slope, intercept = fit(points(100), flags.epochs, flags.learning_rate)
    model = model_folder() / "model.json"
    model.write_text(json.dumps({"slope": slope, "intercept": intercept}))
    print(f"y = {slope:.2f} x + {intercept:.2f}, saved in {model}")
