"""docs/leaving.md: what is taken along runs without this package, and what is left stays."""

import json
import os
import subprocess
from pathlib import Path

from tests.blocks import taken
from tests.clients.environment import variables
from tests.engine.cloud import CloudProject
from tests.vertex_emulator.running import RunningEmulator


def test_a_stack_is_left_as_the_page_says(cloud: CloudProject, vertex: RunningEmulator, tmp_path: Path) -> None:
    cloud.up()
    stack_file = cloud.root / "stacks" / "Pulumi.dev.yaml"
    before, id_ = stack_file.read_text(), cloud.resources()["train"]["id"]

    # A job, by gcloud alone.
    (take,) = taken("docs/leaving.md", "sh", "pulumi stack export")
    run(cloud, take.replace("digits", "train").replace("us-central1", "europe-west4"), variables(vertex.data, {}))
    ours, copy = sorted(
        vertex.call("GET", f"v1/{id_.rpartition('/')[0]}")["customJobs"], key=lambda job: job["name"] != id_
    )
    assert ours["name"] == id_ and "pulumi_mark" in ours["labels"] and "labels" not in copy
    assert copy["displayName"] == ours["displayName"] == "train" and copy["jobSpec"] == ours["jobSpec"]
    body = json.loads((cloud.root / "train.json").read_text())
    assert vertex.call("POST", f"v1/{id_.rpartition('/')[0]}", body)["jobSpec"] == ours["jobSpec"]

    # A bucket, into a program that does not know this package.
    (cloud.root.parent / "own").mkdir()
    (cloud.root.parent / "own" / "Pulumi.yaml").write_text("name: own\nruntime: python\n")
    run(cloud, "cd ../own && pulumi stack init main --secrets-provider passphrase")
    (move,) = taken("docs/leaving.md", "sh", "urn=")
    calls = cloud.record.read_text()
    assert "bucket" in run(cloud, move)
    assert cloud.record.read_text() == calls, "Google Cloud is not asked"
    (bucket,) = (
        each
        for each in json.loads(run(cloud, "cd ../own && pulumi stack export --stack main"))["deployment"]["resources"]
        if each["type"] == "gcp:storage/bucket:Bucket"
    )
    assert bucket["urn"].startswith("urn:pulumi:main::own::") and "gcp:storage/bucket:Bucket" not in cloud.read_state()

    # The stack itself.
    (forget,) = taken("docs/leaving.md", "sh", "pulumi stack rm")
    run(cloud, forget)
    assert stack_file.read_text() == before
    assert vertex.call("GET", f"v1/{id_}")["name"] == id_
    assert "dev" not in [each["name"] for each in json.loads(run(cloud, "pulumi stack ls --json"))]


def run(cloud: CloudProject, commands: str, more: "dict[str, str] | None" = None) -> str:
    """Run commands of the page in the project's folder, and return what they print."""
    environment = {**(more or {}), **cloud.environment, "PATH": os.environ["PATH"]}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands], cwd=cloud.root, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr
