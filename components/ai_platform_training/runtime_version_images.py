"""Images of runtime versions: Vertex AI's prebuilt ones with the TensorFlow of AI Platform Training's.

Google's page on prebuilt containers for training (read 2026-11-21): images by TensorFlow version, in three regions. All
of these are past their support; scikit-learn, XGBoost and PyTorch have images of their own.
"""

RUNTIMES = ("1.15", "2.1", "2.2", "2.3", "2.4", "2.5", "2.6", "2.7", "2.8", "2.9", "2.11")
"""Versions of TensorFlow that have a prebuilt image with Python 3.7, as AI Platform's runtimes of the same number."""

PAGE = "https://cloud.google.com/vertex-ai/docs/training/pre-built-containers"


def get_executor_image_uri_of_same_next_or_newest_version(runtime_version: str, region: str, has_gpu: bool) -> str:
    """Return the URI of the prebuilt image of a runtime version; of the next version that has one, or of the newest."""
    places = {"europe": "europe", "asia": "asia", "australia": "asia"}
    place = next((place for start, place in places.items() if region.startswith(start)), "us")
    version = next(
        (known for known in RUNTIMES if _parse_version(known) >= _parse_version(runtime_version)), RUNTIMES[-1]
    )
    image = f"tf-{'gpu' if has_gpu else 'cpu'}.{version.replace('.', '-')}"
    return f"{place}-docker.pkg.dev/vertex-ai/training/{image}:latest"


def _parse_version(version: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdecimal() else 0 for part in version.split("."))
