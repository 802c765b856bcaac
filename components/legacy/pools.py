"""Worker pools of a legacy job: one for each role that has replicas, in Vertex AI's order."""

from typing import Any

from vertex_api.scalars import quote_value

from . import runtimes
from .fields import Fields
from .machines import ROLES, Replicas, machine_spec, replicas

_PACKAGE = {"packageUris": ["gs://your-bucket/trainer-0.1.tar.gz"], "pythonModule": "trainer.task"}
"""What stands for fields that `gcloud` takes as flags, and that a file therefore need not have."""


def worker_pools(training_input: dict[str, Any]) -> list[Fields]:
    """`workerPoolSpecs`, with comments, of a TrainingInput without problems."""
    parts = {part.role: part for part in replicas(training_input)}
    worker = parts.get("worker")
    if worker and worker.is_tpu:
        return [_tpu_pool(training_input, parts["master"], worker)]
    last = max(ROLES.index(role) for role in parts)
    return [_pool(training_input, parts[role]) if role in parts else _gap(role) for role in ROLES[: last + 1]]


def left_out(training_input: dict[str, Any]) -> list[str]:
    """Comments on what says something of replicas that there are none of, or of code that does not run."""
    comments = []
    parts = {part.role: part for part in replicas(training_input)}
    for role in ROLES[1:]:
        given = [f"{role}{name}" for name in ("Type", "Config") if f"{role}{name}" in training_input]
        if given and role not in parts:
            comments.append(f"{' and '.join(given)}: left out, as {role}Count is 0.")
        elif role in parts and role != "worker" and "worker" in parts and parts["worker"].is_tpu:
            comments.append(f"{role}Count {parts[role].count}: left out, as a job with TPUs has one pool.")
    if _image(training_input, "master"):
        comments += [
            f"{name} {quote_value(training_input[name])}: left out; a container brings its own."
            for name in ("packageUris", "pythonModule", "runtimeVersion", "pythonVersion")
            if name in training_input
        ]
    return comments


def _gap(role: str) -> Fields:
    pool = Fields()
    pool.comment("", f"No {role} replicas; {{}} keeps their place.")
    return pool


def _pool(training_input: dict[str, Any], part: Replicas) -> Fields:
    config = training_input.get(f"{part.role}Config", {})
    spec, comments = machine_spec(part, config.get("acceleratorConfig", {}))
    pool = Fields({"machineSpec": spec, "replicaCount": part.count})
    pool.comment("machineSpec", *comments)
    if part.is_tpu:
        text = f"{part.source}: in Vertex AI the code runs on the TPU's own host; there is no other master."
        pool.comment("machineSpec", text)
    image = _image(training_input, part.role)
    if image:
        pool["containerSpec"] = _container(training_input, config, image)
        if part.role == "master" or "imageUri" in config:
            pool["containerSpec"].comment("imageUri", *_about_the_registry(image))
    else:
        pool["pythonPackageSpec"] = _package(training_input, part.role, spec)
    if "diskConfig" in config:
        pool["diskSpec"] = {
            name: config["diskConfig"][name]
            for name in ("bootDiskType", "bootDiskSizeGb")
            if name in config["diskConfig"]
        }
    if "tpuTfVersion" in config:
        text = f"tpuTfVersion {config['tpuTfVersion']}: left out; the image's own TensorFlow drives the TPU."
        pool.comment("machineSpec", text)
    return pool


def _tpu_pool(training_input: dict[str, Any], master: Replicas, worker: Replicas) -> Fields:
    """Vertex AI runs the master's code on the TPU's host: a machine as the worker's, as the job's only pool."""
    of_master, of_worker = training_input.get("masterConfig", {}), training_input.get("workerConfig", {})
    given = of_worker | {name: value for name, value in of_master.items() if name != "acceleratorConfig"}
    pool = _pool({**training_input, "masterConfig": given}, Replicas("master", worker.type, 1, "workerType"))
    lost = [f"masterConfig.{name}" for name in of_master if name == "acceleratorConfig"]
    lost += [f"workerConfig.{name}" for name in of_worker if of_worker[name] != given[name]]
    pool.comment("machineSpec", *(f"{name}: left out, as there is one machine instead of two." for name in lost))
    pool.comment("machineSpec", f"masterType {master.type}: left out, as the TPU's host is the master.")
    if worker.count > 1:
        pool.comment("replicaCount", f"workerCount {worker.count}: a job has one pool of TPUs, with one replica.")
    return pool


def _image(training_input: dict[str, Any], role: str) -> str | None:
    """A role's image; without one of its own it is the master's."""
    own: str | None = training_input.get(f"{role}Config", {}).get("imageUri")
    return own or training_input.get("masterConfig", {}).get("imageUri")


def _container(training_input: dict[str, Any], config: dict[str, Any], image: str) -> Fields:
    spec = Fields({"imageUri": image})
    if "containerCommand" in config:
        spec["command"] = config["containerCommand"]
    args = config.get("containerArgs") or training_input.get("args")
    if args:
        spec["args"] = args
    return spec


def _about_the_registry(image: str) -> list[str]:
    if not image.split("/")[0].endswith("gcr.io"):
        return []
    return [
        "Container Registry has ended; gcr.io names work where Artifact Registry serves them. Better copy the image "
        "there and name it here (REGION-docker.pkg.dev/PROJECT/REPOSITORY/IMAGE), or build it in this project: see "
        "images in docs/configuration.md."
    ]


def _package(training_input: dict[str, Any], role: str, spec: dict[str, Any]) -> Fields:
    runtime = training_input.get("runtimeVersion", "")
    kind = spec.get("acceleratorType", "")
    image = runtimes.executor_image(runtime or "2.11", training_input.get("region", ""), kind.startswith("NVIDIA"))
    package = Fields({"executorImageUri": image})
    if role == "master":
        python = training_input.get("pythonVersion", "3.7")
        package.comment("executorImageUri", *_about_the_image(runtime, python, kind))
    for name, placeholder in _PACKAGE.items():
        package[name] = training_input.get(name) or placeholder
        if not training_input.get(name):
            reason = f"{name} is not in the file; gcloud takes it as a flag." if role == "master" else "as above."
            package.comment(name, f"FILL IN: {reason}")
    if training_input.get("args"):
        package["args"] = training_input["args"]
    return package


def _about_the_image(runtime: str, python: str, accelerator: str) -> list[str]:
    if not runtime:
        text = "FILL IN: runtimeVersion is not in the file; gcloud takes it as a flag. This image has TensorFlow 2.11."
        return [f"{text} Others: {runtimes.PAGE}"]
    if runtime not in runtimes.RUNTIMES:
        text = f"runtimeVersion {runtime}: there is no prebuilt image of it that is known, and this one is nearest."
    else:
        text = f"runtimeVersion {runtime}: the same TensorFlow, with Python 3.7, and no longer maintained by Google."
    if python != "3.7":
        text += f" pythonVersion {python}: the image has Python 3.7."
    if accelerator.startswith("TPU"):
        text += " For TPUs choose an image tf-tpu."
    return [f"{text} Code for scikit-learn, XGBoost or PyTorch takes another: {runtimes.PAGE}"]
