"""The choice of a target: its foundation is decided here, and nothing downstream asks which one it is."""

from ..runtime.foundation import Foundation
from ..settings.settings import Settings
from .local import LocalFoundation


def foundation(settings: Settings) -> Foundation:
    """The foundation of a stack's target."""
    if settings.cloud is None:
        return LocalFoundation(settings)
    # Here, as a local stack need not load Google Cloud's resources.
    from .gcp.foundation import GcpFoundation

    return GcpFoundation(settings, settings.cloud)
