"""Fits a line to points on several replicas: each has a share of the points, and all take the same averaged steps.

Nothing but Python's standard library is needed. Where the others are stands in the environment that Vertex AI sets.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import time
from pathlib import Path
from typing import IO

PATIENCE_SECONDS = 60


class Group:
    """All replicas of the job, in order of rank; the first one averages for the others."""

    def __init__(self) -> None:
        self.rank = int(os.environ["RANK"])
        self.size = int(os.environ["WORLD_SIZE"])
        host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        self._peers = _accepted(port, self.size - 1) if self.rank == 0 else [_connected(host, port, self.rank)]

    def average(self, values: list[float]) -> list[float]:
        """The mean of what all replicas give, the same on each."""
        if self.rank == 0:
            rows = [values, *(json.loads(peer.readline()) for peer in self._peers)]
            mean = [sum(column) / self.size for column in zip(*rows, strict=True)]
            for peer in self._peers:
                _say(peer, mean)
            return mean
        (chief,) = self._peers
        _say(chief, values)
        return json.loads(chief.readline())


def train(group: Group, steps: int, points: int, rate: float) -> list[float]:
    """Slope and intercept of y = 3x + 2, found by gradient descent."""
    xs = [i / points for i in range(points)][group.rank :: group.size]
    line = [0.0, 0.0]
    for _ in range(steps):
        errors = [line[0] * x + line[1] - (3 * x + 2) for x in xs]
        slope = 2 * sum(error * x for error, x in zip(errors, xs, strict=True)) / len(xs)
        intercept = 2 * sum(errors) / len(xs)
        gradient = group.average([slope, intercept])
        line = [value - rate * change for value, change in zip(line, gradient, strict=True)]
    return line


def _accepted(port: int, count: int) -> list[IO[str]]:
    peers = {}
    with socket.create_server(("", port)) as server:
        server.settimeout(PATIENCE_SECONDS)
        while len(peers) < count:
            peer = server.accept()[0].makefile("rw")
            peers[json.loads(peer.readline())] = peer
    return [peers[rank] for rank in sorted(peers)]


def _connected(host: str, port: int, rank: int) -> IO[str]:
    """A connection to the first replica, which may start later than the others."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            chief = socket.create_connection((host, port), timeout=PATIENCE_SECONDS).makefile("rw")
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            _say(chief, rank)
            return chief


def _say(peer: IO[str], message: object) -> None:
    peer.write(json.dumps(message) + "\n")
    peer.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--points", type=int, default=999, help="more than there are replicas")
    parser.add_argument("--rate", type=float, default=0.5)
    options = parser.parse_args()

    group = Group()
    slope, intercept = train(group, options.steps, options.points, options.rate)
    print(f"replica {group.rank} of {group.size}: y = {slope:.4f} x + {intercept:.4f}", flush=True)
    if "AIP_MODEL_DIR" in os.environ:
        folder = Path(os.environ["AIP_MODEL_DIR"].replace("gs://", "/gcs/", 1))
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"line-{group.rank}.json").write_text(json.dumps([slope, intercept]))
    # The job ends with the first replica: it waits until the others have written theirs.
    group.average([0.0])


if __name__ == "__main__":
    main()
