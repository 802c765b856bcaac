"""The Foundation protocol: what a target provides to images, packages and jobs."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import pulumi

from vertex_api.schedules import ScheduleRequest

from .program_job_validation import ProgramJobs


class Foundation(Protocol):
    """The ground that a target provides.

    `image_uri_prefix` is what image URIs begin with, `staging_folder_uri` a `gs://` folder for outputs,
    `full_location_name` where jobs live, such as `//local/projects/P/locations/R`. `job_spec_defaults` are the fields
    of a CustomJobSpec that jobs take where they say nothing; every job has `job_labels` and `encryption_key`.
    `image_builder_config` says what builds images: `{"cloudBuild": {…}}` with the fields of
    `declaration_types.CloudBuild`, the `project` of builds and a `sourceFolder` in a bucket; `None` for this machine.
    `tensorboard_name` is the name of a TensorBoard that is created here, for jobs that refer to it.
    `create_schedule` creates a schedule as the target has them.
    Images are built after `image_dependencies`, jobs are submitted after `job_dependencies`. `program_jobs`
    validates the jobs that a program creates by hand, by the rules of the stack.
    """

    @property
    def image_uri_prefix(self) -> str: ...
    @property
    def staging_folder_uri(self) -> str: ...
    @property
    def full_location_name(self) -> str: ...
    @property
    def job_spec_defaults(self) -> Mapping[str, Any]: ...
    @property
    def job_labels(self) -> Mapping[str, str]: ...
    @property
    def encryption_key(self) -> str | None: ...
    @property
    def tensorboard_name(self) -> pulumi.Input[str] | None: ...
    @property
    def image_builder_config(self) -> Mapping[str, Any] | None: ...
    @property
    def image_dependencies(self) -> Sequence[pulumi.Resource]: ...
    @property
    def job_dependencies(self) -> Sequence[pulumi.Resource]: ...
    @property
    def program_jobs(self) -> ProgramJobs: ...
    def create_schedule(
        self, name: str, request: pulumi.Input[ScheduleRequest], opts: pulumi.ResourceOptions
    ) -> pulumi.Output[Mapping[str, Any]]:
        """Create what runs a schedule, and return its status as `Schedule.status` describes it."""
