"""Which builder an image has, and with which options: those of the stack, and its own."""

from typing import Any

import pytest
from vertex_training.errors import BuilderUnusable
from vertex_training.images.builder_choice_and_options import create_cloud_build_input_or_none
from vertex_training.schema import shapes

VERSION, OTHER = (f"projects/p/secrets/{name}/versions/1" for name in ("pip", "other"))
FOUNDATION: dict[str, Any] = {
    "cloudBuild": {
        "project": "acme",
        "region": "europe-west4",
        "serviceAccount": "b@acme.iam.gserviceaccount.com",
        "sourceFolder": "gs://acme/sources",
        "machineType": "E2_HIGHCPU_8",
        "secrets": {"pipToken": VERSION, "unused": OTHER},
    }
}
INPUT = {
    "parent": "projects/acme/locations/europe-west4",
    "serviceAccount": "b@acme.iam.gserviceaccount.com",
    "sourceFolder": "gs://acme/sources",
    "machineType": "E2_HIGHCPU_8",
}
POOL = "projects/host/locations/us-east1/workerPools/w"


def choose(foundation: dict[str, Any] | None, **image: Any) -> Any:
    return create_cloud_build_input_or_none("trainer", foundation, shapes.Image(context="trainer", **image))


def test_without_a_remote_builder_this_machine_builds() -> None:
    assert choose(None) is choose(None, builder={"local": True}) is choose(FOUNDATION, builder={"local": True}) is None


def test_an_image_takes_the_stack_s_options() -> None:
    assert choose(FOUNDATION) == {"cloudBuild": INPUT}


def test_secrets_are_those_that_the_image_names() -> None:
    assert choose(FOUNDATION, secrets={"token": "${secrets.pipToken}"}) == {
        "cloudBuild": {**INPUT, "secrets": {"token": VERSION}}
    }


def test_an_image_s_pool_replaces_machine_and_region() -> None:
    chosen = choose(FOUNDATION, builder={"cloudBuild": {"pool": POOL, "timeout": "60s"}})["cloudBuild"]
    without_machine = {key: value for key, value in INPUT.items() if key != "machineType"}
    parent = "projects/acme/locations/us-east1"
    assert chosen == {**without_machine, "pool": POOL, "timeout": "60s", "parent": parent}


def test_what_cloud_build_cannot_build_is_named() -> None:
    with pytest.raises(BuilderUnusable, match=r"^images\.trainer: Cloud Build builds for a stack with"):
        choose(None, builder={"cloudBuild": {}})
    with pytest.raises(BuilderUnusable, match=r"^images\.trainer\.secrets\.token: .*secrets\.hfToken: proj"):
        choose(FOUNDATION, secrets={"token": "${secrets.hfToken}"})
