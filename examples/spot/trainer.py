"""Train a network to tell two spirals apart, on machines that may be taken away: it goes on from its last checkpoint.

The network and its framework are in network.py.
"""

import argparse
import json
import os
import re
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

CHECKPOINT = "checkpoint"
stopping = False


def folder(location: str) -> Path:
    """Return the folder of a path or of a Cloud Storage URI: Vertex mounts `gs://bucket/x` at `/gcs/bucket/x`."""
    return Path(re.sub("^gs://", "/gcs/", location))


def flag_parser() -> argparse.ArgumentParser:
    """Return the parser of the trainer's flags."""
    parser = argparse.ArgumentParser(description=__doc__, usage=argparse.SUPPRESS, allow_abbrev=False)
    parser.add_argument("--steps", type=int, default=4000, help="steps in all, also if it was interrupted")
    parser.add_argument("--save-every", type=int, default=200, help="steps from one checkpoint to the next")
    parser.add_argument("--units", type=int, default=64, help="neurons in each hidden layer")
    parser.add_argument("--rate", type=float, default=0.003, help="step size of Adam")
    return parser


def spirals(seed: list[int], count: int) -> tuple[Any, Any]:
    """Return points of two spirals and which each is on, the same for the same seed."""
    from numpy import cos, float32, pi, sin, stack
    from numpy.random import default_rng

    source = default_rng(seed)
    labels = source.integers(0, 2, count)
    turns = source.uniform(0.5, 3.5, count)
    angle = pi * (turns + labels)
    points = stack([turns * cos(angle), turns * sin(angle)], axis=1) + source.normal(0, 0.15, (count, 2))
    return points.astype(float32), labels.astype(float32)


def train(flags: argparse.Namespace, checkpoints: Path, models: Path) -> None:
    """Train, from the last checkpoint if there is one, and save the model and metrics.json."""
    import network

    trained = network.Network(flags.units, flags.rate)
    last, first = checkpoints / CHECKPOINT, 0
    if last.exists():
        first = trained.load(last)
        print(f"goes on after step {first} of the checkpoint in {checkpoints}")

    def save(step: int) -> None:
        # A file that is cut off must not take the place of a whole one.
        unfinished = last.with_suffix(".unfinished")
        trained.save(unfinished, step)
        unfinished.replace(last)

    for step in range(first + 1, flags.steps + 1):
        # The step alone makes the batch: nothing about the data has to be in a checkpoint.
        loss = trained.step(*spirals([1, step], 128))
        if step % flags.save_every == 0 or step == flags.steps:
            save(step)
            print(f"step {step}/{flags.steps} loss {loss:.4f}")
        elif stopping:
            save(step)
            print(f"is stopped, and has saved step {step}")
            sys.exit(128 + signal.SIGTERM)

    trained.save(models / network.FILE, flags.steps)
    metrics = {**trained.measure(*spirals([2], 2000)), "steps": flags.steps, "stepsOfThisStart": flags.steps - first}
    (models / "metrics.json").write_text(json.dumps(metrics) + "\n")
    print(f"accuracy {metrics['accuracy']:.4f}, saved {network.FILE} and metrics.json in {models}")


def stop(_number: int, _frame: FrameType | None) -> None:
    """Let the training save its state after the step that it is in, and end."""
    global stopping
    stopping = True


def main() -> None:
    """Read the flags, make the folders, and train."""
    signal.signal(signal.SIGTERM, stop)
    flags = flag_parser().parse_args()
    checkpoints, models = (folder(os.environ.get(f"AIP_{name}_DIR", name.lower())) for name in ("CHECKPOINT", "MODEL"))
    for place in (checkpoints, models):
        place.mkdir(parents=True, exist_ok=True)
    train(flags, checkpoints, models)


if __name__ == "__main__":
    main()
