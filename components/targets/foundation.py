"""The foundation of a stack's target, and the reports that its previews end with.

Nothing downstream asks which target it is.
"""

from collections.abc import Mapping

from vertex_api.job import Job

from ..preview.accelerator_availability_warnings import warn_of_unavailable_accelerators
from ..preview.cost_and_needed_quota_table import show_cost
from ..preview.quota_check import check_quotas
from ..runtime.foundation import Foundation
from ..runtime.gcp_imports import defer_pulumi_gcp
from ..runtime.program_job_validation import JobKey
from ..settings.settings import Settings
from ..settings.settings_with_program_jobs import copy_settings_with_program_jobs
from .local import LocalFoundation


def create_foundation(settings: Settings) -> Foundation:
    """Create the resources of a stack's target, `local` or `gcp`, on which images and jobs depend.

    With target `gcp`, previews report cost, quotas and accelerators as soon as the jobs of the program are valid.
    """
    if settings.cloud is None:
        return LocalFoundation("local", settings)
    # Imported here, because a local stack does not need Google Cloud's resources.
    defer_pulumi_gcp()
    from .gcp.foundation import GcpFoundation

    foundation = GcpFoundation("gcp", settings)

    def report(program_specs: Mapping[JobKey, Job]) -> None:
        whole = copy_settings_with_program_jobs(settings, program_specs)
        show_cost(whole)
        check_quotas(whole)
        warn_of_unavailable_accelerators(whole)

    foundation.program_jobs.on_valid_specs = report
    return foundation
