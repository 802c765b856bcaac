"""The same network with numpy alone: a stand-in for PyTorch, where an image of gigabytes is not worth the wait."""

from pathlib import Path
from typing import Any

import numpy

FILE = "model.npz"


class Network:
    """A network of two hidden layers with its optimizer, Adam."""

    def __init__(self, units: int, rate: float) -> None:
        source = numpy.random.default_rng(0)
        sizes = [(2, units), (units, units), (units, 1)]
        self._layers = [source.uniform(-1, 1, size) / size[0] ** 0.5 for size in sizes]
        self._layers += [numpy.zeros(outputs) for _, outputs in sizes]
        self._means, self._squares = ([numpy.zeros_like(each) for each in self._layers] for _ in range(2))
        self._rate, self._taken = rate, 0

    def step(self, points: Any, labels: Any) -> float:
        """Take a step, and return the loss before it."""
        inputs = self._activations(points)
        scores = inputs.pop()[:, 0]
        loss = _loss(scores, labels)
        slopes = ((1 / (1 + numpy.exp(-scores)) - labels) / len(labels))[:, None]
        gradients: list[Any] = [None] * len(self._layers)
        for index in (2, 1, 0):
            gradients[index], gradients[index + 3] = inputs[index].T @ slopes, slopes.sum(0)
            slopes = slopes @ self._layers[index].T * (1 - inputs[index] ** 2)
        self._taken += 1
        for index, gradient in enumerate(gradients):
            self._means[index] += 0.1 * (gradient - self._means[index])
            self._squares[index] += 0.001 * (gradient**2 - self._squares[index])
            mean = self._means[index] / (1 - 0.9**self._taken)
            square = self._squares[index] / (1 - 0.999**self._taken)
            self._layers[index] -= self._rate * mean / (square**0.5 + 1e-8)
        return loss

    def measure(self, points: Any, labels: Any) -> dict[str, float]:
        """Return the loss, and the share of points whose side it knows."""
        scores = self._activations(points)[-1][:, 0]
        return {"accuracy": float(((scores > 0) == (labels > 0)).mean()), "loss": _loss(scores, labels)}

    def _activations(self, points: Any) -> list[Any]:
        """Return what goes into each layer, and the scores."""
        found = [points]
        for index in range(3):
            sums = found[-1] @ self._layers[index] + self._layers[index + 3]
            found.append(numpy.tanh(sums) if index < 2 else sums)
        return found

    def save(self, file: Path, step: int) -> None:
        """Write all that a later `load` needs to go on: weights, the optimizer's state, and the step."""
        arrays = [*self._layers, *self._means, *self._squares]
        with file.open("wb") as stream:
            numpy.savez(stream, *arrays, step=step, taken=self._taken)

    def load(self, file: Path) -> int:
        """Become what was saved, and return its step."""
        with numpy.load(file) as saved:
            arrays = [saved[f"arr_{index}"] for index in range(3 * len(self._layers))]
            self._taken, step = int(saved["taken"]), int(saved["step"])
        count = len(self._layers)
        self._layers, self._means, self._squares = arrays[:count], arrays[count : 2 * count], arrays[2 * count :]
        return step


def _loss(scores: Any, labels: Any) -> float:
    return float(numpy.mean(numpy.logaddexp(0, scores) - labels * scores))
