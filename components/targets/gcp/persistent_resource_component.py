"""PersistentResource: machines that keep running between jobs, so that a job starts at once."""

from __future__ import annotations  # loads the provider's types only if they are used

from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi_gcp import vertex

from ...schema import shapes
from .propagation_retries import create_retrying_options


class PersistentResource(pulumi.ComponentResource):
    """Machines for the jobs that name it in their `persistentResourceId`; `id` is that name, as plain text.

    `network` is `JobNetwork.fields`: a job on these machines must be in their network. Each job runs as its own
    account.
    """

    def __init__(
        self,
        name: str,
        resource: shapes.PersistentResource,
        *,
        project: str,
        region: str,
        network: Mapping[str, Any] | None = None,
        kms_key: str | None = None,
        labels: Mapping[str, str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("vertex:gcp:PersistentResource", name, None, opts)
        self.id = resource["name"]
        fields = network or {}
        interface = fields.get("pscInterfaceConfig")
        vertex.AiPersistentResource(
            name,
            name=self.id,
            project=project,
            location=region,
            resource_pools=[_build_pool_args(pool) for pool in resource["resourcePools"]],
            network=fields.get("network"),
            reserved_ip_ranges=fields.get("reservedIpRanges"),
            psc_interface_config=_build_psc_interface_args(interface) if interface else None,
            encryption_spec={"kms_key_name": kms_key} if kms_key else None,
            labels=labels or None,
            resource_runtime_spec={"service_account_spec": {"enable_custom_service_account": True}},
            opts=create_retrying_options(self),
        )
        self.register_outputs({"id": self.id})


def _build_pool_args(pool: shapes.ResourcePool) -> vertex.AiPersistentResourceResourcePoolArgsDict:
    machine, disk, scaling = pool["machineSpec"], pool.get("diskSpec"), pool.get("autoscalingSpec")
    args: vertex.AiPersistentResourceResourcePoolArgsDict = {
        "machine_spec": {
            "machine_type": machine["machineType"],
            "accelerator_type": machine.get("acceleratorType"),
            "accelerator_count": machine.get("acceleratorCount"),
        },
        "replica_count": str(pool.get("replicaCount", scaling["minReplicaCount"] if scaling else 1)),
    }
    if scaling:
        minimum, maximum = str(scaling["minReplicaCount"]), str(scaling["maxReplicaCount"])
        args["autoscaling_spec"] = {"min_replica_count": minimum, "max_replica_count": maximum}
    if disk:
        size = disk.get("bootDiskSizeGb")
        args["disk_spec"] = {"boot_disk_type": disk.get("bootDiskType"), "boot_disk_size_gb": size}
    return args


def _build_psc_interface_args(interface: Mapping[str, Any]) -> vertex.AiPersistentResourcePscInterfaceConfigArgsDict:
    zones: list[vertex.AiPersistentResourcePscInterfaceConfigDnsPeeringConfigArgsDict] = [
        {"domain": zone["domain"], "target_project": zone["targetProject"], "target_network": zone["targetNetwork"]}
        for zone in interface.get("dnsPeeringConfigs", [])
    ]
    return {"network_attachment": interface["networkAttachment"], "dns_peering_configs": zones or None}
