"""The choice between targets. Nothing downstream asks which one it is."""

from ..runtime.foundation_protocol import Foundation
from ..settings.settings import Settings
from .local import LocalFoundation


def create_foundation(settings: Settings) -> Foundation:
    """Create the resources of a stack's target, `local` or `gcp`, on which images and jobs depend."""
    if settings.cloud is None:
        return LocalFoundation(settings)
    # Imported here, because a local stack does not need Google Cloud's resources.
    from .gcp.foundation import GcpFoundation

    return GcpFoundation(settings, settings.cloud)
