"""Reduction Server: Google's service for all-reduce between the GPUs of several machines, run as a pool of its own.

Source: Google's page on distributed training, which names one image in three places under one tag, `latest`.
"""

import re
from collections.abc import Mapping
from typing import Any

POOL_INDEX = 2
"""The only pool that it may be."""

_IMAGE = "{place}-docker.pkg.dev/vertex-ai-restricted/training/reductionserver:latest"
_ANY = re.compile(r"[a-z]+-docker\.pkg\.dev/vertex-ai-restricted/training/reductionserver([:@].*)?")
_PLACES = {"europe": "europe", "me": "europe", "africa": "europe", "asia": "asia", "australia": "asia"}


def get_image_uri(region: str) -> str:
    """The image in the place of the three (us, europe, asia) that is nearest to a region such as `europe-west4`."""
    return _IMAGE.format(place=_PLACES.get(region.partition("-")[0], "us"))


def is_reduction_server(pool: Mapping[str, Any]) -> bool:
    """Whether a WorkerPoolSpec runs it, whatever the place and the tag of its image."""
    return _ANY.fullmatch(pool.get("containerSpec", {}).get("imageUri", "")) is not None
