"""The spec of a replica's container, complete: all that is added to it is added here, and its folders are made."""

import json
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from vertex_api.jobspec import output_folders
from vertex_emulator import programs
from vertex_emulator.data_folder import DataFolder
from vertex_emulator.database.records import Job, Replica
from vertex_emulator.errors import InvalidBucketUri, ReplicaCannotStart
from vertex_emulator.gcs.files import ROOT, BucketTree, split_uri
from vertex_emulator.replicas import debugger, mounts, size
from vertex_emulator.replicas.environment import (
    METRIC_FOLDER,
    PROJECT,
    ContainerTexts,
    escape,
    hostname,
    pod_hostname,
    service_variables,
)
from vertex_emulator.replicas.mounts import Mount
from vertex_emulator.replicas.size import Host, Limits


@dataclass(frozen=True)
class ReplicaSpec:
    """A container to start.

    `command` None keeps the image's ENTRYPOINT, `args` None its CMD. `hostname` is that of the container; `peers` are
    the names of all of the job's replicas in CLUSTER_SPEC, its own, `cluster_name`, among them. `leading` is what
    variables begin with, before what the environment or else the image has in them. `hosts` are addresses by name.
    """

    job: str
    replica: Replica
    image: str
    command: Sequence[str] | None
    args: Sequence[str] | None
    environment: Mapping[str, str]
    hostname: str
    cluster_name: str
    mounts: Sequence[Mount]
    peers: Sequence[str]
    limits: Limits = field(default_factory=Limits)
    leading: Mapping[str, str] = field(default_factory=dict)
    hosts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Home:
    """How a job's containers find Google's services at home: variables, addresses of hosts, and mounts.

    `note` says who does not find them, "" if all do. `project` is the id of the job's project where its calls go to
    Google, which does not know the number that it has here. `leading` is that of ReplicaSpec.
    """

    variables: Mapping[str, str] = field(default_factory=dict)
    hosts: Mapping[str, str] = field(default_factory=dict)
    mounts: Sequence[Mount] = ()
    note: str = ""
    project: str = ""
    leading: Mapping[str, str] = field(default_factory=dict)


_NO_HOME = Home()


def build(
    job: Job,
    replica: Replica,
    data: DataFolder,
    host: Host,
    metric_id: str | None = None,
    home: Home = _NO_HOME,
) -> ReplicaSpec:
    """Build the spec of one replica on `host`, and create its folders in the data folder.

    `metric_id` is a study's first metric, `home` is how Google's libraries find the emulator; the spec's own variables
    count before its. Raises ReplicaCannotStart when the bucket of its outputs or a folder of its mounts cannot be made,
    when a Python package is not in its bucket, when the texts are too long for Linux, and when there is no debugger to
    inject.
    """
    spec = job.spec["jobSpec"]
    pool = spec["workerPoolSpecs"][replica.pool]
    place = replica.first_attempt  # every attempt of a replica has the same spec

    container = pool.get("containerSpec") or _package_container(pool["pythonPackageSpec"], data)
    variables = service_variables(job, place, metric_id)
    if home.project:
        variables = {**variables, PROJECT: home.project}
    texts = ContainerTexts.expand(container, variables)

    _make_output_bucket(spec, data)
    mounted = [*mounts.buckets(data), *mounts.make(pool, data)]
    if job.trial is not None:
        mounted.append(Mount(str(data.create_metric_folder(job.id)), METRIC_FOLDER))
    injection = debugger.inject(job, replica, data)

    # Trials run in parallel, as replicas do.
    turn = job.requested_replicas.index(place) + (job.trial or 0)
    return ReplicaSpec(
        job=job.id,
        replica=replica,
        image=container["imageUri"],
        command=texts.command,
        args=texts.args,
        environment={**home.variables, **texts.environment, **injection.variables},
        hostname=pod_hostname(job.id, replica.pool, replica.index),
        cluster_name=hostname(job.id, replica.pool, replica.index),
        mounts=[*mounted, *injection.mounts, *home.mounts],
        peers=[hostname(job.id, peer.pool, peer.index) for peer in job.requested_replicas],
        limits=size.limits(pool.get("machineSpec", {}), host, turn),
        leading={**home.leading, **injection.leading},
        hosts=home.hosts,
    )


def _package_container(package_spec: Mapping[str, Any], data: DataFolder) -> dict[str, Any]:
    """The ContainerSpec that installs `packageUris` into the executor image and runs `pythonModule`.

    As on Vertex AI, a job is accepted without its packages and fails when it runs, so they may be uploaded while it is
    queued. Raises ReplicaCannotStart, naming the URI, when a package is not in its bucket.
    """
    tree = BucketTree(data.buckets)
    for uri in package_spec["packageUris"]:
        try:
            status = tree.stat(uri)
        except (InvalidBucketUri, PermissionError) as error:
            raise ReplicaCannotStart(f"the package {uri} cannot be read: {error}") from error
        if status is None or not stat.S_ISREG(status.st_mode):
            message = f"the package {uri} does not exist; put the file at {tree.path(uri)}"
            raise ReplicaCannotStart(message)
    return {
        "imageUri": package_spec["executorImageUri"],
        "command": list(map(escape, programs.command("package"))),
        "args": [
            escape(json.dumps(package_spec["packageUris"])),
            escape(package_spec["pythonModule"]),
            *package_spec.get("args", []),
        ],
        "env": package_spec.get("env", []),
    }


def _make_output_bucket(spec: Mapping[str, Any], data: DataFolder) -> None:
    """Create the bucket of a job's outputs, and no folder in it: on Vertex AI, whoever writes below one makes it."""
    tree = BucketTree(data.buckets)
    for name, uri in output_folders(spec).items():
        try:
            bucket, *folders = split_uri(uri)
            tree.mkdir(ROOT + bucket)
            for place in accumulate([bucket, *folders], lambda parent, folder: f"{parent}/{folder}"):
                status = tree.stat(ROOT + place)
                if status and not stat.S_ISDIR(status.st_mode):
                    raise InvalidBucketUri(f'"{uri}" cannot be a folder: {ROOT}{place} is a file')
        except InvalidBucketUri as error:
            raise ReplicaCannotStart(f"there is no {name}: {error}") from error
        except PermissionError as error:
            message = f"there is no {name}: the emulator's user may not write to {uri}; change the mode of its bucket"
            raise ReplicaCannotStart(message) from error
