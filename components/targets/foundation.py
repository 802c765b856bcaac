"""The foundation of a stack's target, and the reports that its previews end with.

Nothing downstream asks which target it is.
"""

from ..plan.program import Foundation
from ..preview.reports import show_reports
from ..runtime.gcp_imports import defer_pulumi_gcp
from ..settings.settings import Settings
from .local import LocalFoundation


def create_foundation(settings: Settings) -> Foundation:
    """Create the resources of a stack's target, `local` or `gcp`, on which images and jobs depend.

    With target `gcp`, previews report on all jobs as soon as those of the program are valid.
    """
    if settings.cloud is None:
        return LocalFoundation("local", settings)
    # Imported here, because a local stack does not need Google Cloud's resources.
    defer_pulumi_gcp()
    from .gcp.foundation import GcpFoundation

    foundation = GcpFoundation("gcp", settings)
    foundation.program.on_valid = show_reports
    return foundation
