"""Rules for a CustomJobSpec."""

from typing import Any

import pytest

from tests.vertex_api.jobs import ABSENT, custom_job
from tests.vertex_api.validation.breaking import (
    POOLS,
    pool,
    said_of_custom_job,
    said_of_machine,
    said_of_pool,
    said_of_spec,
)
from vertex_api import jobspec

ACCOUNT = "trainer@my-project.iam.gserviceaccount.com"
TENSORBOARD = "projects/p/locations/us-central1/tensorboards/1"
CONTEXTS = "projects/p/locations/us-central1/metadataStores/default/contexts"
NETWORK = "projects/12345/global/networks/default"
PEERING = {"domain": "corp.example.", "targetProject": "p", "targetNetwork": "vpc"}


@pytest.mark.parametrize(
    "fields",
    [
        {"serviceAccount": ACCOUNT},
        {"serviceAccount": "123-compute@developer.gserviceaccount.com"},
        {"serviceAccount": "113344556677889900112"},
        {"network": NETWORK, "reservedIpRanges": ["vertex-ai-ip-range"]},
        {"network": ""},
        {"tensorboard": TENSORBOARD, "serviceAccount": ACCOUNT},
        {"experiment": f"{CONTEXTS}/exp", "experimentRun": f"{CONTEXTS}/exp-run"},
        {"persistentResourceId": "my-resource-1"},
        {"models": ["projects/p/locations/us-central1/models/m@2"]},
        {"baseOutputDirectory": {"outputUriPrefix": "gs://bucket"}},
        {"baseOutputDirectory": {"outputUriPrefix": "gs://bucket/a folder/"}},
        {"pscInterfaceConfig": {"networkAttachment": "attachment", "dnsPeeringConfigs": [PEERING]}},
        {"pscInterfaceConfig": {"networkAttachment": "projects/p/regions/us-central1/networkAttachments/a"}},
        {"protectedArtifactLocationId": "europe-west4", "enableWebAccess": True},
    ],
)
def test_names_in_their_form_are_taken(fields: dict[str, Any]) -> None:
    assert said_of_spec(**fields) == []


@pytest.mark.parametrize(
    ("field", "value", "form"),
    [
        ("serviceAccount", "me@example.com", "{account}@{project}.iam.gserviceaccount.com"),
        ("serviceAccount", "trainer", "{account}@{project}.iam.gserviceaccount.com"),
        ("network", "projects/my-project/global/networks/default", "projects/{number}/global/networks/{network}"),
        ("network", "default", "projects/{number}/global/networks/{network}"),
        ("experiment", "exp", "projects/{project}/locations/{region}/metadataStores/{store}/contexts/{experiment}"),
        (
            "experimentRun",
            "run",
            "projects/{project}/locations/{region}/metadataStores/{store}/contexts/{experiment}-{run}",
        ),
    ],
)
def test_malformed_names_show_the_right_form(field: str, value: str, form: str) -> None:
    assert said_of_spec(**{field: value}) == [f'jobSpec.{field}: "{value}" must have the form {form}']


@pytest.mark.parametrize("id_", ["Upper", "1st", "a-", "a_b", "projects/p/locations/r/persistentResources/x"])
def test_a_persistent_resource_is_named_by_its_id(id_: str) -> None:
    assert said_of_spec(persistentResourceId=id_) == [
        f'jobSpec.persistentResourceId: "{id_}" must be at most 63 lower-case letters, digits and hyphens, start '
        "with a letter and not end with a hyphen"
    ]


def test_tensorboard_needs_a_service_account() -> None:
    assert said_of_spec(tensorboard=TENSORBOARD) == [
        "jobSpec.serviceAccount: must be specified when uploading to TensorBoard"
    ]
    (said,) = said_of_spec(tensorboard="board", serviceAccount=ACCOUNT)
    form = "projects/{project}/locations/{region}/tensorboards/{tensorboard}"
    assert said == f'jobSpec.tensorboard: "board" must have the form {form}'


def test_reserved_ranges_are_names_within_a_network() -> None:
    assert said_of_spec(reservedIpRanges=["a"]) == [
        "jobSpec.reservedIpRanges: needs network, the VPC network that the ranges are reserved in"
    ]
    rule = "must be at most 63 lower-case letters, digits and hyphens, start with a letter and not end with a hyphen"
    assert said_of_spec(network=NETWORK, reservedIpRanges=["ok", "10.0.0.0/8", ""]) == [
        f'jobSpec.reservedIpRanges[1]: "10.0.0.0/8" {rule}',
        "jobSpec.reservedIpRanges[2]: is required",
    ]


def test_private_service_connect_has_its_forms() -> None:
    said = said_of_spec(
        pscInterfaceConfig={
            "networkAttachment": "a/b",
            "dnsPeeringConfigs": [
                PEERING,
                PEERING | {"domain": "corp"},
                PEERING | {"targetProject": "", "targetNetwork": "a/b"},
            ],
        }
    )
    at = "jobSpec.pscInterfaceConfig"
    assert said == [
        f'{at}.networkAttachment: "a/b" must have the form '
        "projects/{project}/regions/{region}/networkAttachments/{attachment}",
        f'{at}.dnsPeeringConfigs[1].domain: "corp" must end with a dot',
        f"{at}.dnsPeeringConfigs[2].targetProject: is required",
        f'{at}.dnsPeeringConfigs[2].targetNetwork: "a/b" must be at most 63 lower-case letters, digits and hyphens, '
        "start with a letter and not end with a hyphen",
    ]


@pytest.mark.parametrize("uri", ["bucket/folder", "s3://bucket/x", "gs://", "gs:///x", "gs://Bucket/x", "gs://b/\n"])
def test_outputs_go_to_cloud_storage(uri: str) -> None:
    (said,) = said_of_spec(baseOutputDirectory={"outputUriPrefix": uri})
    assert said.startswith("jobSpec.baseOutputDirectory.outputUriPrefix: ")
    assert said.endswith("must have the form gs://{bucket}/{object}")


def test_an_output_directory_without_a_uri_is_incomplete() -> None:
    said = said_of_spec(baseOutputDirectory={"outputUriPrefix": ""})
    assert said == ["jobSpec.baseOutputDirectory.outputUriPrefix: is required"]


def test_models_have_names() -> None:
    assert said_of_spec(models=["m"]) == [
        'jobSpec.models[0]: "m" must have the form projects/{project}/locations/{region}/models/{model}'
    ]


def test_a_run_s_name_begins_with_its_experiment() -> None:
    contexts = "projects/p/locations/us-central1/metadataStores/default/contexts"
    assert said_of_spec(experiment=f"{contexts}/e", experimentRun=f"{contexts}/e-1") == []
    assert said_of_spec(experiment=f"{contexts}/e", experimentRun=f"{contexts}/f-1") == [
        f'jobSpec.experimentRun: "{contexts}/f-1" is no run of the experiment: it must begin with {contexts}/e-'
    ]


REDUCTION = jobspec.reduction_server_image("us-central1")
NFS = {"server": "10.0.0.2", "path": "/share", "mountPoint": "data"}
LUSTRE = {"instanceIp": "10.0.0.3", "filesystem": "fs", "volumeHandle": "v", "mountPoint": "data"}
PACKAGE = {"executorImageUri": "e", "packageUris": ["gs://b/p.tar.gz"], "pythonModule": "m"}
V5E = {"machineType": "ct5lp-hightpu-4t", "tpuTopology": "2x2"}


def test_at_most_four_pools_some_empty_are_accepted() -> None:
    assert said_of_spec(workerPoolSpecs=[pool(), pool(replicaCount=3), {}, pool()]) == []
    assert said_of_spec(workerPoolSpecs=[pool()] * 5) == [f"{POOLS}: has 5 pools; at most 4 are allowed"]


def test_the_first_pool_is_one_primary_replica() -> None:
    primary = "must be 1: the first pool is the primary replica"
    assert said_of_spec(workerPoolSpecs=[{}, pool()]) == [
        f"{POOLS}[0]: is empty; the first pool runs the primary replica"
    ]
    assert said_of_pool(replicaCount=0) == [f"{POOLS}[0].replicaCount: 0 {primary}"]
    assert said_of_pool(replicaCount="2") == [f"{POOLS}[0].replicaCount: 2 {primary}"]
    assert said_of_custom_job("jobSpec", "workerPoolSpecs", 0, "replicaCount", to=ABSENT) == []


@pytest.mark.parametrize("replicas", [0, -1])
def test_later_pools_have_replicas_or_are_empty(replicas: int) -> None:
    said = said_of_spec(workerPoolSpecs=[pool(), pool(replicaCount=replicas)])
    assert said == [f"{POOLS}[1].replicaCount: {replicas} is less than 1; an empty pool is written {{}}"]


def test_a_pool_runs_a_container_or_a_package() -> None:
    expected = [f"{POOLS}[0]: needs exactly one of containerSpec and pythonPackageSpec"]
    assert said_of_pool(pythonPackageSpec=PACKAGE) == expected
    assert said_of_custom_job("jobSpec", "workerPoolSpecs", 0, "containerSpec", to=ABSENT) == expected


def test_machines_are_required_without_a_persistent_resource() -> None:
    without = pool()
    del without["machineSpec"]
    assert said_of_spec(workerPoolSpecs=[without]) == [f"{POOLS}[0].machineSpec.machineType: is required"]
    assert said_of_spec(workerPoolSpecs=[without], persistentResourceId="mine") == []


@pytest.mark.parametrize("kind", ["pd-ssd", "pd-standard", "hyperdisk-balanced", ""])
@pytest.mark.parametrize("size", [100, 64000, 0])
def test_disks_of_100_to_64000_gb_are_taken(kind: str, size: int) -> None:
    assert said_of_pool(diskSpec={"bootDiskType": kind, "bootDiskSizeGb": size}) == []


def test_other_disks_are_refused() -> None:
    assert said_of_pool(diskSpec={"bootDiskType": "ssd", "bootDiskSizeGb": 99}) == [
        f'{POOLS}[0].diskSpec.bootDiskType: "ssd" is not one of pd-ssd, pd-standard or hyperdisk-balanced',
        f"{POOLS}[0].diskSpec.bootDiskSizeGb: 99 is not within 100 to 64000",
    ]
    for size in (64001, -5):
        (said,) = said_of_pool(diskSpec={"bootDiskSizeGb": size})
        assert said == f"{POOLS}[0].diskSpec.bootDiskSizeGb: {size} is not within 100 to 64000"


def test_mounts_are_complete() -> None:
    assert said_of_pool(nfsMounts=[NFS], lustreMounts=[LUSTRE]) == []
    assert said_of_pool(nfsMounts=[NFS, NFS | {"path": "share", "server": ""}]) == [
        f"{POOLS}[0].nfsMounts[1].server: is required",
        f'{POOLS}[0].nfsMounts[1].path: "share" must start with /',
    ]
    said = said_of_pool(lustreMounts=[dict.fromkeys(LUSTRE, "")])
    assert said == [f"{POOLS}[0].lustreMounts[0].{field}: is required" for field in LUSTRE]


def test_reduction_server_is_the_third_pool_without_accelerators() -> None:
    def reducers(**fields: Any) -> dict[str, Any]:
        return pool(containerSpec={"imageUri": REDUCTION}, **fields)

    assert said_of_spec(workerPoolSpecs=[pool(), pool(), reducers()]) == []
    assert said_of_spec(workerPoolSpecs=[pool(), reducers()]) == [
        f"{POOLS}[1].containerSpec.imageUri: Reduction Server runs in workerPoolSpecs[2], with {{}} for a pool left out"
    ]
    gpu = {"machineType": "n1-standard-4", "acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": 1}
    assert said_of_spec(workerPoolSpecs=[pool(), {}, reducers(machineSpec=gpu)]) == [
        f"{POOLS}[2].machineSpec.acceleratorType: Reduction Server runs on machines without accelerators"
    ]


def test_tpus_are_one_pool_of_one_replica() -> None:
    alone = f"{POOLS}[{{}}].machineSpec.machineType: ct5lp-hightpu-4t has TPUs: it must be the job's only pool"
    assert said_of_spec(workerPoolSpecs=[pool(machineSpec=V5E), {}]) == []
    assert said_of_spec(workerPoolSpecs=[pool(machineSpec=V5E), pool()]) == [alone.format(0)]
    assert said_of_spec(workerPoolSpecs=[pool(), pool(machineSpec=V5E, replicaCount=2)]) == [alone.format(1)]
    assert said_of_spec(workerPoolSpecs=[pool(machineSpec=V5E), pool(machineSpec=V5E)]) == [alone.format(0)]


def test_reservation_only_machines_need_a_reservation() -> None:
    gb200 = {"machineType": "a4x-highgpu-4g", "acceleratorType": "NVIDIA_GB200", "acceleratorCount": 4}
    needed = f"{POOLS}[0].machineSpec.reservationAffinity: is required: a4x-highgpu-4g is had with a reservation only"
    none, some = ({"reservationAffinity": {"reservationAffinityType": f"{each}_RESERVATION"}} for each in ("NO", "ANY"))
    assert said_of_pool(machineSpec=gb200) == [needed]
    assert said_of_pool(machineSpec=gb200 | none) == [needed]
    assert said_of_pool(machineSpec=gb200 | some) == []
    assert said_of_spec(workerPoolSpecs=[pool(machineSpec=gb200)], persistentResourceId="r") == []
    assert said_of_spec(workerPoolSpecs=[pool(machineSpec=gb200 | some)], scheduling={"strategy": "SPOT"}) == [
        "jobSpec.scheduling.strategy: SPOT is not for a4x-highgpu-4g, which is had with a reservation only"
    ]


NAME_RULE = "must be letters, digits and underscores, and not start with a digit"


def said_of_package(**fields: Any) -> list[str]:
    pool = {**custom_job()["jobSpec"]["workerPoolSpecs"][0], "pythonPackageSpec": PACKAGE | fields}
    del pool["containerSpec"]
    return [text.removeprefix(f"{POOLS}[0].pythonPackageSpec.") for text in said_of_spec(workerPoolSpecs=[pool])]


def test_an_image_is_required() -> None:
    assert said_of_pool(containerSpec={"imageUri": ""}) == [f"{POOLS}[0].containerSpec.imageUri: is required"]


def test_arguments_have_100000_characters_in_total() -> None:
    assert said_of_pool(containerSpec={"imageUri": "i", "args": ["x" * 99_999, "y"]}) == []
    assert said_of_pool(containerSpec={"imageUri": "i", "args": ["x" * 99_999, "y", "z"]}) == [
        f"{POOLS}[0].containerSpec.args: has 100001 characters in total; at most 100000 are allowed"
    ]
    assert said_of_package(args=["x" * 100_001]) == ["args: has 100001 characters in total; at most 100000 are allowed"]


def test_an_environment_has_at_most_100_variables() -> None:
    entries = [{"name": f"_V{index}", "value": "1"} for index in range(101)]
    assert said_of_pool(containerSpec={"imageUri": "i", "env": entries[:100]}) == []
    assert said_of_pool(containerSpec={"imageUri": "i", "env": entries}) == [
        f"{POOLS}[0].containerSpec.env: has 101 entries; at most 100 are allowed"
    ]


@pytest.mark.parametrize("name", ["1B", "a-b", "", "a b", "é", "A\n"])
def test_names_of_variables_are_c_identifiers(name: str) -> None:
    entries = [{"name": "A", "value": "1"}, {"name": name, "value": "1"}]
    assert said_of_pool(containerSpec={"imageUri": "i", "env": entries}) == [
        f'{POOLS}[0].containerSpec.env[1].name: "{name}" {NAME_RULE}'
    ]
    assert said_of_package(env=entries) == [f'env[1].name: "{name}" {NAME_RULE}']


@pytest.mark.parametrize("entry", [{"name": "A"}, {"name": "A", "value": ""}, {"name": "A", "value": None}])
def test_variables_have_values(entry: dict[str, Any]) -> None:
    said = "env[0].value: is required, and not empty; leave the variable out where it has no value"
    assert said_of_pool(containerSpec={"imageUri": "i", "env": [entry]}) == [f"{POOLS}[0].containerSpec.{said}"]
    assert said_of_package(env=[entry]) == [said]


def test_image_and_module_names_are_checked() -> None:
    (said,) = said_of_pool(containerSpec={"imageUri": "us-docker.pkg.dev/acme/../evil/x"})
    assert said.startswith(f'{POOLS}[0].containerSpec.imageUri: "us-docker.pkg.dev/acme/../evil/x" must be the name of')
    (said,) = said_of_package(executorImageUri="https://e")
    assert said.startswith('executorImageUri: "https://e" must be the name of an image')
    assert said_of_package(pythonModule="trainer/task.py") == [
        'pythonModule: "trainer/task.py" must be the name of a Python module, such as trainer.task, without .py'
    ]


def test_a_package_is_complete_and_in_cloud_storage() -> None:
    assert said_of_package() == []
    assert said_of_package(executorImageUri="", pythonModule="") == [
        "executorImageUri: is required",
        "pythonModule: is required",
    ]
    assert said_of_package(packageUris=["gs://b/p", "/tmp/p", ""]) == [
        'packageUris[1]: "/tmp/p" must have the form gs://{bucket}/{object}',
        "packageUris[2]: is empty",
    ]
    assert said_of_package(packageUris=["gs://b/p"] * 101) == ["packageUris: has 101 entries; at most 100 are allowed"]


BOTH = "Both `accelerator_type` and `accelerator_count` should be specified or none."
T4 = {"acceleratorType": "NVIDIA_TESLA_T4"}
SPECIFIC = {
    "reservationAffinityType": "SPECIFIC_RESERVATION",
    "key": "compute.googleapis.com/reservation-name",
    "values": ["projects/p/zones/z/reservations/r"],
}


@pytest.mark.parametrize(
    ("machine_type", "fields"),
    [
        ("n1-standard-4", {}),
        ("n1-standard-4", {"acceleratorType": "ACCELERATOR_TYPE_UNSPECIFIED", "acceleratorCount": 0}),
        ("n1-standard-4", {**T4, "acceleratorCount": 4}),
        ("a2-highgpu-1g", {"acceleratorType": "NVIDIA_TESLA_A100", "acceleratorCount": 1}),
        (
            "a2-highgpu-8g",
            {"acceleratorType": "NVIDIA_TESLA_A100", "acceleratorCount": 1, "gpuPartitionSize": "1g.10gb"},
        ),
        ("cloud-tpu", {"acceleratorType": "TPU_V3", "acceleratorCount": 64}),
        ("ct5lp-hightpu-4t", {"tpuTopology": "4x4"}),
        ("ct5lp-hightpu-4t", {"tpuTopology": "4x4", "acceleratorType": "TPU_V5_LITEPOD", "acceleratorCount": 4}),
        ("tpu7x-standard-4t", {"tpuTopology": "2x2x1"}),
        ("n1-standard-4", {"reservationAffinity": SPECIFIC}),
        ("n1-standard-4", {"reservationAffinity": {"reservationAffinityType": "ANY_RESERVATION"}}),
    ],
)
def test_what_googles_tables_allow_is_taken(machine_type: str, fields: dict[str, Any]) -> None:
    assert said_of_machine(machine_type, **fields) == []


def test_unknown_machine_types_suggest_the_nearest() -> None:
    assert said_of_machine("n1-standrd-4") == [
        "machineType: Machine type n1-standrd-4 is not supported. Did you mean n1-standard-4?"
    ]
    (said,) = said_of_machine("xyz")
    assert said.startswith("machineType: Machine type xyz is not supported. Use one of n1-standard, n1-highmem, ")


@pytest.mark.parametrize("machine_type", [None, ""])
def test_a_machine_type_is_required(machine_type: str | None) -> None:
    assert said_of_machine(machine_type) == ["machineType: is required"]


@pytest.mark.parametrize(("kind", "day"), [("NVIDIA_TESLA_K80", "2024-05-01"), ("NVIDIA_TESLA_P100", "2026-09-15")])
def test_accelerators_that_have_ended_are_named_so(kind: str, day: str) -> None:
    (message,) = said_of_machine("n1-standard-4", acceleratorType=kind, acceleratorCount=1)
    assert message.endswith(
        f"it takes NVIDIA_TESLA_T4, NVIDIA_TESLA_P4 or NVIDIA_TESLA_V100. There are none since {day}"
    )


@pytest.mark.parametrize("fields", [T4, {"acceleratorCount": 1}, {**T4, "acceleratorCount": 0}])
def test_accelerator_type_and_count_go_together(fields: dict[str, Any]) -> None:
    assert said_of_machine("n1-standard-4", **fields) == [f"acceleratorType: {BOTH}"]


@pytest.mark.parametrize(
    ("machine_type", "kind", "takes"),
    [
        ("e2-standard-4", "NVIDIA_TESLA_T4", "no accelerator"),
        ("n1-standard-4", "TPU_V2", "NVIDIA_TESLA_T4, NVIDIA_TESLA_P4 or NVIDIA_TESLA_V100"),
        ("g2-standard-4", "NVIDIA_TESLA_A100", "NVIDIA_L4"),
        ("cloud-tpu", "NVIDIA_L4", "TPU_V2 or TPU_V3"),
    ],
)
def test_accelerators_the_machine_does_not_take_are_rejected(machine_type: str, kind: str, takes: str) -> None:
    assert said_of_machine(machine_type, acceleratorType=kind, acceleratorCount=1) == [
        f'acceleratorType: Accelerator "{kind}" is not supported for machine type "{machine_type}"; it takes {takes}'
    ]


@pytest.mark.parametrize(
    ("machine_type", "kind", "count", "possible"),
    [
        ("n1-standard-4", "NVIDIA_TESLA_T4", 3, "1, 2, 4"),
        ("n1-standard-32", "NVIDIA_TESLA_T4", 1, "2, 4"),
        ("a2-highgpu-2g", "NVIDIA_TESLA_A100", 1, "2"),
        ("cloud-tpu", "TPU_V2", 16, "8, 32, 64, 96 … 512"),
    ],
)
def test_impossible_accelerator_counts_show_the_possible_ones(
    machine_type: str, kind: str, count: int, possible: str
) -> None:
    assert said_of_machine(machine_type, acceleratorType=kind, acceleratorCount=count) == [
        f'acceleratorCount: The accelerator count "{count}" is not allowed. The allowed numbers of accelerator '
        f'"{kind}" to use with machine type "{machine_type}" are: [{possible}].'
    ]


def test_a_negative_number_of_accelerators_is_refused() -> None:
    assert said_of_machine("n1-standard-4", **T4, acceleratorCount=-1) == ["acceleratorCount: -1 must not be negative"]


def test_accelerator_machines_need_their_accelerator() -> None:
    assert said_of_machine("g2-standard-4") == ["acceleratorType: g2-standard-4 needs an accelerator: NVIDIA_L4"]


def test_topologies_are_those_of_the_machine() -> None:
    assert said_of_machine("ct5lp-hightpu-1t") == ["tpuTopology: is required for ct5lp-hightpu-1t: 1x1"]
    assert said_of_machine("ct6e-standard-8t", tpuTopology="2x2") == [
        'tpuTopology: "2x2" is not one that ct6e-standard-8t has: 2x4'
    ]
    assert said_of_machine("n1-standard-4", tpuTopology="2x2") == [
        'tpuTopology: "2x2": n1-standard-4 takes no topology'
    ]


def test_a_gpu_partition_is_one_of_one_gpu() -> None:
    gpus = {"acceleratorType": "NVIDIA_TESLA_A100", "acceleratorCount": 2}
    assert said_of_machine("a2-highgpu-2g", **gpus, gpuPartitionSize="small") == [
        'gpuPartitionSize: "small" must be the size of a GPU partition, such as 1g.10gb',
        "acceleratorCount: must be 1 with gpuPartitionSize small",
    ]


def test_specific_reservations_have_key_and_values() -> None:
    kind = {"reservationAffinityType": "SPECIFIC_RESERVATION"}
    assert said_of_machine("n1-standard-4", reservationAffinity=kind) == [
        "reservationAffinity.key: is required with SPECIFIC_RESERVATION",
        "reservationAffinity.values: is required with SPECIFIC_RESERVATION",
    ]
    said = said_of_machine("n1-standard-4", reservationAffinity={"key": "k"})
    assert said == [
        "reservationAffinity.reservationAffinityType: is required: "
        "NO_RESERVATION, ANY_RESERVATION or SPECIFIC_RESERVATION"
    ]


L4 = {"machineType": "g2-standard-4", "acceleratorType": "NVIDIA_L4", "acceleratorCount": 1}
FLEX = {"strategy": "FLEX_START"}


@pytest.mark.parametrize(
    "options",
    [
        {"timeout": "1s", "disableRetries": True, "restartJobOnWorkerRestart": True},
        {"strategy": "SPOT"},
        {"strategy": "ON_DEMAND"},
        {"strategy": 0, "timeout": "31536000s"},
    ],
)
def test_ordinary_jobs_may_be_scheduled_at_will(options: dict[str, Any]) -> None:
    assert said_of_spec(scheduling=options) == []


def test_durations_are_not_negative() -> None:
    assert said_of_spec(
        scheduling={**FLEX, "timeout": "-1s", "maxWaitDuration": "-0.5s"}, workerPoolSpecs=[pool(machineSpec=L4)]
    ) == [
        'jobSpec.scheduling.timeout: "-1s" must not be negative',
        'jobSpec.scheduling.maxWaitDuration: "-0.500s" must not be negative',
    ]


def test_flex_start_limits_timeout_and_accelerators() -> None:
    pools = [pool(machineSpec=L4), pool(machineSpec=L4)]
    assert said_of_spec(scheduling={**FLEX, "timeout": "604800s", "maxWaitDuration": "0s"}, workerPoolSpecs=pools) == []
    assert said_of_spec(scheduling={**FLEX, "timeout": "604801s"}, workerPoolSpecs=pools) == [
        'jobSpec.scheduling.timeout: "604801s" is longer than the seven days ("604800s") of FLEX_START'
    ]
    assert said_of_spec(scheduling=FLEX, workerPoolSpecs=[pools[0], {}, pool()]) == [
        f"{POOLS}[2].machineSpec.acceleratorType: no accelerator: FLEX_START takes NVIDIA_L4, NVIDIA_TESLA_A100, "
        "NVIDIA_A100_80GB, NVIDIA_H100_80GB, NVIDIA_H100_MEGA_80GB, NVIDIA_H200_141GB or NVIDIA_B200",
    ]


def test_flexible_jobs_have_one_kind_of_machine() -> None:
    other = {**L4, "machineType": "g2-standard-16"}
    assert said_of_spec(scheduling=FLEX, workerPoolSpecs=[pool(machineSpec=L4), pool(machineSpec=other)]) == [
        f"{POOLS}[1].machineSpec: must be that of workerPoolSpecs[0]: FLEX_START needs the same machines in all pools"
    ]


def test_spot_machines_are_not_for_tpu_pods() -> None:
    def said(topology: str) -> list[str]:
        machine = {"machineType": "ct5lp-hightpu-4t", "tpuTopology": topology}
        return said_of_spec(scheduling={"strategy": "SPOT"}, workerPoolSpecs=[pool(machineSpec=machine)])

    assert said("2x2") == []
    assert said("4x4") == [
        f"{POOLS}[0].machineSpec.machineType: ct5lp-hightpu-4t: the strategy SPOT is not for TPU pods"
    ]
    v2 = {"machineType": "cloud-tpu", "acceleratorType": "TPU_V2"}
    for cores, count in ((8, 0), (32, 1)):
        pools = [pool(machineSpec={**v2, "acceleratorCount": cores})]
        assert len(said_of_spec(scheduling={"strategy": "SPOT"}, workerPoolSpecs=pools)) == count


RESERVATION = "projects/p/zones/us-central1-a/reservations/r"


@pytest.mark.parametrize(
    "affinity",
    [
        {"reservationAffinityType": "ANY_RESERVATION"},
        {"reservationAffinityType": "SPECIFIC_RESERVATION", "key": "k", "values": [RESERVATION]},
    ],
)
def test_reservations_exclude_flex_start_and_persistent_resources(affinity: dict[str, Any]) -> None:
    reserved = pool(machineSpec={**L4, "reservationAffinity": affinity})
    at = f"{POOLS}[0].machineSpec.reservationAffinity"
    page = 'Google\'s page "Use reservations with training"'
    assert said_of_spec(scheduling=FLEX, workerPoolSpecs=[reserved]) == [f"{at}: is not for FLEX_START ({page})"]
    assert said_of_spec(persistentResourceId="mine", workerPoolSpecs=[reserved]) == [
        f"{at}: is not for a persistent resource ({page})"
    ]
    none = pool(machineSpec={**L4, "reservationAffinity": {"reservationAffinityType": "NO_RESERVATION"}})
    assert said_of_spec(scheduling=FLEX, workerPoolSpecs=[none]) == []
    assert said_of_spec(persistentResourceId="mine", workerPoolSpecs=[none]) == []


@pytest.mark.parametrize("value", ["mine", "projects/p/reservations/r", f"{RESERVATION}/r"])
def test_a_reservation_has_its_full_name(value: str) -> None:
    affinity = {"reservationAffinityType": "SPECIFIC_RESERVATION", "key": "k", "values": [RESERVATION, value]}
    assert said_of_machine("n1-standard-4", reservationAffinity=affinity) == [
        f'reservationAffinity.values[1]: "{value}" must have the form '
        "projects/{project}/zones/{zone}/reservations/{reservation}"
    ]
    block = {**affinity, "values": [f"{RESERVATION}/reservationBlocks/b"]}
    assert said_of_machine("n1-standard-4", reservationAffinity=block) == []
