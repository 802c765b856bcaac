"""The second job: reads the model of the first, measures it on points that it has not seen, and fails if it is bad."""

import argparse
import json
import os
import sys

from data import folder, points, save, stop_at_once


def main() -> None:
    """Read the flags, measure the model, and exit with 1 if it is worse than wanted."""
    stop_at_once()
    parser = argparse.ArgumentParser(description=__doc__, usage=argparse.SUPPRESS, allow_abbrev=False)
    parser.add_argument("--model", type=folder, required=True, help="folder of the model, a path or a gs:// URI")
    parser.add_argument("--at-least", type=float, default=0.85, help="the accuracy that is good enough")
    flags = parser.parse_args()
    file = flags.model / "model.json"
    try:
        model = json.loads(file.read_text())
    except OSError as error:
        parser.error(f"argument --model: cannot read {file}: {error.strerror}")

    (a, b), c = model["weights"], model["bias"]
    unseen = points(2000, seed=2)
    accuracy = sum((a * x + b * y + c > 0) == label for x, y, label in unseen) / len(unseen)
    place = folder(os.environ.get("AIP_MODEL_DIR", "check"))
    save(place, "metrics.json", {"accuracy": accuracy, "points": len(unseen)})
    print(f"accuracy {accuracy:.4f} on {len(unseen)} unseen points")
    if accuracy < flags.at_least:
        sys.exit(f"check.py: error: accuracy {accuracy:.4f} is below {flags.at_least}; train longer, or ask for less")


if __name__ == "__main__":
    main()
