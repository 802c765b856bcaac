"""The environment of a replica: the variables that Vertex sets, host names, and `$(VAR)` references.

Source of the variables: Google's page on code requirements and distributed training, and environments of real jobs that
people published; open points are listed in docs/fidelity.md.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vertex_api.jobspec import output_folders
from vertex_api.scalars import quote
from vertex_emulator.database.records import Job, Replica
from vertex_emulator.errors import ReplicaCannotStart

PROJECT = "CLOUD_ML_PROJECT_ID"
"""The variable with the number of the job's project."""
TF_PORT = 2222
TRAINING_PORT = 3333
STATUSZ_PORT = 6000
METRIC_FOLDER = "/tmp/hypertune"  # the default of Google's hypertune library, inside the container
MAX_TEXT_BYTES = 128 << 10
"""The longest argument, or variable as NAME=value, that Linux starts a program with: MAX_ARG_STRLEN, with a NUL."""
MAX_TOTAL_BYTES = 2 << 20
"""All of them together, with a pointer to each: ARG_MAX with the usual stack."""
_POOLS = ("workerpool0", "workerpool1", "workerpool2", "workerpool3")
_TF_TASKS = ("chief", "worker", "ps", "evaluator")
_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # those of Kubernetes
_POINTER_BYTES = 8
_REFERENCE = re.compile(r"\$\$|\$\(([^()]*)\)")
_ADVICE = "with $(NAME) references expanded; write the text to a file in a bucket and read that from /gcs"


def service_variables(job: Job, replica: Replica, metric_id: str | None = None) -> dict[str, str]:
    """The variables of one replica; `metric_id` is the study's first metric, for a trial's job."""
    spec = job.spec["jobSpec"]
    replicas = job.requested_replicas
    variables = {
        "CLOUD_ML_JOB": _program_json(job, replica),
        "CLOUD_ML_JOB_ID": job.owner[1],
        PROJECT: job.location.project_number,
        "CLOUD_ML_REGION": job.location.region,
        "CLUSTER_SPEC": json.dumps({**_cluster_spec(job, replica, _POOLS), "open_ports": [TRAINING_PORT]}),
        "RANK": str(replicas.index(replica)),
        "WORLD_SIZE": str(len(replicas)),
        "MASTER_ADDR": hostname(job.id, 0, 0),
        "MASTER_PORT": str(TRAINING_PORT),
        **_kubernetes_variables(job),
        **output_folders(spec),
    }

    # What depends on the spec.
    if "containerSpec" in spec["workerPoolSpecs"][replica.pool]:
        variables["AIP_USE_CUSTOM_CONTAINER"] = "true"
    if len(replicas) > 1:
        variables["TF_CONFIG"] = json.dumps(_cluster_spec(job, replica, _TF_TASKS))
    if "serviceAccount" in spec:
        variables["CLOUD_ML_JOB_SA"] = spec["serviceAccount"]
    if "tensorboard" in spec:
        variables["AIP_TENSORBOARD_RESOURCE_NAME"] = spec["tensorboard"]

    experiment, run = (spec.get(name, "").rpartition("/")[2] for name in ("experiment", "experimentRun"))
    if "experiment" in spec:
        variables["AIP_EXPERIMENT_NAME"] = experiment
        # The context of a run is called EXPERIMENT-RUN; Google's SDK takes the run's own name.
        variables["AIP_EXPERIMENT_RUN_NAME"] = run.removeprefix(f"{experiment}-") or job.id

    if job.trial is not None:
        variables["CLOUD_ML_TRIAL_ID"] = str(job.trial)
        variables["CLOUD_ML_HP_METRIC_FILE"] = f"{METRIC_FOLDER}/output.metrics"
        if metric_id is not None:
            variables["CLOUD_ML_HP_METRIC_TAG"] = metric_id
    return variables


def _program_json(job: Job, replica: Replica) -> str:
    """The Python package for CLOUD_ML_JOB and the `job` of CLUSTER_SPEC; fields are empty for a container.

    As in the logs and environments of real jobs; `$(VAR)` in arguments is not expanded.
    """
    package = job.spec["jobSpec"]["workerPoolSpecs"][replica.pool].get("pythonPackageSpec", {})
    program = {
        "python_module": package.get("pythonModule", ""),
        "package_uris": package.get("packageUris", []),
        "job_args": package.get("args", []),
    }
    return json.dumps(program, separators=(",", ":"))


def _cluster_spec(job: Job, replica: Replica, task_types: Sequence[str]) -> dict[str, Any]:
    """All replicas of the job and the place of one; `task_types` has the name of each pool."""
    cluster: dict[str, list[str]] = {}
    for place in job.requested_replicas:
        address = f"{hostname(job.id, place.pool, place.index)}:{TF_PORT}"
        cluster.setdefault(task_types[place.pool], []).append(address)
    # An evaluator has a task of its own but is no part of the cluster (TensorFlow's rule).
    cluster.pop("evaluator", None)
    task: dict[str, Any] = {"type": task_types[replica.pool], "index": replica.index}
    if job.trial is not None:
        task["trial"] = str(job.trial)
    return {"cluster": cluster, "environment": "cloud", "task": task, "job": _program_json(job, replica)}


def _kubernetes_variables(job: Job) -> dict[str, str]:
    prefix = f"CMLE_TRAINING_WORKERPOOL0_{_job_digits(job.id).upper()}_0_SERVICE"
    return {
        f"{prefix}_HOST": hostname(job.id, 0, 0),
        f"{prefix}_PORT": str(TF_PORT),
        f"{prefix}_PORT_TF_PORT": str(TF_PORT),
        f"{prefix}_PORT_TRAINING_PORT": str(TRAINING_PORT),
        f"{prefix}_PORT_STATUSZ": str(STATUSZ_PORT),
    }


def hostname(job_id: str, pool: int, index: int) -> str:
    """The name of a replica in CLUSTER_SPEC, for example `cmle-training-workerpool0-669872baaf-0`."""
    return f"cmle-training-workerpool{pool}-{_job_digits(job_id)}-{index}"


def pod_hostname(job_id: str, pool: int, index: int) -> str:
    """What `hostname` says in a replica, for example `cmle-training-workerpool0-669872baaf-0-cd5sv`.

    It is the name of a Kubernetes pod: that of CLUSTER_SPEC with a suffix, by which no replica finds its rank.
    """
    name = hostname(job_id, pool, index)
    digest = hashlib.sha256(name.encode()).digest()
    return f"{name}-{''.join(_SUFFIX_LETTERS[byte % len(_SUFFIX_LETTERS)] for byte in digest[:5])}"


def _job_digits(job_id: str) -> str:
    return hashlib.sha256(job_id.encode()).hexdigest()[:10]


@dataclass
class ContainerTexts:
    """The environment, command and args of a container, expanded.

    Their size is limited while they are expanded: a few variables that each repeat the last one would fill the memory.
    """

    environment: dict[str, str] = field(default_factory=dict)
    command: list[str] | None = None
    args: list[str] | None = None
    _total_bytes: int = 0

    @classmethod
    def expand(cls, container_spec: Mapping[str, Any], service_variables: Mapping[str, str]) -> "ContainerTexts":
        """Expand a ContainerSpec. A variable sees the service's and those before it.

        Raises ReplicaCannotStart, naming the field, for what is longer than Linux takes.
        """
        texts = cls()
        for name, value in service_variables.items():
            texts._set(name, value)
        for variable in container_spec.get("env", []):
            name = variable["name"]
            texts._set(name, expand(variable.get("value", ""), texts.environment, f"the variable {name}"))
        texts.command = texts._expand_words(container_spec.get("command"))
        texts.args = texts._expand_words(container_spec.get("args"))
        return texts

    def _set(self, name: str, value: str) -> None:
        self._count(f"the variable {name}", f"{name}={value}")
        self.environment[name] = value

    def _expand_words(self, words: list[str] | None) -> list[str] | None:
        if words is None:
            return None
        expanded = []
        for word in words:
            place = f"the argument {quote(word)}"
            expanded.append(expand(word, self.environment, place))
            self._count(place, expanded[-1])
        return expanded

    def _count(self, place: str, text: str) -> None:
        size = len(text.encode()) + 1
        if size > MAX_TEXT_BYTES:
            raise _too_long(place)
        self._total_bytes += size + _POINTER_BYTES
        if self._total_bytes > MAX_TOTAL_BYTES:
            limit = f"{MAX_TOTAL_BYTES >> 20} MiB, the most that Linux takes"
            raise ReplicaCannotStart(f"env, command and args are together longer than {limit}, {_ADVICE}")


def expand(text: str, variables: Mapping[str, str], place: str = "text") -> str:
    """Expand `$(NAME)` to its value; an unknown name stays as written and `$$(NAME)` becomes `$(NAME)`.

    Kubernetes reads left to right and makes `$$` one `$` wherever it stands
    (its documentation on dependent environment variables; Vertex's containers run under it).
    Raises ReplicaCannotStart, naming `place`, as soon as the result is too long for Linux.
    """
    parts, end, size = list[str](), 0, 0
    for match in _REFERENCE.finditer(text):
        value = "$" if match[1] is None else variables.get(match[1], match[0])
        parts += text[end : match.start()], value
        size += match.start() - end + len(value)
        if size >= MAX_TEXT_BYTES:
            raise _too_long(place)
        end = match.end()
    return "".join([*parts, text[end:]])


def escape(text: str) -> str:
    """Escape text so that `expand` returns it unchanged."""
    return text.replace("$", "$$")


def _too_long(place: str) -> ReplicaCannotStart:
    limit = f"{MAX_TEXT_BYTES >> 10} KiB, the most that Linux takes for one"
    return ReplicaCannotStart(f"{place} is longer than {limit}, {_ADVICE}")
