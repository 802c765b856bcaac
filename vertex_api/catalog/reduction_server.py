"""Reduction Server: Google's service for all-reduce between the GPUs of several machines, run as a pool of its own.

Source: Google's page on distributed training, which names one image in three places under one tag, `latest`.
"""

import re
from collections.abc import Mapping
from typing import Any

POOL_INDEX = 2
"""The only worker pool that can run it."""

_IMAGE = "{location}-docker.pkg.dev/vertex-ai-restricted/training/reductionserver:latest"
_ANY_IMAGE = re.compile(r"[a-z]+-docker\.pkg\.dev/vertex-ai-restricted/training/reductionserver([:@].*)?")
_LOCATIONS = {"europe": "europe", "me": "europe", "africa": "europe", "asia": "asia", "australia": "asia"}


def get_image_uri(region: str) -> str:
    """Return the URI of the image in the multi-region (us, europe, asia) nearest to a region such as `europe-west4`."""
    return _IMAGE.format(location=_LOCATIONS.get(region.partition("-")[0], "us"))


def is_reduction_server(pool: Mapping[str, Any]) -> bool:
    """Return whether a WorkerPoolSpec runs Reduction Server, with an image of any location and tag."""
    return _ANY_IMAGE.fullmatch(pool.get("containerSpec", {}).get("imageUri", "")) is not None
