"""The service's words for an image that cannot be read."""

import re

from vertex_emulator.names import Location

_ARTIFACT_REGISTRY = re.compile(
    r"(?P<location>[a-z0-9-]+)-docker\.pkg\.dev/(?P<project>[^/]+)/(?P<repository>[^/]+)/.+"
)


def message(image: str, reason: str, location: Location) -> str:
    """What a job in `location` fails with; `reason` is Docker's, and follows the service's text.

    The text for Artifact Registry is one that real jobs fail with, whether the repository lacks the permission, the
    image, or is none at all.
    """
    found = _ARTIFACT_REGISTRY.fullmatch(image)
    if found is None:
        return f"The image {reason}."
    return (
        f"Vertex AI Service Agent service-{location.number}@gcp-sa-aiplatform-cc.iam.gserviceaccount.com does not have "
        f"permission to access Artifact Registry repository projects/{found['project']}/locations/{found['location']}"
        f"/repositories/{found['repository']}. On this machine: {reason}."
    )
