"""Two jobs: `pretrain` makes a small language model of prose, `adapt` trains an adapter that turns it to Python code.

The texts are those that come with Python, so nothing is downloaded: its manual, and the source of its library.
"""

import argparse
import inspect
import json
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

import jax
import model
import numpy

CHECKPOINT = "checkpoint.npz"


def folder(location: str) -> Path:
    """Return the folder of a path or of a Cloud Storage URI: Vertex mounts `gs://bucket/x` at `/gcs/bucket/x`."""
    return Path(re.sub("^gs://", "/gcs/", location))


def flag_parser() -> argparse.ArgumentParser:
    """Return the parser of the trainer's flags."""
    parser = argparse.ArgumentParser(description=__doc__, usage=argparse.SUPPRESS, allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, rate in (("pretrain", 0.003), ("adapt", 0.02)):
        command = commands.add_parser(name, usage=argparse.SUPPRESS, allow_abbrev=False)
        command.add_argument("--steps", type=int, default=100, help="steps in all, also if it was interrupted")
        command.add_argument("--rate", type=float, default=rate, help="step size of Adam")
        command.add_argument("--save-every", type=int, default=25, help="steps from one checkpoint to the next")
    command.add_argument("--base", type=folder, required=True, help="folder of the model, a path or a gs:// URI")
    command.add_argument("--rank", type=int, default=4, help="columns of the thin matrices")
    return parser


def prose() -> str:
    """Return the manual of Python."""
    from pydoc_data.topics import topics

    return "".join(topics.values())


def code() -> str:
    """Return the source of some modules of Python's library."""
    return "".join(map(inspect.getsource, (argparse, inspect)))


def texts(source: str, step: int, count: int = 16) -> Any:
    """Return the batch of a step: rows of codes, from the first nine tenths of a text; from the last one for step 0."""
    codes = numpy.frombuffer(source.encode("ascii", "replace"), numpy.uint8).astype(numpy.int32)
    border = len(codes) * 9 // 10
    codes = codes[:border] if step else codes[border:]
    starts = numpy.random.default_rng(step).integers(0, len(codes) - model.CONTEXT - 1, count)
    return numpy.stack([codes[start : start + model.CONTEXT + 1] for start in starts])


class Training:
    """A training of a model, or of the adapter of a `frozen` one, which goes on from its last checkpoint."""

    def __init__(self, trained: model.Arrays, frozen: model.Arrays, checkpoints: Path) -> None:
        zeros = {name: numpy.zeros_like(each) for name, each in trained.items()}
        self.trained, self.frozen = trained, frozen
        self._state, self._first = {"mean": zeros, "square": zeros}, 0
        self._file = checkpoints / CHECKPOINT
        if self._file.exists():
            saved = load(self._file)
            self._first = int(saved.pop("step"))
            self.trained = {name: saved[name] for name in trained}
            self._state = {part: {name: saved[f"{part}/{name}"] for name in trained} for part in self._state}
            print(f"goes on after step {self._first}")

    def run(self, source: str, steps: int, rate: float, save_every: int) -> None:
        """Train on a text, and save a checkpoint every so many steps."""
        for number in range(self._first + 1, steps + 1):
            batch = texts(source, number)
            self.trained, self._state, loss = model.step(
                self.trained, self._state, self.frozen, batch, float(number), rate
            )
            if number % save_every == 0 or number == steps:
                parts = {f"{part}/{name}": each for part, of in self._state.items() for name, each in of.items()}
                save(self._file, {**self.trained, **parts, "step": number})
                print(f"step {number}/{steps} loss {float(loss):.4f}")

    def held_out_loss(self, source: str) -> float:
        """Return the loss on the part of a text that no step has seen."""
        weights = model.merged(self.frozen, self.trained) if self.frozen else self.trained
        return float(model.loss(weights, texts(source, 0, 128)))


def save(file: Path, arrays: model.Arrays) -> None:
    """Write arrays to a file, which is whole or absent."""
    unfinished = file.with_suffix(".unfinished")
    with unfinished.open("wb") as stream:
        numpy.savez(stream, **{name: numpy.asarray(each) for name, each in arrays.items()})
    unfinished.replace(file)


def load(file: Path) -> model.Arrays:
    """Return the arrays of a file."""
    with numpy.load(file) as saved:
        return dict(saved)


def size(arrays: model.Arrays) -> int:
    """Return how many numbers there are in arrays."""
    return sum(each.size for each in arrays.values())


def main() -> None:
    """Read the flags, train what they say, and save it with metrics.json."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    parser = flag_parser()
    flags = parser.parse_args()
    checkpoints, models = (folder(os.environ.get(f"AIP_{name}_DIR", name.lower())) for name in ("CHECKPOINT", "MODEL"))
    for place in (checkpoints, models):
        place.mkdir(parents=True, exist_ok=True)
    metrics: dict[str, Any]
    if flags.command == "pretrain":
        training = Training(model.base_weights(), {}, checkpoints)
        training.run(prose(), flags.steps, flags.rate, flags.save_every)
        name, metrics = "base.npz", {"loss": training.held_out_loss(prose())}
    else:
        file = flags.base / "base.npz"
        try:
            base = load(file)
        except OSError as error:
            parser.error(f"argument --base: cannot read {file}: {error.strerror}")
        training = Training(model.adapter_weights(flags.rank), base, checkpoints)
        before = float(model.loss(base, texts(code(), 0, 128)))
        training.run(code(), flags.steps, flags.rate, flags.save_every)
        name, metrics = "adapter.npz", {"loss": training.held_out_loss(code()), "lossWithout": before}
        metrics["baseNumbers"] = size(base)
    save(models / name, jax.device_get(training.trained))
    metrics |= {"numbers": size(training.trained), "bytes": (models / name).stat().st_size, "steps": flags.steps}
    (models / "metrics.json").write_text(json.dumps(metrics) + "\n")
    print(f"loss {metrics['loss']:.4f} on unseen text, saved {name} and metrics.json in {models}")


if __name__ == "__main__":
    main()
