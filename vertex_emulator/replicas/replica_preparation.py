"""The preparation of a replica: its packages are looked for, its folders made, and its container specified."""

import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vertex_api.jobspec import output_folders
from vertex_emulator.data_folder import DataFolder
from vertex_emulator.database.records import Job, Replica
from vertex_emulator.errors import InvalidBucketUri, ReplicaCannotStart
from vertex_emulator.gcs.files import BucketTree
from vertex_emulator.replicas.executor_protocol import HostResources, ReplicaSpec
from vertex_emulator.replicas.hostnames import build_cluster_spec_hostname, build_pod_hostname
from vertex_emulator.replicas.nfs_and_lustre_mounts import make_folders_and_map_to_mount_points
from vertex_emulator.replicas.package_container_spec import build_container_spec
from vertex_emulator.replicas.resource_limits_and_shortfalls import compute_resource_limits
from vertex_emulator.replicas.service_environment import METRIC_FOLDER, build_service_environment
from vertex_emulator.replicas.size_limited_variable_expansion import ContainerTexts


def make_folders_and_build_replica_spec(
    job: Job, replica: Replica, data_folder: DataFolder, host: HostResources, metric_id: str | None = None
) -> ReplicaSpec:
    """Build the spec of one replica on `host`, and create its folders in the data folder.

    `metric_id` is a study's first metric. Raises ReplicaCannotStart when a folder of its outputs or mounts cannot be
    made, when a Python package is not in its bucket, and when the expanded texts are too long for Linux.
    """
    spec = job.spec["jobSpec"]
    pool = spec["workerPoolSpecs"][replica.pool]
    container = pool.get("containerSpec")
    if not container:
        _raise_unless_package_files_exist(pool["pythonPackageSpec"], data_folder.buckets)
        container = build_container_spec(pool["pythonPackageSpec"])
    texts = ContainerTexts.expand(container, build_service_environment(job, replica, metric_id))
    _make_output_folders(spec, data_folder)
    mounts = {str(data_folder.buckets): "/gcs", **make_folders_and_map_to_mount_points(pool, data_folder)}
    if job.trial is not None:
        mounts[str(data_folder.create_metric_folder(job.id))] = METRIC_FOLDER
    # Trials run in parallel, as replicas do.
    replica_index = job.requested_replicas.index(replica) + (job.trial or 0)
    return ReplicaSpec(
        job=job.id,
        replica=replica,
        image=container["imageUri"],
        command=texts.command,
        args=texts.args,
        environment=texts.environment,
        hostname=build_pod_hostname(job.id, replica.pool, replica.index),
        cluster_name=build_cluster_spec_hostname(job.id, replica.pool, replica.index),
        mounts=mounts,
        peers=[build_cluster_spec_hostname(job.id, place.pool, place.index) for place in job.requested_replicas],
        resources=compute_resource_limits(pool.get("machineSpec", {}), host, replica_index),
    )


def _make_output_folders(spec: Mapping[str, Any], data_folder: DataFolder) -> None:
    for name, uri in output_folders(spec).items():
        try:
            BucketTree(data_folder.buckets).mkdir(uri)
        except InvalidBucketUri as error:
            raise ReplicaCannotStart(f"there is no {name}: {error}") from error
        except PermissionError as error:
            message = f"there is no {name}: the emulator's user may not write to {uri}; change the mode of its folder"
            raise ReplicaCannotStart(message) from error


def _raise_unless_package_files_exist(package_spec: Mapping[str, Any], buckets_folder: Path) -> None:
    """Raise ReplicaCannotStart, naming the URI, when a package is not in its bucket.

    As on Vertex AI, the job is accepted and fails when it runs, so packages may be uploaded while it is queued.
    """
    tree = BucketTree(buckets_folder)
    for uri in package_spec["packageUris"]:
        try:
            status = tree.stat(uri)
        except (InvalidBucketUri, PermissionError) as error:
            raise ReplicaCannotStart(f"the package {uri} cannot be read: {error}") from error
        if status is None or not stat.S_ISREG(status.st_mode):
            message = f"the package {uri} does not exist; put the file at {tree.path(uri)}"
            raise ReplicaCannotStart(message)
