"""Worker pools of a legacy job: one for each role that has replicas, in Vertex AI's order."""

from typing import Any

from vertex_api.scalars import quote

from . import runtime_version_images
from .commented_yaml import CommentedFields
from .machine_conversion import ROLES, Replicas, build_machine_spec_and_comments, list_replicas

_PACKAGE = {"packageUris": ["gs://your-bucket/trainer-0.1.tar.gz"], "pythonModule": "trainer.task"}
"""Placeholders of fields that `gcloud` takes as flags, so that a file may not have them."""


def convert_worker_pools(training_input: dict[str, Any]) -> list[CommentedFields]:
    """Return the `workerPoolSpecs`, with comments, of a valid TrainingInput."""
    replicas = {each.role: each for each in list_replicas(training_input)}
    worker = replicas.get("worker")
    if worker and worker.is_tpu:
        return [_merge_tpu_master_and_worker_into_pool(training_input, replicas["master"], worker)]
    pools = []
    for role in ROLES[: max(ROLES.index(role) for role in replicas) + 1]:
        pools.append(_convert_pool(training_input, replicas[role]) if role in replicas else CommentedFields())
        if role not in replicas:
            pools[-1].add_comments("", f"No {role} replicas; {{}} keeps their place.")
    return pools


def list_comments_on_ignored_pool_fields(training_input: dict[str, Any]) -> list[str]:
    """Return comments on fields of pools that are left out: of roles without replicas, or of code that does not run."""
    comments = []
    replicas = {each.role: each for each in list_replicas(training_input)}
    for role in ROLES[1:]:
        fields = [f"{role}{name}" for name in ("Type", "Config") if f"{role}{name}" in training_input]
        if fields and role not in replicas:
            comments.append(f"{' and '.join(fields)}: left out, as {role}Count is 0.")
        elif role in replicas and role != "worker" and "worker" in replicas and replicas["worker"].is_tpu:
            comments.append(f"{role}Count {replicas[role].count}: left out, as a job with TPUs has one pool.")
    if _get_own_or_master_image_uri_or_none(training_input, "master"):
        comments += [
            f"{name} {quote(training_input[name])}: left out; a container brings its own."
            for name in ("packageUris", "pythonModule", "runtimeVersion", "pythonVersion")
            if name in training_input
        ]
    return comments


def _convert_pool(training_input: dict[str, Any], replicas: Replicas) -> CommentedFields:
    config = training_input.get(f"{replicas.role}Config", {})
    spec, comments = build_machine_spec_and_comments(replicas, config.get("acceleratorConfig", {}))
    pool = CommentedFields({"machineSpec": spec, "replicaCount": replicas.count})
    pool.add_comments("machineSpec", *comments)
    if replicas.is_tpu:
        text = f"{replicas.source}: in Vertex AI the code runs on the TPU's own host; there is no other master."
        pool.add_comments("machineSpec", text)
    if image := _get_own_or_master_image_uri_or_none(training_input, replicas.role):
        pool["containerSpec"] = container = CommentedFields({"imageUri": image})
        if "containerCommand" in config:
            container["command"] = config["containerCommand"]
        if args := config.get("containerArgs") or training_input.get("args"):
            container["args"] = args
        if (replicas.role == "master" or "imageUri" in config) and image.split("/")[0].endswith("gcr.io"):
            text = (
                "Container Registry has ended; gcr.io names work where Artifact Registry serves them. Better copy the "
                "image there and name it here (REGION-docker.pkg.dev/PROJECT/REPOSITORY/IMAGE), or build it in this "
                "project: see images in docs/configuration.md."
            )
            container.add_comments("imageUri", text)
    else:
        pool["pythonPackageSpec"] = _build_python_package_spec(
            training_input, replicas.role, spec.get("acceleratorType", "")
        )
    if "diskConfig" in config:
        disk = config["diskConfig"]
        pool["diskSpec"] = {name: disk[name] for name in ("bootDiskType", "bootDiskSizeGb") if name in disk}
    if "tpuTfVersion" in config:
        text = f"tpuTfVersion {config['tpuTfVersion']}: left out; the image's own TensorFlow drives the TPU."
        pool.add_comments("machineSpec", text)
    return pool


def _merge_tpu_master_and_worker_into_pool(
    training_input: dict[str, Any], master: Replicas, worker: Replicas
) -> CommentedFields:
    """Vertex AI runs the master's code on the TPU's host: a machine as the worker's, as the job's only pool."""
    master_config, worker_config = training_input.get("masterConfig", {}), training_input.get("workerConfig", {})
    config = worker_config | {name: value for name, value in master_config.items() if name != "acceleratorConfig"}
    host = Replicas("master", worker.type, 1, "workerType")
    pool = _convert_pool({**training_input, "masterConfig": config}, host)
    ignored = [f"masterConfig.{name}" for name in master_config if name == "acceleratorConfig"]
    ignored += [f"workerConfig.{name}" for name in worker_config if worker_config[name] != config[name]]
    comments = [f"{name}: left out, as there is one machine instead of two." for name in ignored]
    text = f"masterType {master.type}: left out, as the TPU's host is the master."
    pool.add_comments("machineSpec", *comments, text)
    if worker.count > 1:
        text = f"workerCount {worker.count}: a job has one pool of TPUs, with one replica."
        pool.add_comments("replicaCount", text)
    return pool


def _get_own_or_master_image_uri_or_none(training_input: dict[str, Any], role: str) -> str | None:
    """Return the image of a role: its own, or the master's."""
    own: str | None = training_input.get(f"{role}Config", {}).get("imageUri")
    return own or training_input.get("masterConfig", {}).get("imageUri")


def _build_python_package_spec(training_input: dict[str, Any], role: str, accelerator_type: str) -> CommentedFields:
    runtime, region = training_input.get("runtimeVersion", ""), training_input.get("region", "")
    has_gpu = accelerator_type.startswith("NVIDIA")
    image = runtime_version_images.get_executor_image_uri_of_same_next_or_newest_version(
        runtime or "2.11", region, has_gpu
    )
    package = CommentedFields({"executorImageUri": image})
    if role == "master":
        text = _build_executor_image_comment(runtime, training_input.get("pythonVersion", "3.7"), accelerator_type)
        package.add_comments("executorImageUri", text)
    for name, placeholder in _PACKAGE.items():
        package[name] = training_input.get(name) or placeholder
        if not training_input.get(name):
            reason = f"{name} is not in the file; gcloud takes it as a flag." if role == "master" else "as above."
            package.add_comments(name, f"FILL IN: {reason}")
    if training_input.get("args"):
        package["args"] = training_input["args"]
    return package


def _build_executor_image_comment(runtime: str, python_version: str, accelerator_type: str) -> str:
    if not runtime:
        text = "FILL IN: runtimeVersion is not in the file; gcloud takes it as a flag. This image has TensorFlow 2.11."
        return f"{text} Others: {runtime_version_images.PAGE}"
    if runtime not in runtime_version_images.RUNTIMES:
        text = f"runtimeVersion {runtime}: there is no prebuilt image of it that is known, and this one is nearest."
    else:
        text = f"runtimeVersion {runtime}: the same TensorFlow, with Python 3.7, and no longer maintained by Google."
    text += f" pythonVersion {python_version}: the image has Python 3.7." if python_version != "3.7" else ""
    text += " For TPUs choose an image tf-tpu." if accelerator_type.startswith("TPU") else ""
    return f"{text} Code for scikit-learn, XGBoost or PyTorch takes another: {runtime_version_images.PAGE}"
