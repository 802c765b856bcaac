"""Worker pools of a legacy job: one for each role that has replicas, in Vertex AI's order, on its machines.

Sources: AI Platform Training's discovery document for the tiers, Google's former page on machine types for counts of
machines and GPUs. The equivalent Compute Engine types are unverified, so comments ask to check them. Images are those
of Google's page on prebuilt containers for training (read 2026-11-21): by TensorFlow version, in three regions. All of
these are past their support; scikit-learn, XGBoost and PyTorch have images of their own.
"""

from dataclasses import dataclass
from typing import Any

from vertex_api.machines import ENDED, MACHINES
from vertex_api.names import closest_name
from vertex_api.scalars import quote

from .document import CommentedFields

ROLES = ("master", "worker", "parameterServer", "evaluator")
"""Roles of replicas; their order is that of Vertex AI's worker pools."""

LEGACY_TYPES: dict[str, tuple[str, str, int]] = {
    # name: Compute Engine's machine type, acceleratorType, acceleratorCount
    "standard": ("n1-standard-4", "", 0),
    "large_model": ("n1-highmem-8", "", 0),
    "complex_model_s": ("n1-standard-8", "", 0),  # 8 vCPUs; Vertex AI has no n1-highcpu-8
    "complex_model_m": ("n1-highcpu-16", "", 0),
    "complex_model_l": ("n1-highcpu-32", "", 0),
    "standard_gpu": ("n1-standard-8", "NVIDIA_TESLA_K80", 1),
    "standard_p100": ("n1-standard-8", "NVIDIA_TESLA_P100", 1),
    "standard_v100": ("n1-standard-8", "NVIDIA_TESLA_V100", 1),
    "large_model_v100": ("n1-highmem-8", "NVIDIA_TESLA_V100", 1),
    "complex_model_m_gpu": ("n1-standard-16", "NVIDIA_TESLA_K80", 4),
    "complex_model_m_p100": ("n1-standard-16", "NVIDIA_TESLA_P100", 4),
    "complex_model_m_v100": ("n1-standard-16", "NVIDIA_TESLA_V100", 4),
    "complex_model_l_gpu": ("n1-standard-32", "NVIDIA_TESLA_K80", 8),
    "complex_model_l_v100": ("n1-standard-32", "NVIDIA_TESLA_V100", 8),
    "cloud_tpu": ("cloud-tpu", "TPU_V2", 8),
}
REPLACEMENTS = {"n1-highcpu-8": ("n1-standard-8", "n1-highcpu-16")}
"""By a machine type that Vertex AI does not have: one with as many vCPUs, and one of the same family."""
SCALE_TIERS: dict[str, dict[str, tuple[str, int]]] = {
    # name: the machine type and the number of replicas of each role
    "BASIC": {"master": ("standard", 1)},
    "STANDARD_1": {
        "master": ("complex_model_s", 1),
        "worker": ("complex_model_s", 4),
        "parameterServer": ("standard", 3),
    },
    "PREMIUM_1": {
        "master": ("complex_model_m", 1),
        "worker": ("complex_model_m", 19),
        "parameterServer": ("large_model", 11),
    },
    "BASIC_GPU": {"master": ("standard_gpu", 1)},
    "BASIC_TPU": {"master": ("cloud_tpu", 1)},
}
"""All but CUSTOM."""
RUNTIMES = ("1.15", "2.1", "2.2", "2.3", "2.4", "2.5", "2.6", "2.7", "2.8", "2.9", "2.11")
"""Versions of TensorFlow that have a prebuilt image with Python 3.7, as AI Platform's runtimes of the same number."""
PAGE = "https://cloud.google.com/vertex-ai/docs/training/pre-built-containers"
_MACHINE_PAGE = "https://cloud.google.com/vertex-ai/docs/training/configure-compute"
_PACKAGE = {"packageUris": ["gs://your-bucket/trainer-0.1.tar.gz"], "pythonModule": "trainer.task"}
"""Placeholders of fields that `gcloud` takes as flags, so that a file may not have them."""


@dataclass(frozen=True)
class Replicas:
    """One role's machines. `source` is the field of the legacy job that asks for them."""

    role: str
    type: str
    count: int
    source: str

    @property
    def is_tpu(self) -> bool:
        """Whether they are hosts of TPUs."""
        return "tpu" in self.type


def replicas_of(training_input: dict[str, Any]) -> list[Replicas]:
    """Return the replicas of each role that a valid TrainingInput asks for."""
    tier = training_input.get("scaleTier")
    if tier != "CUSTOM" and "masterType" not in training_input:
        source = f"scaleTier {tier or 'BASIC'}"
        return [Replicas(role, *machines, source) for role, machines in SCALE_TIERS[tier or "BASIC"].items()]
    counts = {"master": 1, **{role: training_input.get(f"{role}Count", 0) for role in ROLES[1:]}}
    return [
        Replicas(role, training_input[f"{role}Type"], counts[role], f"{role}Type") for role in ROLES if counts[role]
    ]


def convert_pools(training_input: dict[str, Any]) -> list[CommentedFields]:
    """Return the `workerPoolSpecs`, with comments, of a valid TrainingInput."""
    replicas = {each.role: each for each in replicas_of(training_input)}
    worker = replicas.get("worker")
    if worker and worker.is_tpu:
        return [_merge_tpu_pool(training_input, replicas["master"], worker)]
    pools = []
    for role in ROLES[: max(ROLES.index(role) for role in replicas) + 1]:
        pools.append(_convert_pool(training_input, replicas[role]) if role in replicas else CommentedFields())
        if role not in replicas:
            pools[-1].comment("", f"No {role} replicas; {{}} keeps their place.")
    return pools


def ignored_comments(training_input: dict[str, Any]) -> list[str]:
    """Return comments on fields of pools that are left out: of roles without replicas, or of code that does not run."""
    comments = []
    replicas = {each.role: each for each in replicas_of(training_input)}
    for role in ROLES[1:]:
        fields = [f"{role}{name}" for name in ("Type", "Config") if f"{role}{name}" in training_input]
        if fields and role not in replicas:
            comments.append(f"{' and '.join(fields)}: left out, as {role}Count is 0.")
        elif role in replicas and role != "worker" and "worker" in replicas and replicas["worker"].is_tpu:
            comments.append(f"{role}Count {replicas[role].count}: left out, as a job with TPUs has one pool.")
    if _image(training_input, "master"):
        comments += [
            f"{name} {quote(training_input[name])}: left out; a container brings its own."
            for name in ("packageUris", "pythonModule", "runtimeVersion", "pythonVersion")
            if name in training_input
        ]
    return comments


def _convert_pool(training_input: dict[str, Any], replicas: Replicas) -> CommentedFields:
    config = training_input.get(f"{replicas.role}Config", {})
    spec, comments = _machine_spec(replicas, config.get("acceleratorConfig", {}))
    pool = CommentedFields({"machineSpec": spec, "replicaCount": replicas.count})
    pool.comment("machineSpec", *comments)
    if replicas.is_tpu:
        text = f"{replicas.source}: in Vertex AI the code runs on the TPU's own host; there is no other master."
        pool.comment("machineSpec", text)
    if image := _image(training_input, replicas.role):
        pool["containerSpec"] = container = CommentedFields({"imageUri": image})
        if "containerCommand" in config:
            container["command"] = config["containerCommand"]
        if args := config.get("containerArgs") or training_input.get("args"):
            container["args"] = args
        if (replicas.role == "master" or "imageUri" in config) and image.split("/")[0].endswith("gcr.io"):
            text = (
                "Container Registry has ended; gcr.io names work where Artifact Registry serves them. Better copy the "
                "image there and name it here (REGION-docker.pkg.dev/PROJECT/REPOSITORY/IMAGE), or build it in this "
                "project: see images in `vertex-training docs configuration`."
            )
            container.comment("imageUri", text)
    else:
        pool["pythonPackageSpec"] = _python_package(training_input, replicas.role, spec.get("acceleratorType", ""))
    if "diskConfig" in config:
        disk = config["diskConfig"]
        pool["diskSpec"] = {name: disk[name] for name in ("bootDiskType", "bootDiskSizeGb") if name in disk}
    if "tpuTfVersion" in config:
        text = f"tpuTfVersion {config['tpuTfVersion']}: left out; the image's own TensorFlow drives the TPU."
        pool.comment("machineSpec", text)
    return pool


def _merge_tpu_pool(training_input: dict[str, Any], master: Replicas, worker: Replicas) -> CommentedFields:
    """Vertex AI runs the master's code on the TPU's host: a machine as the worker's, as the job's only pool."""
    master_config, worker_config = training_input.get("masterConfig", {}), training_input.get("workerConfig", {})
    config = worker_config | {name: value for name, value in master_config.items() if name != "acceleratorConfig"}
    host = Replicas("master", worker.type, 1, "workerType")
    pool = _convert_pool({**training_input, "masterConfig": config}, host)
    ignored = [f"masterConfig.{name}" for name in master_config if name == "acceleratorConfig"]
    ignored += [f"workerConfig.{name}" for name in worker_config if worker_config[name] != config[name]]
    comments = [f"{name}: left out, as there is one machine instead of two." for name in ignored]
    text = f"masterType {master.type}: left out, as the TPU's host is the master."
    pool.comment("machineSpec", *comments, text)
    if worker.count > 1:
        text = f"workerCount {worker.count}: a job has one pool of TPUs, with one replica."
        pool.comment("replicaCount", text)
    return pool


def _image(training_input: dict[str, Any], role: str) -> str | None:
    """Return the image of a role: its own, or the master's."""
    own: str | None = training_input.get(f"{role}Config", {}).get("imageUri")
    return own or training_input.get("masterConfig", {}).get("imageUri")


def _python_package(training_input: dict[str, Any], role: str, accelerator_type: str) -> CommentedFields:
    runtime, region = training_input.get("runtimeVersion", ""), training_input.get("region", "")
    has_gpu = accelerator_type.startswith("NVIDIA")
    package = CommentedFields({"executorImageUri": executor_image(runtime or "2.11", region, has_gpu)})
    if role == "master":
        text = _image_comment(runtime, training_input.get("pythonVersion", "3.7"), accelerator_type)
        package.comment("executorImageUri", text)
    for name, placeholder in _PACKAGE.items():
        package[name] = training_input.get(name) or placeholder
        if not training_input.get(name):
            reason = f"{name} is not in the file; gcloud takes it as a flag." if role == "master" else "as above."
            package.comment(name, f"FILL IN: {reason}")
    if training_input.get("args"):
        package["args"] = training_input["args"]
    return package


def _image_comment(runtime: str, python_version: str, accelerator_type: str) -> str:
    if not runtime:
        text = "FILL IN: runtimeVersion is not in the file; gcloud takes it as a flag. This image has TensorFlow 2.11."
        return f"{text} Others: {PAGE}"
    if runtime not in RUNTIMES:
        text = f"runtimeVersion {runtime}: there is no prebuilt image of it that is known, and this one is nearest."
    else:
        text = f"runtimeVersion {runtime}: the same TensorFlow, with Python 3.7, and no longer maintained by Google."
    text += f" pythonVersion {python_version}: the image has Python 3.7." if python_version != "3.7" else ""
    text += " For TPUs choose an image tf-tpu." if accelerator_type.startswith("TPU") else ""
    return f"{text} Code for scikit-learn, XGBoost or PyTorch takes another: {PAGE}"


def _machine_spec(replicas: Replicas, accelerator: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the MachineSpec of a role, and comments on what changes. `accelerator` is its AcceleratorConfig or {}."""
    comments, source = [], f"{replicas.source} {replicas.type}"
    name, kind, count = LEGACY_TYPES.get(replicas.type, (replicas.type, "", 0))
    if replicas.type in LEGACY_TYPES and not replicas.is_tpu:
        source = source if replicas.source.endswith("Type") else f"{replicas.source}: the type {replicas.type}"
        gpus = f" with {count} {kind}" if kind else ""
        comments.append(f"{source} is about an {name}{gpus}; check whether that is its size.")
    if name in REPLACEMENTS:
        name, other = REPLACEMENTS[name]
        text = f"Vertex AI has none; {name} has as many vCPUs, and {other} is of the same family."
        comments.append(f"{source}: {text}")
    elif name not in MACHINES:
        # What once ran is converted, though nobody can say any more what it was.
        name, comment = _stand_in(name, is_tpu=replicas.is_tpu)
        comments.append(f"FILL IN: {source}: {comment}")
    if accelerator.get("type", "ACCELERATOR_TYPE_UNSPECIFIED") != "ACCELERATOR_TYPE_UNSPECIFIED":
        kind, count = accelerator["type"], accelerator.get("count", 1)
    elif replicas.is_tpu:
        kind, count = "TPU_V2", 8
    if kind.startswith(("TPU_V2_POD", "TPU_V3_POD")):
        kind = kind.removesuffix("_POD")
    machine = MACHINES.get(name)
    if kind in ENDED and machine and "NVIDIA_TESLA_T4" in machine.gpus:
        counts = machine.gpus["NVIDIA_TESLA_T4"]
        t4_count = next((possible for possible in counts if possible >= count), counts[-1])
        comments.append(f"{kind} is no longer there: {t4_count} NVIDIA_TESLA_T4 in place of {count}.")
        kind, count = "NVIDIA_TESLA_T4", t4_count
    return {"machineType": name, **({"acceleratorType": kind, "acceleratorCount": count} if kind else {})}, comments


def _stand_in(name: str, *, is_tpu: bool) -> tuple[str, str]:
    """Return a machine type in place of one that Vertex AI does not have, and a comment on it."""
    sized = closest_name(name, MACHINES) or ""
    if sized.rpartition("-")[0] == name.rpartition("-")[0] != "":
        return sized, f"Vertex AI has none; {sized} is the next size of its family."
    stand_in = "cloud-tpu" if is_tpu else "n1-standard-4"
    return stand_in, f"not a known machine type; {stand_in} stands in for it. Vertex AI's types: {_MACHINE_PAGE}"


def executor_image(runtime_version: str, region: str, has_gpu: bool) -> str:
    """Return the URI of the prebuilt image of a runtime version; of the next version that has one, or of the newest."""
    places = {"europe": "europe", "asia": "asia", "australia": "asia"}
    place = next((place for start, place in places.items() if region.startswith(start)), "us")
    version = next((known for known in RUNTIMES if _version(known) >= _version(runtime_version)), RUNTIMES[-1])
    image = f"tf-{'gpu' if has_gpu else 'cpu'}.{version.replace('.', '-')}"
    return f"{place}-docker.pkg.dev/vertex-ai/training/{image}:latest"


def _version(version: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdecimal() else 0 for part in version.split("."))
