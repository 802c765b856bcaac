"""Declared images: who builds each and with which options, and base images that are not pinned."""

from typing import Any

import pytest
from vertex_training.errors import BuilderUnusable
from vertex_training.images.declaration import cloud_build_input, unpinned_bases
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


def builder_of(foundation: dict[str, Any] | None, **image: Any) -> Any:
    return cloud_build_input("trainer", foundation, shapes.Image(context="trainer", **image))


def test_without_a_remote_builder_this_machine_builds() -> None:
    assert (
        builder_of(None)
        is builder_of(None, builder={"local": True})
        is builder_of(FOUNDATION, builder={"local": True})
        is None
    )


def test_an_image_takes_the_stack_s_options() -> None:
    assert builder_of(FOUNDATION) == {"cloudBuild": INPUT}


def test_secrets_are_those_that_the_image_names() -> None:
    assert builder_of(FOUNDATION, secrets={"token": "${secrets.pipToken}"}) == {
        "cloudBuild": {**INPUT, "secrets": {"token": VERSION}}
    }


def test_an_image_s_pool_replaces_machine_and_region() -> None:
    chosen = builder_of(FOUNDATION, builder={"cloudBuild": {"pool": POOL, "timeout": "60s"}})["cloudBuild"]
    without_machine = {key: value for key, value in INPUT.items() if key != "machineType"}
    parent = "projects/acme/locations/us-east1"
    assert chosen == {**without_machine, "pool": POOL, "timeout": "60s", "parent": parent}


def test_what_cloud_build_cannot_build_is_named() -> None:
    with pytest.raises(BuilderUnusable, match=r"^images\.trainer: Cloud Build builds for a stack with"):
        builder_of(None, builder={"cloudBuild": {}})
    with pytest.raises(BuilderUnusable, match=r"^images\.trainer\.secrets\.token: .*secrets\.hfToken: proj"):
        builder_of(FOUNDATION, secrets={"token": "${secrets.hfToken}"})


PINNED = "python@sha256:" + "0" * 64


@pytest.mark.parametrize(
    ("dockerfile", "found"),
    [
        ("FROM python:3.11", [(1, "python:3.11")]),
        ("# a comment\n\nfrom --platform=linux/amd64 python:3.11 as base\nFROM base", [(3, "python:3.11")]),
        (f"FROM {PINNED}", []),
        (f"FROM python:3.11@{PINNED.partition('@')[2]} AS Build\nFROM scratch\nCOPY --from=build / /\nFROM build", []),
        ("ARG BASE=python:3.11\nFROM $BASE", [(2, "python:3.11")]),
        ("ARG TAG\nFROM python:${TAG}", [(2, "python:3.12")]),
        ("ARG MISSING\nFROM python:${MISSING:-3.10}", [(2, "python:3.10")]),
        (f"ARG BASE={PINNED}\nFROM ${{BASE}}", []),
        ("ARG GIVEN=python:3.11\nFROM ${GIVEN}", []),
        ("FROM scratch", []),
    ],
)
def test_an_unpinned_base_image_names_its_line(dockerfile: str, found: list[tuple[int, str]]) -> None:
    assert unpinned_bases(dockerfile, {"TAG": "3.12", "GIVEN": PINNED}) == found
