"""The environment variables that Vertex sets in a training container.

Source: Google's page on code requirements and distributed training, and environments of real jobs that people
published; open points are listed in docs/fidelity.md.
"""

import json
from collections.abc import Sequence
from typing import Any

from vertex_api.jobspec import output_folders
from vertex_emulator.database.records import Job, Replica
from vertex_emulator.replicas.hostnames import build_cluster_spec_hostname, derive_hostname_hash

TF_PORT = 2222
TRAINING_PORT = 3333
STATUSZ_PORT = 6000
METRIC_FOLDER = "/tmp/hypertune"  # the default of Google's hypertune library, inside the container
METRIC_FILE = f"{METRIC_FOLDER}/output.metrics"
_POOLS = ("workerpool0", "workerpool1", "workerpool2", "workerpool3")
_TF_TASKS = ("chief", "worker", "ps", "evaluator")


def build_service_environment(job: Job, replica: Replica, metric_id: str | None = None) -> dict[str, str]:
    """Build the variables of one replica; `metric_id` is the study's first metric, for a trial's job."""
    spec = job.spec["jobSpec"]
    replicas = job.requested_replicas
    environment = {
        "CLOUD_ML_JOB": _build_cloud_ml_job_json(job, replica),
        "CLOUD_ML_JOB_ID": job.owner[1],
        "CLOUD_ML_PROJECT_ID": job.location.project_number,
        "CLOUD_ML_REGION": job.location.region,
        "CLUSTER_SPEC": json.dumps({**_build_cluster_spec(job, replica, _POOLS), "open_ports": [TRAINING_PORT]}),
        "RANK": str(replicas.index(replica)),
        "WORLD_SIZE": str(len(replicas)),
        "MASTER_ADDR": build_cluster_spec_hostname(job.id, 0, 0),
        "MASTER_PORT": str(TRAINING_PORT),
        **_build_kubernetes_service_variables(job),
        **output_folders(spec),
    }
    if "containerSpec" in spec["workerPoolSpecs"][replica.pool]:
        environment["AIP_USE_CUSTOM_CONTAINER"] = "true"
    if len(replicas) > 1:
        environment["TF_CONFIG"] = json.dumps(_build_cluster_spec(job, replica, _TF_TASKS))
    if "serviceAccount" in spec:
        environment["CLOUD_ML_JOB_SA"] = spec["serviceAccount"]
    if "tensorboard" in spec:
        environment["AIP_TENSORBOARD_RESOURCE_NAME"] = spec["tensorboard"]
    if "experiment" in spec:
        environment["AIP_EXPERIMENT_NAME"] = _get_last_segment(spec["experiment"])
    if "experimentRun" in spec:
        # The context of a run is called EXPERIMENT-RUN; Google's SDK takes the run's own name.
        prefix = f"{_get_last_segment(spec.get('experiment', ''))}-"
        environment["AIP_EXPERIMENT_RUN_NAME"] = _get_last_segment(spec["experimentRun"]).removeprefix(prefix)
    if job.trial is not None:
        environment["CLOUD_ML_TRIAL_ID"] = str(job.trial)
        environment["CLOUD_ML_HP_METRIC_FILE"] = METRIC_FILE
        if metric_id is not None:
            environment["CLOUD_ML_HP_METRIC_TAG"] = metric_id
    return environment


def _get_last_segment(resource_name: str) -> str:
    return resource_name.rpartition("/")[2]


def _build_cloud_ml_job_json(job: Job, replica: Replica) -> str:
    """Serialize the Python package for CLOUD_ML_JOB and the `job` of CLUSTER_SPEC; fields are empty for a container.

    As in the logs and environments of real jobs; `$(VAR)` in arguments is not expanded.
    """
    package = job.spec["jobSpec"]["workerPoolSpecs"][replica.pool].get("pythonPackageSpec", {})
    program = {
        "python_module": package.get("pythonModule", ""),
        "package_uris": package.get("packageUris", []),
        "job_args": package.get("args", []),
    }
    return json.dumps(program, separators=(",", ":"))


def _build_cluster_spec(job: Job, replica: Replica, task_types: Sequence[str]) -> dict[str, Any]:
    """Describe all replicas of the job and the place of one; `task_types` has the name of each pool."""
    cluster: dict[str, list[str]] = {}
    for place in job.requested_replicas:
        address = f"{build_cluster_spec_hostname(job.id, place.pool, place.index)}:{TF_PORT}"
        cluster.setdefault(task_types[place.pool], []).append(address)
    # An evaluator has a task of its own but is no part of the cluster (TensorFlow's rule).
    cluster.pop("evaluator", None)
    task: dict[str, Any] = {"type": task_types[replica.pool], "index": replica.index}
    if job.trial is not None:
        task["trial"] = str(job.trial)
    return {"cluster": cluster, "environment": "cloud", "task": task, "job": _build_cloud_ml_job_json(job, replica)}


def _build_kubernetes_service_variables(job: Job) -> dict[str, str]:
    prefix = f"CMLE_TRAINING_WORKERPOOL0_{derive_hostname_hash(job.id).upper()}_0_SERVICE"
    return {
        f"{prefix}_HOST": build_cluster_spec_hostname(job.id, 0, 0),
        f"{prefix}_PORT": str(TF_PORT),
        f"{prefix}_PORT_TF_PORT": str(TF_PORT),
        f"{prefix}_PORT_TRAINING_PORT": str(TRAINING_PORT),
        f"{prefix}_PORT_STATUSZ": str(STATUSZ_PORT),
    }
