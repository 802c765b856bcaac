"""Requests to Cloud Build: what the API's discovery document allows, what they reuse, and no secret in them."""

from dataclasses import replace
from typing import Any

import pytest
from vertex_training.cloud_build.build_request import ImageBuild, build_request_body, compute_build_tag

from tests.corpus.discovery import broken

URI = "europe-west4-docker.pkg.dev/acme-dev/team/trainer:0123456789abcdef"
BUILD = ImageBuild(URI, "gs://acme/team/dev/build-sources/abc.tar.gz", "17", "context/Dockerfile", "linux/amd64")
OPTIONS: dict[str, Any] = {
    "parent": "projects/acme-dev/locations/europe-west4",
    "serviceAccount": "team-dev-build@acme-dev.iam.gserviceaccount.com",
}
POOL = "projects/host/locations/europe-west4/workerPools/w"
WHOLE = replace(
    BUILD,
    build_args={"B": "2", "A": "$HOME and $${X}"},
    target="slim",
    cache_image=URI[:-1],
    secret_versions={"token": "projects/p/secrets/t/versions/3", "pip": "projects/p/secrets/pip/versions/latest"},
)


def test_a_plain_request_is_complete() -> None:
    assert build_request_body(BUILD, OPTIONS) == {
        "source": {
            "storageSource": {"bucket": "acme", "object": "team/dev/build-sources/abc.tar.gz", "generation": "17"}
        },
        "steps": [
            {
                "name": "gcr.io/cloud-builders/docker",
                "env": ["DOCKER_BUILDKIT=1"],
                "args": [
                    "build",
                    f"--tag={URI}",
                    "--platform=linux/amd64",
                    "--file=context/Dockerfile",
                    "context",
                ],
            }
        ],
        "images": [URI],
        "tags": [compute_build_tag(URI), compute_build_tag(URI.partition(":")[0])],
        "serviceAccount": "projects/acme-dev/serviceAccounts/team-dev-build@acme-dev.iam.gserviceaccount.com",
        "options": {"logging": "CLOUD_LOGGING_ONLY"},
    }


def test_build_options_secrets_and_dollars_reach_docker() -> None:
    request = build_request_body(WHOLE, {**OPTIONS, "timeout": "1800s", "machineType": "E2_HIGHCPU_8", "cache": True})
    (step,) = request["steps"]
    assert step["args"][4:-1] == [
        "--target=slim",
        "--build-arg=BUILDKIT_INLINE_CACHE=1",
        f"--cache-from={URI[:-1]}",
        "--build-arg=A=$$HOME and $$$${X}",
        "--build-arg=B=2",
        "--secret=id=pip,env=BUILD_SECRET_0",
        "--secret=id=token,env=BUILD_SECRET_1",
    ]
    assert step["secretEnv"] == ["BUILD_SECRET_0", "BUILD_SECRET_1"]
    assert request["availableSecrets"]["secretManager"] == [
        {"versionName": "projects/p/secrets/pip/versions/latest", "env": "BUILD_SECRET_0"},
        {"versionName": "projects/p/secrets/t/versions/3", "env": "BUILD_SECRET_1"},
    ]
    assert (request["timeout"], request["options"]["machineType"]) == ("1800s", "E2_HIGHCPU_8")


def test_a_private_pool_names_no_machine() -> None:
    request = build_request_body(BUILD, {**OPTIONS, "pool": POOL})
    assert request["options"] == {"logging": "CLOUD_LOGGING_ONLY", "pool": {"name": POOL}}


def test_an_image_of_docker_can_be_named() -> None:
    (step,) = build_request_body(BUILD, {**OPTIONS, "dockerImage": "docker:27-cli"})["steps"]
    assert step["name"] == "docker:27-cli"


def test_a_network_needs_the_classic_builder() -> None:
    (step,) = build_request_body(BUILD, {**OPTIONS, "network": "cloudbuild"})["steps"]
    assert step["env"] == ["DOCKER_BUILDKIT=0"] and step["args"][-2:] == ["--network=cloudbuild", "context"]


@pytest.mark.parametrize("options", [{}, {"cache": False}, {"cache": True, "network": "cloudbuild"}])
def test_builds_without_a_cache_name_none(options: dict[str, Any]) -> None:
    plain, given = (build_request_body(replace(WHOLE, cache_image=uri), OPTIONS | options) for uri in (None, URI[:-1]))
    assert given == plain and "CACHE" not in str(plain)
    assert build_request_body(WHOLE, OPTIONS)["tags"] == plain["tags"], "later builds find it all the same"


@pytest.mark.parametrize("build", [BUILD, WHOLE])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"cache": True},
        {"machineType": "N1_HIGHCPU_32", "timeout": "60s"},
        {"pool": POOL},
        {"network": "cloudbuild"},
        {"dockerImage": "docker:27-cli"},
    ],
)
def test_requests_follow_the_discovery_document(build: ImageBuild, options: dict[str, Any]) -> None:
    assert broken("Build", build_request_body(build, OPTIONS | options), "cloudbuild.v1") == []


def test_a_build_s_tag_is_valid_and_its_own() -> None:
    tags = {compute_build_tag(uri) for uri in (URI, f"{URI}0", URI.replace("trainer", "other"))}
    assert len(tags) == 3 and all(len(tag) <= 128 and "/" not in tag and ":" not in tag for tag in tags)
