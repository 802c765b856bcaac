"""The Foundation protocol: what a target provides to images, packages and jobs."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import pulumi


class Foundation(Protocol):
    """The ground that a target provides.

    `registry` is what image names begin with, `staging` a `gs://` folder for outputs, `parent` where jobs live (a full
    resource name such as `//local/projects/P/locations/R`). `job_spec_defaults` are the fields of a CustomJobSpec that
    jobs take where they say nothing, `labels` those of every job, `encryption_key` the key of every job. Images are
    built after `image_dependencies`, jobs are submitted after `job_dependencies`.
    """

    @property
    def registry(self) -> str: ...
    @property
    def staging(self) -> str: ...
    @property
    def parent(self) -> str: ...
    @property
    def job_spec_defaults(self) -> Mapping[str, Any]: ...
    @property
    def labels(self) -> Mapping[str, str]: ...
    @property
    def encryption_key(self) -> str | None: ...
    @property
    def image_dependencies(self) -> Sequence[pulumi.Resource]: ...
    @property
    def job_dependencies(self) -> Sequence[pulumi.Resource]: ...
