"""PersistentResource and Tensorboard: resources of Vertex AI that jobs run on and write to."""

from __future__ import annotations  # loads the provider's types only if they are used

from collections.abc import Mapping
from typing import Any, Required, TypedDict

import pulumi
from pulumi import ResourceOptions
from pulumi_gcp import vertex

from vertex_api.names import location_name

from ...schema import shapes
from ...schema.interpolation import TENSORBOARD_NAME
from .project import Component


class PersistentResourceArgs(TypedDict, total=False):
    """`resource` is the `persistentResource` of a stack file.

    `network` is `JobNetwork.fields`: a job on these machines must be in their network.
    """

    project: Required[str]
    region: Required[str]
    resource: Required[shapes.PersistentResource]
    network: Mapping[str, Any] | None
    kms_key: str | None
    labels: Mapping[str, str] | None


class PersistentResource(Component):
    """Machines that keep running between jobs, so that a job starts at once. Each job runs as its own account.

    Jobs name it in their `persistentResourceId`; `id` is that name, as plain text.
    """

    def __init__(self, name: str, args: PersistentResourceArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__(name, opts, args.get("labels"))
        resource, network, key = args["resource"], args.get("network") or {}, args.get("kms_key")
        self.id = resource["name"]
        interface = network.get("pscInterfaceConfig")
        vertex.AiPersistentResource(
            name,
            name=self.id,
            project=args["project"],
            location=args["region"],
            resource_pools=[_pool(pool) for pool in resource["resourcePools"]],
            network=network.get("network"),
            reserved_ip_ranges=network.get("reservedIpRanges"),
            psc_interface_config=_interface(interface) if interface else None,
            encryption_spec={"kms_key_name": key} if key else None,
            resource_runtime_spec={"service_account_spec": {"enable_custom_service_account": True}},
            opts=self.retrying(),
        )
        self.register_outputs({"id": self.id})


def _pool(pool: shapes.ResourcePool) -> vertex.AiPersistentResourceResourcePoolArgsDict:
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


def _interface(interface: Mapping[str, Any]) -> vertex.AiPersistentResourcePscInterfaceConfigArgsDict:
    zones: list[vertex.AiPersistentResourcePscInterfaceConfigDnsPeeringConfigArgsDict] = [
        {"domain": zone["domain"], "target_project": zone["targetProject"], "target_network": zone["targetNetwork"]}
        for zone in interface.get("dnsPeeringConfigs", [])
    ]
    return {"network_attachment": interface["networkAttachment"], "dns_peering_configs": zones or None}


class TensorboardArgs(TypedDict, total=False):
    """`tensorboard` is that of a stack file, with its labels; `kms_key` is the stack's."""

    project: Required[str]
    region: Required[str]
    tensorboard: Required[shapes.Tensorboard]
    kms_key: str | None


class Tensorboard(Component):
    """Where jobs upload what they write to AIP_TENSORBOARD_LOG_DIR: in their region, or one that exists already.

    `fields` are those of a CustomJobSpec, as plain text: a preview does not know the name of a TensorBoard that is
    created here, so jobs refer to it, and `created_name` is what the reference stands for. It is `None` for one that
    exists.
    """

    def __init__(self, name: str, args: TensorboardArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        board, key = args["tensorboard"], args.get("kms_key")
        self.fields: Mapping[str, str] = {"tensorboard": board.get("existing", TENSORBOARD_NAME)}
        self.created_name: pulumi.Output[str] | None = None
        if "existing" not in board:
            resource = vertex.AiTensorboard(
                name,
                display_name=board["displayName"],
                project=args["project"],
                region=args["region"],
                encryption_spec={"kms_key_name": key} if key else None,
                labels=board.get("labels"),
                opts=self.retrying(protect=board.get("protect")),
            )
            prefix = f"{location_name(args['project'], args['region'])}/tensorboards/"
            # The service writes the project's number, and a job's other fields have the project's id.
            self.created_name = resource.name.apply(lambda service_name: prefix + service_name.rpartition("/")[2])
        self.register_outputs(dict(self.fields))
