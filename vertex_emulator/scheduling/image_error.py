"""The service's error message for an image that cannot be read."""

import re

from vertex_emulator.locations_and_ids import Location

_ARTIFACT_REGISTRY = re.compile(
    r"(?P<location>[a-z0-9-]+)-docker\.pkg\.dev/(?P<project>[^/]+)/(?P<repository>[^/]+)/.+"
)


def render_image_error(image: str, reason: str, location: Location) -> str:
    """Render the error of a job in `location`: the service's text, then Docker's `reason`.

    Real jobs fail with this text for Artifact Registry whether the permission, the image or the repository is missing.
    """
    match = _ARTIFACT_REGISTRY.fullmatch(image)
    if match is None:
        return f"The image {reason}."
    return (
        f"Vertex AI Service Agent service-{location.project_number}@gcp-sa-aiplatform-cc.iam.gserviceaccount.com does "
        f"not have permission to access Artifact Registry repository projects/{match['project']}/locations/"
        f"{match['location']}/repositories/{match['repository']}. On this machine: {reason}."
    )
