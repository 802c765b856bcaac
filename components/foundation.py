"""What jobs of every target stand on: decided here, and asked for nowhere else."""

from typing import Protocol

import pulumi

from components.local import LocalFoundation
from components.settings import Settings


class Foundation(Protocol):
    """The ground that a target provides.

    `registry` is what image names begin with, `staging` a `gs://` folder for outputs, `parent` where jobs live (a full
    resource name such as `//local/projects/P/locations/R`), `resource` what jobs depend on.
    """

    @property
    def registry(self) -> str: ...
    @property
    def staging(self) -> str: ...
    @property
    def parent(self) -> str: ...
    @property
    def resource(self) -> pulumi.Resource: ...


def foundation(settings: Settings) -> Foundation:
    """The foundation of a stack's target."""
    return LocalFoundation(settings)
