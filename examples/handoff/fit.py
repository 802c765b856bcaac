"""The first job: fits a logistic regression to points, and saves it as model.json in AIP_MODEL_DIR."""

import argparse
import os
from math import exp

from data import folder, points, save, stop_at_once


def main() -> None:
    """Read the flags, fit, and save the model."""
    stop_at_once()
    parser = argparse.ArgumentParser(description=__doc__, usage=argparse.SUPPRESS, allow_abbrev=False)
    parser.add_argument("--passes", type=int, default=20, help="passes over the points")
    parser.add_argument("--points", type=int, default=2000, help="points to fit")
    flags = parser.parse_args()

    known = points(flags.points, seed=1)
    a = b = c = 0.0
    for number in range(1, flags.passes + 1):
        wrong = 0
        for x, y, label in known:
            chance = 1 / (1 + exp(-(a * x + b * y + c)))
            a, b, c = (value + 0.01 * (label - chance) * of for value, of in ((a, x), (b, y), (c, 1.0)))
            wrong += (chance > 0.5) != label
        accuracy = 1 - wrong / len(known)
        print(f"pass {number}/{flags.passes} accuracy {accuracy:.4f}")

    place = folder(os.environ.get("AIP_MODEL_DIR", "model"))
    save(place, "model.json", {"weights": [a, b], "bias": c})
    save(place, "metrics.json", {"accuracy": accuracy, "points": len(known)})
    print(f"saved model.json in {place}")


if __name__ == "__main__":
    main()
