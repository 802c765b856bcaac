"""Reduction Server: its image for a region, and how a pool of it is known."""

import pytest

from vertex_api import jobspec

IMAGE = "docker.pkg.dev/vertex-ai-restricted/training/reductionserver"


@pytest.mark.parametrize(
    ("region", "place"),
    [
        ("us-central1", "us"),
        ("northamerica-northeast1", "us"),
        ("southamerica-east1", "us"),
        ("", "us"),
        ("europe-west4", "europe"),
        ("me-west1", "europe"),
        ("africa-south1", "europe"),
        ("asia-southeast1", "asia"),
        ("australia-southeast1", "asia"),
    ],
)
def test_the_image_comes_from_the_nearest_location(region: str, place: str) -> None:
    assert jobspec.reduction_server_image(region) == f"{place}-{IMAGE}:latest"


@pytest.mark.parametrize("uri", [f"us-{IMAGE}", f"asia-{IMAGE}:latest", f"europe-{IMAGE}@sha256:{'0' * 64}"])
def test_any_location_and_tag_is_recognized(uri: str) -> None:
    assert jobspec.is_reduction_server({"containerSpec": {"imageUri": uri}})


@pytest.mark.parametrize("uri", [f"us-{IMAGE}-2", f"mirror/us-{IMAGE}", "trainer:1"])
def test_another_image_is_not_taken_for_it(uri: str) -> None:
    assert not jobspec.is_reduction_server({"containerSpec": {"imageUri": uri}})


def test_a_pool_without_container_is_no_reduction_server() -> None:
    assert not jobspec.is_reduction_server({})
