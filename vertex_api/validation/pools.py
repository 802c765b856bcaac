"""Rules for a CustomJobSpec: worker pools with their machines and tasks, scheduling, networks, output."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vertex_api.jobspec import REDUCTION_SERVER_POOL, is_reduction_server, replica_count
from vertex_api.machines import ENDED, MACHINES, Machine, accelerator_of, machine_of
from vertex_api.messages import KeyPath
from vertex_api.names import closest_name, either
from vertex_api.scalars import to_seconds
from vertex_api.validation.formats import (
    C_IDENTIFIER,
    COMPUTE_NAME,
    IMAGE,
    MODULE,
    NETWORK,
    NETWORK_ATTACHMENT,
    PERSISTENT_RESOURCE_ID,
    STORAGE_URI,
    TENSORBOARD,
    Format,
    Structure,
    Violation,
    check_set,
)

_SERVICE_ACCOUNT = Format(
    re.compile(r"[0-9]+|[^@\s]+@[a-z0-9.-]+\.gserviceaccount\.com"),
    "must have the form {account}@{project}.iam.gserviceaccount.com",
)
_LOCATION = "projects/{project}/locations/{region}"
_CONTEXTS = f"{_LOCATION}/metadataStores/{{store}}/contexts"
_FORMATS = {
    "serviceAccount": _SERVICE_ACCOUNT,
    "network": NETWORK,
    "tensorboard": TENSORBOARD,
    "experiment": Format.from_template(_CONTEXTS + "/{experiment}"),
    "experimentRun": Format.from_template(_CONTEXTS + "/{experiment}-{run}"),
    "persistentResourceId": PERSISTENT_RESOURCE_ID,
}
_MODEL = Format.from_template(_LOCATION + "/models/{model}")
_ATTACHMENT = Format(
    re.compile(f"{COMPUTE_NAME.pattern.pattern}|{NETWORK_ATTACHMENT.pattern.pattern}"), NETWORK_ATTACHMENT.requirement
)


def check_job_spec(spec: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """The service's own error for a `tensorboard` without a `serviceAccount`, quoted in kubeflow/pipelines#7123."""
    yield from _check_pools(spec, at)
    yield from check_scheduling(spec, at)
    yield from _check_names(spec, at)
    if spec.get("tensorboard") and not spec.get("serviceAccount"):
        yield (*at, "serviceAccount"), "must be specified when uploading to TensorBoard"
    yield from _check_network(spec, at)
    yield from _check_output(spec, at)


def _check_names(spec: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Discovery document, CustomJobSpec: the "Format: …" of each name, and of `experimentRun`
    ".../contexts/{experiment-name}-{experiment-run-name}"."""
    for field, form in _FORMATS.items():
        yield from form.check(spec.get(field), (*at, field))
    experiment, run = (spec.get(field, "") for field in ("experiment", "experimentRun"))
    have_formats = _FORMATS["experiment"].matches(experiment) and _FORMATS["experimentRun"].matches(run)
    if have_formats and not run.startswith(f"{experiment}-"):
        yield (*at, "experimentRun"), f'"{run}" is no run of the experiment: it must begin with {experiment}-'
    for index, model in enumerate(spec.get("models", ())):
        yield from _MODEL.check(model, (*at, "models", index))


def _check_network(spec: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Discovery document, `reservedIpRanges` ("under the VPC network"), PscInterfaceConfig and DnsPeeringConfig."""
    ranges = spec.get("reservedIpRanges", ())
    if ranges and not spec.get("network"):
        yield (*at, "reservedIpRanges"), "needs network, the VPC network that the ranges are reserved in"
    for index, name in enumerate(ranges):
        if not name:
            yield (*at, "reservedIpRanges", index), "is required"
        yield from COMPUTE_NAME.check(name, (*at, "reservedIpRanges", index))
    psc, psc_path = spec.get("pscInterfaceConfig", {}), (*at, "pscInterfaceConfig")
    yield from _ATTACHMENT.check(psc.get("networkAttachment"), (*psc_path, "networkAttachment"))
    for index, peering in enumerate(psc.get("dnsPeeringConfigs", ())):
        path: KeyPath = (*psc_path, "dnsPeeringConfigs", index)
        yield from check_set(peering, ["domain", "targetProject"], path)
        yield from COMPUTE_NAME.require(peering, "targetNetwork", path)
        if peering["domain"] and not peering["domain"].endswith("."):
            yield (*path, "domain"), f'"{peering["domain"]}" must end with a dot'


def _check_output(spec: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Discovery document, GcsDestination."""
    if "baseOutputDirectory" in spec:
        path: KeyPath = (*at, "baseOutputDirectory")
        yield from STORAGE_URI.require(spec["baseOutputDirectory"], "outputUriPrefix", path)


MAX_POOLS = 4
DISK_TYPES = ("pd-ssd", "pd-standard", "hyperdisk-balanced")
_DISK_GB = range(100, 64_001)


def _check_pools(spec: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Google's page "Distributed training", "Configure a distributed training job": "one WorkerPoolSpec for each type
    of task", of which its table has four, by position."""
    pools, path = spec["workerPoolSpecs"], (*at, "workerPoolSpecs")
    if len(pools) > MAX_POOLS:
        yield path, f"has {len(pools)} pools; at most {MAX_POOLS} are allowed"
    is_on_persistent_resource = bool(spec.get("persistentResourceId"))
    for index, pool in enumerate(pools):
        yield from _check_replicas(pool, index, (*path, index))
        if pool:
            yield from _check_pool(pool, (*path, index), is_on_persistent_resource)
            yield from _check_reduction_server(pool, index, (*path, index))
    yield from _check_tpu_pool(pools, path)


def _check_replicas(pool: Mapping[str, Any], index: int, at: KeyPath) -> Iterator[Violation]:
    """Discovery document, `workerPoolSpecs`: all "except the first one are optional and can be skipped by providing an
    empty value". Google's page "Distributed training": the first is the primary replica, with a `replicaCount` of 1."""
    replicas = replica_count(pool)
    if index == 0 and not pool:
        yield at, Structure("is empty; the first pool runs the primary replica")
    elif index == 0 and replicas != 1:
        yield (*at, "replicaCount"), f"{replicas} must be 1: the first pool is the primary replica"
    elif replicas < 1:
        yield (*at, "replicaCount"), f"{replicas} is less than 1; an empty pool is written {{}}"


def _check_pool(pool: Mapping[str, Any], at: KeyPath, is_on_persistent_resource: bool) -> Iterator[Violation]:
    """Discovery document, WorkerPoolSpec: one task; a machine, except where a persistent resource has them."""
    if ("containerSpec" in pool) == ("pythonPackageSpec" in pool):
        yield at, Structure("needs exactly one of containerSpec and pythonPackageSpec")
    yield from _check_task(pool, at)
    if is_on_persistent_resource and is_reserved(pool):
        yield (*at, "machineSpec", "reservationAffinity"), f"is not for a persistent resource ({_RESERVATIONS})"
    if "machineSpec" in pool or not is_on_persistent_resource:
        yield from check_machine(pool.get("machineSpec", {}), (*at, "machineSpec"))
    if not is_on_persistent_resource:
        yield from _check_reserved(pool, at)
    yield from check_disk(pool.get("diskSpec", {}), (*at, "diskSpec"))
    yield from _check_mounts(pool, at)


_RESERVATIONS = 'Google\'s page "Use reservations with training"'


def is_reserved(pool: Mapping[str, Any]) -> bool:
    """Whether the machines of a pool may come from a reservation."""
    affinity = pool.get("machineSpec", {}).get("reservationAffinity", {})
    return affinity.get("reservationAffinityType") in ("ANY_RESERVATION", "SPECIFIC_RESERVATION")


def _check_reserved(pool: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Google's page on configuring compute resources: some machines need a shared reservation."""
    machine, affinity = machine_of(pool), pool.get("machineSpec", {}).get("reservationAffinity", {})
    kind = affinity.get("reservationAffinityType", "NO_RESERVATION")
    if machine and machine.needs_reservation and kind == "NO_RESERVATION":
        path: KeyPath = (*at, "machineSpec", "reservationAffinity")
        yield path, f"is required: {machine.name} is had with a reservation only"


def check_disk(disk_spec: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Discovery document, `bootDiskType`: "Valid values: …". Sizes: Google's page "Configure compute resources for
    custom training", on boot disks: 100 to 64,000 GB."""
    kind, size = disk_spec.get("bootDiskType"), disk_spec.get("bootDiskSizeGb")
    if kind and kind not in DISK_TYPES:
        yield (*at, "bootDiskType"), f'"{kind}" is not one of {either(DISK_TYPES)}'
    if size and size not in _DISK_GB:
        yield (*at, "bootDiskSizeGb"), f"{size} is not within {_DISK_GB.start} to {_DISK_GB.stop - 1}"


def _check_mounts(pool: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Discovery document, NfsMount: its `path` "has to start with '/'"; NfsMount and LustreMount: fields that are
    required."""
    for index, mount in enumerate(pool.get("nfsMounts", ())):
        path: KeyPath = (*at, "nfsMounts", index)
        yield from check_set(mount, ["server", "path", "mountPoint"], path)
        if mount["path"] and not mount["path"].startswith("/"):
            yield (*path, "path"), f'"{mount["path"]}" must start with /'
    for index, mount in enumerate(pool.get("lustreMounts", ())):
        fields = ["instanceIp", "filesystem", "volumeHandle", "mountPoint"]
        yield from check_set(mount, fields, (*at, "lustreMounts", index))


def _check_reduction_server(pool: Mapping[str, Any], index: int, at: KeyPath) -> Iterator[Violation]:
    """Google's page on distributed training: Reduction Server runs in the third pool, on machines without GPUs."""
    if not is_reduction_server(pool):
        return
    if index != REDUCTION_SERVER_POOL:
        place = f"workerPoolSpecs[{REDUCTION_SERVER_POOL}]"
        yield (*at, "containerSpec", "imageUri"), f"Reduction Server runs in {place}, with {{}} for a pool left out"
    if accelerator_of(pool.get("machineSpec", {})) != (None, 0):
        yield (*at, "machineSpec", "acceleratorType"), "Reduction Server runs on machines without accelerators"


def _check_tpu_pool(pools: list[Mapping[str, Any]], at: KeyPath) -> Iterator[Violation]:
    """Google's page on configuring compute resources: a TPU job has one pool, which as the first has one replica."""
    if sum(map(bool, pools)) < 2:
        return
    for index, pool in enumerate(pools):
        if (machine := machine_of(pool)) and machine.is_tpu:
            yield (*at, index, "machineSpec", "machineType"), f"{machine.name} has TPUs: it must be the job's only pool"
            return


_MAX_ENTRIES = 100
_MAX_CHARACTERS = 100_000


def _check_task(pool: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Find violations of the rules for the task of a WorkerPoolSpec."""
    if "containerSpec" in pool:
        yield from IMAGE.require(pool["containerSpec"], "imageUri", (*at, "containerSpec"))
        yield from _check_arguments(pool["containerSpec"], (*at, "containerSpec"))
    if "pythonPackageSpec" in pool:
        yield from _check_package(pool["pythonPackageSpec"], (*at, "pythonPackageSpec"))
        yield from _check_arguments(pool["pythonPackageSpec"], (*at, "pythonPackageSpec"))


def _check_package(spec: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Discovery document, `packageUris`: required, and "the maximum number of package URIs is 100"."""
    yield from IMAGE.require(spec, "executorImageUri", at)
    yield from MODULE.require(spec, "pythonModule", at)
    uris = spec["packageUris"]
    if len(uris) > _MAX_ENTRIES:
        yield (*at, "packageUris"), f"has {len(uris)} entries; at most {_MAX_ENTRIES} are allowed"
    for index, uri in enumerate(uris):
        if not uri:
            yield (*at, "packageUris", index), "is empty"
        yield from STORAGE_URI.check(uri, (*at, "packageUris", index))


def _check_arguments(spec: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Length of the arguments: Google's page on configuring container settings."""
    total = sum(map(len, spec.get("args", ())))
    if total > _MAX_CHARACTERS:
        yield (*at, "args"), f"has {total} characters in total; at most {_MAX_CHARACTERS} are allowed"
    yield from check_env(spec.get("env", ()), _MAX_ENTRIES, (*at, "env"))


def check_env(entries: Sequence[Mapping[str, Any]], max_entries: int, at: KeyPath) -> Iterator[Violation]:
    """Discovery document, `env`: "maximum limit is 100", and EnvVar: a name "must be a valid C identifier", a value is
    "required". That it is not empty: the service's own error, quoted in kubeflow/pipelines#10111."""
    if len(entries) > max_entries:
        yield at, f"has {len(entries)} entries; at most {max_entries} are allowed"
    for index, entry in enumerate(entries):
        if not C_IDENTIFIER.matches(entry["name"]):
            yield (*at, index, "name"), C_IDENTIFIER.mismatch(entry["name"])
        if not entry.get("value"):
            yield (*at, index, "value"), "is required, and not empty; leave the variable out where it has no value"


_RESERVATION = Format(
    re.compile(r"projects/[^/]+/zones/[^/]+/reservations/[^/]+(/reservationBlocks/[^/]+)?"),
    "must have the form projects/{project}/zones/{zone}/reservations/{reservation}",
)
_PARTITION = Format(re.compile(r"[0-9]+g\.[0-9]+gb"), "must be the size of a GPU partition, such as 1g.10gb")
_BOTH = "Both `accelerator_type` and `accelerator_count` should be specified or none."


def check_machine(spec: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Google's page "Configure compute resources for custom training", on machine types: each pool names one of its
    list. For others the service's own error, on Google's page "Troubleshoot Vertex AI"."""
    name = spec.get("machineType", "")
    machine = MACHINES.get(name)
    if not name:
        yield (*at, "machineType"), "is required"
    elif not machine:
        yield (*at, "machineType"), f"Machine type {name} is not supported. {_suggest_machine(name)}"
    yield from _check_accelerator(spec, machine, at)
    yield from _check_topology(spec, machine, at)
    yield from _check_partition(spec, at)
    if "reservationAffinity" in spec:
        yield from _check_affinity(spec["reservationAffinity"], (*at, "reservationAffinity"))


def _suggest_machine(machine_type: str) -> str:
    closest = closest_name(machine_type, MACHINES)
    families = dict.fromkeys(known.rpartition("-")[0] or known for known in MACHINES)
    return f"Did you mean {closest}?" if closest else f"Use one of {', '.join(families)}."


def _check_accelerator(spec: Mapping[str, Any], machine: Machine | None, at: KeyPath) -> Iterator[Violation]:
    """The service's own texts, quoted in public; which go together: Google's page on configuring compute resources."""
    kind, count = accelerator_of(spec)
    counts_by_type = machine.accelerators if machine else {}
    if count < 0:
        yield (*at, "acceleratorCount"), f"{count} must not be negative"
    elif bool(kind) != bool(count):
        yield (*at, "acceleratorType"), _BOTH
    elif not machine:
        return
    elif kind is None:
        if not machine.can_omit_accelerator:
            yield (*at, "acceleratorType"), f"{machine.name} needs an accelerator: {either(counts_by_type)}"
    elif kind not in counts_by_type:
        takes = either(counts_by_type) if counts_by_type else "no accelerator"
        message = f'Accelerator "{kind}" is not supported for machine type "{machine.name}"; it takes {takes}'
        message += f". There are none since {ENDED[kind]}" if kind in ENDED else ""
        yield (*at, "acceleratorType"), message
    elif not spec.get("gpuPartitionSize") and (counts := counts_by_type[kind]) and count not in counts:
        message = (
            f'The accelerator count "{count}" is not allowed. The allowed numbers of accelerator "{kind}" '
            f'to use with machine type "{machine.name}" are: [{_show_counts(counts)}].'
        )
        yield (*at, "acceleratorCount"), message


def _show_counts(counts: tuple[int, ...]) -> str:
    """Return a few counts in full, many as the first ones and the last."""
    first, last = (counts, "") if len(counts) <= 5 else (counts[:4], f" … {counts[-1]}")
    return ", ".join(map(str, first)) + last


def _check_topology(spec: Mapping[str, Any], machine: Machine | None, at: KeyPath) -> Iterator[Violation]:
    """Google's page on training with TPUs: v5e and newer need a topology, nothing else has one."""
    topology = spec.get("tpuTopology")
    if not machine:
        return
    if topology and not machine.topologies:
        yield (*at, "tpuTopology"), f'"{topology}": {machine.name} takes no topology'
    elif machine.topologies and topology not in machine.topologies:
        text = f'"{topology}" is not one that {machine.name} has' if topology else f"is required for {machine.name}"
        yield (*at, "tpuTopology"), f"{text}: {either(machine.topologies)}"


def _check_partition(spec: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Discovery document, `gpuPartitionSize`: "the accelerator_count should be set to 1"."""
    size = spec.get("gpuPartitionSize")
    yield from _PARTITION.check(size, (*at, "gpuPartitionSize"))
    if size and accelerator_of(spec)[1] != 1:
        yield (*at, "acceleratorCount"), f"must be 1 with gpuPartitionSize {size}"


def _check_affinity(affinity: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Discovery document, ReservationAffinity: key and values target a specific reservation, by its full name."""
    kind = affinity.get("reservationAffinityType", "TYPE_UNSPECIFIED")
    if kind == "TYPE_UNSPECIFIED":
        yield (*at, "reservationAffinityType"), "is required: NO_RESERVATION, ANY_RESERVATION or SPECIFIC_RESERVATION"
    for index, value in enumerate(affinity.get("values", ()) if kind == "SPECIFIC_RESERVATION" else ()):
        yield from _RESERVATION.check(value, (*at, "values", index))
    for field in ("key", "values"):
        if kind == "SPECIFIC_RESERVATION" and not affinity.get(field):
            yield (*at, field), "is required with SPECIFIC_RESERVATION"


_WEEK_SECONDS = 7 * 24 * 3600
_H100_AND_NEWER = ("NVIDIA_H100_80GB", "NVIDIA_H100_MEGA_80GB", "NVIDIA_H200_141GB", "NVIDIA_B200")
_FLEX_GPUS = ("NVIDIA_L4", "NVIDIA_TESLA_A100", "NVIDIA_A100_80GB", *_H100_AND_NEWER)


def check_scheduling(spec: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Discovery document, Scheduling: `timeout` is "the maximum job running time", and with a `maxWaitDuration` of 0 a
    job waits "indefinitely". A time below zero is none of both."""
    options, path = spec.get("scheduling", {}), (*at, "scheduling")
    for field in ("timeout", "maxWaitDuration"):
        if to_seconds(options.get(field, "0s")) < 0:
            yield (*path, field), f'"{options[field]}" must not be negative'
    strategy = options.get("strategy", "STANDARD")
    if strategy == "FLEX_START":
        yield from _check_flex_start(spec, at)
    if strategy == "SPOT":
        yield from _check_spot(spec, at)


def _check_flex_start(spec: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Google's page on scheduling jobs with Dynamic Workload Scheduler."""
    timeout = spec["scheduling"].get("timeout", "0s")
    if to_seconds(timeout) > _WEEK_SECONDS:
        yield (*at, "scheduling", "timeout"), f'"{timeout}" is longer than the seven days ("604800s") of FLEX_START'
    first = None
    for index, pool in enumerate(spec["workerPoolSpecs"]):
        path: KeyPath = (*at, "workerPoolSpecs", index, "machineSpec")
        machine_spec = pool.get("machineSpec", {})
        # Violations of a machine on its own are reported elsewhere.
        if not pool or any(check_machine(machine_spec, path)):
            continue
        first = index if first is None else first
        kind, _ = accelerator_of(machine_spec)
        if is_reserved(pool):
            yield (*path, "reservationAffinity"), f"is not for FLEX_START ({_RESERVATIONS})"
        elif kind not in _FLEX_GPUS:
            yield (*path, "acceleratorType"), f"{kind or 'no accelerator'}: FLEX_START takes {either(_FLEX_GPUS)}"
        elif machine_spec != spec["workerPoolSpecs"][first]["machineSpec"]:
            yield path, f"must be that of workerPoolSpecs[{first}]: FLEX_START needs the same machines in all pools"


def _check_spot(spec: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Google's page on Spot VMs: not with TPU pods, which are more than one machine. Nor with what is reserved."""
    for index, pool in enumerate(spec["workerPoolSpecs"]):
        machine_spec, machine = pool.get("machineSpec", {}), machine_of(pool)
        if not machine:
            continue
        if machine.needs_reservation:
            message = f"SPOT is not for {machine.name}, which is had with a reservation only"
            yield (*at, "scheduling", "strategy"), message
            return
        cores = accelerator_of(machine_spec)[1]
        if machine.hosts(machine_spec.get("tpuTopology", ""), cores) > 1:
            path: KeyPath = (*at, "workerPoolSpecs", index, "machineSpec", "machineType")
            yield path, f"{machine.name}: the strategy SPOT is not for TPU pods"
