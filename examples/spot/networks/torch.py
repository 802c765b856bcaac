"""The network in PyTorch: all of this example that depends on the framework."""

from pathlib import Path
from typing import Any

import torch
from torch.nn import Linear, Sequential, Tanh
from torch.nn.functional import binary_cross_entropy_with_logits

FILE = "model.pt"


class Network:
    """A network of two hidden layers with its optimizer, Adam."""

    def __init__(self, units: int, rate: float) -> None:
        torch.manual_seed(0)
        self._layers = Sequential(Linear(2, units), Tanh(), Linear(units, units), Tanh(), Linear(units, 1))
        self._optimizer = torch.optim.Adam(self._layers.parameters(), lr=rate)

    def step(self, points: Any, labels: Any) -> float:
        """Take a step, and return the loss before it."""
        loss = binary_cross_entropy_with_logits(self._scores(points), torch.tensor(labels))
        self._optimizer.zero_grad()
        loss.backward()
        self._optimizer.step()
        return float(loss.detach())

    def measure(self, points: Any, labels: Any) -> dict[str, float]:
        """Return the loss, and the share of points whose side it knows."""
        with torch.no_grad():
            scores, wanted = self._scores(points), torch.tensor(labels)
            accuracy = ((scores > 0) == (wanted > 0)).float().mean()
            return {"accuracy": float(accuracy), "loss": float(binary_cross_entropy_with_logits(scores, wanted))}

    def _scores(self, points: Any) -> torch.Tensor:
        scores: torch.Tensor = self._layers(torch.tensor(points))[:, 0]
        return scores

    def save(self, file: Path, step: int) -> None:
        """Write all that a later `load` needs to go on: weights, the optimizer's state, and the step."""
        state = {"layers": self._layers.state_dict(), "optimizer": self._optimizer.state_dict(), "step": step}
        torch.save(state, file)

    def load(self, file: Path) -> int:
        """Become what was saved, and return its step."""
        state = torch.load(file, weights_only=True)
        self._layers.load_state_dict(state["layers"])
        self._optimizer.load_state_dict(state["optimizer"])
        return int(state["step"])
