"""Train one network on several replicas with JAX: each has its share of every batch, and all take the same steps.

A replica with several GPUs uses all of them.
"""

import argparse
import json
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

import jax
import numpy
from jax import numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec

Weights = list[Any]


def folder(location: str) -> Path:
    """Return the folder of a path or of a Cloud Storage URI: Vertex mounts `gs://bucket/x` at `/gcs/bucket/x`."""
    return Path(re.sub("^gs://", "/gcs/", location))


def join() -> tuple[int, int]:
    """Join the other replicas, and return the number of this one and of all; alone where there is no job around it.

    JAX waits for all of them, for five minutes unless it is told otherwise.
    """
    rank, size = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    if size > 1:
        chief = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
        jax.distributed.initialize(chief, num_processes=size, process_id=rank)
    return rank, size


def points(step: int, count: int) -> tuple[Any, Any]:
    """Return the batch of a step, the same on every replica: places on a plane, and the height of a wave there."""
    places = numpy.random.default_rng(step).uniform(-1, 1, (count, 2)).astype(numpy.float32)
    return places, numpy.sin(3 * places[:, 0]) * numpy.cos(2 * places[:, 1])


def first_weights(units: int) -> Weights:
    """Return the weights that all replicas begin with: they are equal because the seed is."""
    source, sizes = numpy.random.default_rng(0), [(2, units), (units, units), (units, 1)]
    layers = [source.normal(0, size[0] ** -0.5, size).astype(numpy.float32) for size in sizes]
    return [*layers, *(numpy.zeros(size[1], numpy.float32) for size in sizes)]


def loss(weights: Weights, places: Any, heights: Any) -> Any:
    """Return the mean squared error over the whole batch, of which each replica has a share."""
    found = places
    for index in range(3):
        found = found @ weights[index] + weights[index + 3]
        found = jnp.tanh(found) if index < 2 else found
    return jnp.mean((found[:, 0] - heights) ** 2)


@jax.jit
def step(weights: Weights, momentum: Weights, places: Any, heights: Any) -> tuple[Weights, Weights, Any]:
    """Take a step; the mean over a batch that is spread over replicas makes JAX add their gradients up."""
    before, gradients = jax.value_and_grad(loss)(weights, places, heights)
    momentum = [0.9 * old + new for old, new in zip(momentum, gradients, strict=True)]
    return [each - 0.05 * change for each, change in zip(weights, momentum, strict=True)], momentum, before


def main() -> None:
    """Read the flags, join the others, train, and let the first replica save the model."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    parser = argparse.ArgumentParser(description=__doc__, usage=argparse.SUPPRESS, allow_abbrev=False)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch", type=int, default=240, help="points of a step, in all")
    parser.add_argument("--units", type=int, default=32, help="neurons in each hidden layer")
    flags = parser.parse_args()

    rank, size = join()
    if flags.batch % jax.device_count():
        parser.error(f"argument --batch: {flags.batch} is no multiple of {jax.device_count()}, the number of devices")
    mesh = jax.make_mesh((jax.device_count(),), ("device",))
    everywhere, spread = NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, PartitionSpec("device"))

    def shared(value: Any) -> Any:
        return jax.make_array_from_process_local_data(everywhere, value)

    share = slice(rank * flags.batch // size, (rank + 1) * flags.batch // size)
    weights = [shared(each) for each in first_weights(flags.units)]
    momentum = [shared(numpy.zeros(each.shape, numpy.float32)) for each in weights]
    for number in range(1, flags.steps + 1):
        batch = (jax.make_array_from_process_local_data(spread, each[share]) for each in points(number, flags.batch))
        weights, momentum, before = step(weights, momentum, *batch)
        if number % 25 == 0 or number == flags.steps:
            print(f"replica {rank} of {size}: step {number}/{flags.steps} loss {float(before):.6f}")

    if rank == 0:
        place = folder(os.environ.get("AIP_MODEL_DIR", "model"))
        place.mkdir(parents=True, exist_ok=True)
        numpy.savez(place / "model.npz", *map(numpy.asarray, weights))
        metrics = {"loss": float(before), "replicas": size, "steps": flags.steps}
        (place / "metrics.json").write_text(json.dumps(metrics) + "\n")
        print(f"saved model.npz and metrics.json in {place}")
    if size > 1:
        jax.distributed.shutdown()  # waits for the others: the job ends with the first replica


if __name__ == "__main__":
    main()
