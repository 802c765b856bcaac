"""Faults of the requests of workflows, drawn from a seed: refused, lost before or after they are handled, outages."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.standins.workflows.executions import Clock
from tests.standins.workflows.expressions import WorkflowError
from tests.standins.workflows.training_api import http_error

UNSENT = (429, 500, 503, "AuthError", "ConnectionFailedError")
"""Failures of requests that nothing comes of: codes of answers, and tags of what has no answer."""
LOST = (500, 503, "ConnectionError", "TimeoutError")
"""Failures of requests that are handled all the same."""


@dataclass
class Faults:
    """What `Workflow.send` is, with faults: each has a number, which the error that it ends in can be known by.

    `rate` is the share of requests that fail by themselves; between the times of `outage` all do.
    """

    draw: random.Random
    clock: Clock
    rate: float
    outage: tuple[float, float] = (0.0, 0.0)
    raised: list[str] = field(default_factory=list)

    def __call__(self, _url: str, get_answer: Callable[[], Any]) -> Any:
        self._pass(2.0)
        is_out = self.outage[0] <= self.clock.now < self.outage[1]
        if not is_out and self.draw.random() >= self.rate:
            return get_answer()
        if self.draw.random() < 0.5:
            raise self._fail(UNSENT)
        get_answer()
        self._pass(5.0)
        raise self._fail(LOST)

    def _pass(self, most: float) -> None:
        """Let time go by, in which other executions go on."""
        self.clock.sleep(self.draw.uniform(0.01, most))

    def _fail(self, kinds: tuple[int | str, ...]) -> WorkflowError:
        kind, text = self.draw.choice(kinds), f"fault {len(self.raised)}"
        self.raised.append(f"{text}: {kind}")
        if isinstance(kind, int):
            return http_error(kind, {"error": {"code": kind, "message": text}})
        return WorkflowError({"message": text, "tags": [kind]})
