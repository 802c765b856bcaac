"""Jobs of a project as they are declared, and what runs of them leave."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import docker

from tests.vertex_emulator.running import IMAGE

Write = Callable[[str], None]
PROJECT = "name: one-off\nruntime: python\nstackConfigDir: stacks\n"
LOCAL = "config:\n  vertex-training:target: local\n  vertex-training:include: [jobs.yaml]\n"
CLOUD = """\
config:
  vertex-training:target: gcp
  vertex-training:project: acme-dev
  vertex-training:projectNumber: "123456789012"
  vertex-training:region: europe-west4
  vertex-training:include: [jobs.yaml]
  vertex-training:guardrails: {machineTypes: [e2-*]}
  vertex-training:vars: {code: 5}
  vertex-training:secrets: {token: {secure: AAAA}}
  vertex-training:registry: {repository: training}
"""
WRITE = "import os, sys; p = os.environ['AIP_MODEL_DIR'].replace('gs://', '/gcs/'); os.makedirs(p, exist_ok=True)"


def job(script: str, *args: str, env: str = "") -> str:
    """A declared job that runs a Python script; `env` is the reference that its variable T has."""
    container = {"imageUri": IMAGE, "command": ["python3", "-c", script], "args": [*args]}
    container |= {"env": [{"name": "T", "value": env}]} if env else {}
    pool = {"machineSpec": {"machineType": "n1-standard-4"}, "containerSpec": container}
    return json.dumps({"jobSpec": {"scheduling": {"timeout": "60s"}, "workerPoolSpecs": [pool]}}) + "\n"


def sized(declared: str, **size: Any) -> str:
    """A declared job with a size for rehearsals."""
    return json.dumps({**json.loads(declared), "rehearse": size}) + "\n"


def lifted(declared: str) -> str:
    """A declared job on machines that came after this release."""
    fields = json.loads(declared.replace("n1-standard-4", "z9-giga-96"))
    place = "jobSpec.workerPoolSpecs[0].machineSpec.machineType"
    return json.dumps({**fields, "lifecycle": {"allow": [place]}}) + "\n"


def left(tmp_path: Path) -> list[str]:
    """The folders, containers and files of the project that a run has left."""
    folders = [str(folder) for folder in (tmp_path / "temporary").glob("vertex-training-run-*")]
    containers = [
        each.name
        for each in docker.from_env().containers.list(all=True, ignore_removed=True)
        if str(tmp_path) in str(each.attrs.get("Mounts", ""))
    ]
    return [*folders, *containers]


def git(*arguments: str) -> str:
    """What git says in the current folder."""
    identity = ("-c", "user.name=a", "-c", "user.email=a@acme.dev", "-c", "commit.gpgsign=false")
    return subprocess.run(["git", *identity, *arguments], check=True, capture_output=True, text=True).stdout


def commit() -> None:
    """Commit all that is in the current folder."""
    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "base")


def everything(folder: Path) -> dict[str, bytes]:
    """The content of all files below a folder."""
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
