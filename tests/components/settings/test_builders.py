"""What a stack and its images say of their builder: each mistake is one line that says what to write."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.components.projects import load, problems

POOL = "projects/host/locations/europe-west4/workerPools/w"
VERSION = "projects/acme-dev/secrets/hf-token/versions/3"
GCP = {"target": "gcp", "project": "acme-dev", "projectNumber": "123456789012", "region": "europe-west4"}
IMAGE = {"context": "trainer"}
WITH_SECRET = {**IMAGE, "secrets": {"token": "${secrets.hfToken}"}}


def stack(folder: Path, image: Any, **keys: Any) -> str:
    (folder / "trainer").mkdir()
    (folder / "trainer" / "Dockerfile").write_text("FROM scratch\n")
    given = {**GCP, "images": {"trainer": image}, **keys}
    lines = [f"  vertex-training:{key}: {json.dumps(value)}\n" for key, value in given.items() if value is not None]
    return f"config:\n{''.join(lines)}"


def cloud_build(**fields: Any) -> dict[str, Any]:
    return {"cloudBuild": fields}


@pytest.mark.parametrize(
    ("image", "keys", "expected"),
    [
        (IMAGE, {"builder": {}}, "builder: needs exactly one of local and cloudBuild"),
        (IMAGE, {"builder": {"local": True, "cloudBuild": {}}}, "builder: needs exactly one of local and cloudBuild"),
        (IMAGE, {"builder": {"local": False}}, "builder.local: must be true; to build elsewhere, write cloudBuild: {}"),
        (
            IMAGE,
            {"builder": cloud_build(pool=POOL, machineType="E2_HIGHCPU_8")},
            "builder.cloudBuild.machineType: has no effect in a pool, which has machines of its own; remove it",
        ),
        (
            IMAGE,
            {"builder": cloud_build(pool=POOL, region="us-central1")},
            'builder.cloudBuild.region: "us-central1" must be the location of the pool, europe-west4, or be left out',
        ),
        (IMAGE, {"builder": cloud_build(region="Europe")}, 'cloudBuild.region: "Europe" is not the name of a region'),
        (IMAGE, {"builder": cloud_build(timeout="86401s")}, '"86401s" is longer than 86400s, the most of a build'),
        (IMAGE, {"builder": cloud_build(pool="w")}, 'pool: "w" is not a private pool, projects/P/locations/L/worker'),
        (
            IMAGE,
            {"builder": cloud_build(machineType="E2_HUGE")},
            'machineType: "E2_HUGE" is not one of E2_MEDIUM, E2_STANDARD_2, E2_HIGHCPU_8',
        ),
        *(
            (
                IMAGE,
                {"builder": cloud_build(dockerImage=image)},
                f'dockerImage: "{image}" is not an image with a version or a digest, such as gcr.io/',
            )
            for image in ("docker", "registry.test:5000/docker", "docker@sha256:1", "$DOCKER:1")
        ),
        (
            IMAGE,
            {"builder": cloud_build(secrets={"hfToken": "hunter2"})},
            "secrets.hfToken: must be a version of Secret Manager, projects/P/secrets/NAME/versions/N, and not a value",
        ),
        (
            IMAGE,
            {"builder": cloud_build(), "registry": {"url": "registry.test/team"}},
            "registry.url: Cloud Build pushes as a Google account, which only Google's registries know",
        ),
        (
            WITH_SECRET,
            {"builder": cloud_build(), "secrets": {"hfToken": "hunter2"}},
            "images.trainer.secrets.token: Cloud Build reads secrets from Secret Manager alone; write "
            "vertex-training:builder.cloudBuild.secrets.hfToken: projects/P/secrets/NAME/versions/N",
        ),
        (
            WITH_SECRET,
            {"builder": cloud_build(network="cloudbuild", secrets={"hfToken": VERSION})},
            "images.trainer.secrets.token: cannot be used with network: Docker's classic builder",
        ),
        (
            IMAGE,
            {"builder": cloud_build(network="cloudbuild", cache=True)},
            "builder.cloudBuild.cache: has no effect with network: Docker's classic builder",
        ),
        (
            {**IMAGE, "builder": cloud_build(machineType="E2_MEDIUM")},
            {},
            "images.trainer.builder.cloudBuild: needs vertex-training:builder.cloudBuild in the stack file",
        ),
        (
            {**IMAGE, "builder": {"local": True}},
            {"target": "local", "project": None, "projectNumber": None, "region": None},
            "images.trainer.builder: is for the target gcp, and the target here is local",
        ),
        (
            IMAGE,
            {"builder": cloud_build(), "target": "local", "project": None, "projectNumber": None, "region": None},
            "builder: is for the target gcp, and the target here is local",
        ),
        (
            {"uri": "docker.io/library/python:3.11", "builder": {"local": True}},
            {},
            "images.trainer.builder: says how to build an image, but uri names one that is built elsewhere",
        ),
    ],
)
def test_each_mistake_is_one_line(tmp_path: Path, image: Any, keys: dict[str, Any], expected: str) -> None:
    (line,) = problems(tmp_path, stack(tmp_path, image, **keys))
    assert expected in line and "hunter2" not in line


@pytest.mark.parametrize(
    ("image", "keys"),
    [
        (IMAGE, {"builder": cloud_build()}),
        (IMAGE, {"builder": cloud_build(pool=POOL)}),
        (IMAGE, {"builder": cloud_build(dockerImage="registry.test:5000/docker:27-cli")}),
        (IMAGE, {"builder": cloud_build(dockerImage=f"gcr.io/cloud-builders/docker@sha256:{'0' * 64}")}),
        (IMAGE, {"builder": {"local": True}}),
        ({**IMAGE, "builder": {"local": True}}, {"builder": cloud_build()}),
        # The image's machine replaces the stack's pool.
        ({**IMAGE, "builder": cloud_build(machineType="E2_MEDIUM")}, {"builder": cloud_build(pool=POOL)}),
        (WITH_SECRET, {"builder": cloud_build(secrets={"hfToken": VERSION})}),
        ({**IMAGE, "builder": cloud_build(network="cloudbuild")}, {"builder": cloud_build(cache=False)}),
        # A var that is null by default lets a stack `local` share the declaration.
        (
            {**IMAGE, "builder": "${vars.builder}"},
            {"vars": {"builder": None}, "target": "local", "project": None, "projectNumber": None, "region": None},
        ),
        (IMAGE, {"builder": cloud_build(), "registry": {"url": "eu.gcr.io/acme"}}),
    ],
)
def test_valid_builders_are_accepted(tmp_path: Path, image: Any, keys: dict[str, Any]) -> None:
    assert load(tmp_path, stack(tmp_path, image, **keys)).images.keys() == {"trainer"}


def test_a_job_cannot_use_a_secret_of_builds(tmp_path: Path) -> None:
    """Its value is in Secret Manager alone."""
    text = stack(tmp_path, WITH_SECRET, builder=cloud_build(secrets={"hfToken": VERSION}))
    pool = {"machineSpec": {"machineType": "n1-standard-4"}}
    container = {"imageUri": "${images.trainer}", "args": ["${secrets.hfToken}"]}
    job = {"jobSpec": {"workerPoolSpecs": [{**pool, "containerSpec": container}]}}
    (line,) = problems(tmp_path, f"{text}  vertex-training:customJobs: {json.dumps({'train': job})}\n")
    assert "${secrets.hfToken} is not declared" in line
