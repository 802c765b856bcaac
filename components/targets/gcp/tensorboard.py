"""Tensorboard: where jobs upload what they write to AIP_TENSORBOARD_LOG_DIR."""

from __future__ import annotations  # loads the provider's types only if they are used

from collections.abc import Mapping

import pulumi
from pulumi_gcp import vertex

from vertex_api.names import location_name

from ...schema import shapes
from ...schema.interpolation import TENSORBOARD_NAME
from .propagation_retries import create_retrying_options


class Tensorboard(pulumi.ComponentResource):
    """A TensorBoard in the region of the jobs, or one that exists already (`tensorboard.existing`).

    `fields` are those of a CustomJobSpec, as plain text: a preview does not know the name of a TensorBoard that is
    created here, so jobs refer to it, and `created_name` is what the reference stands for. It is `None` for one that
    exists. Labels are those in `tensorboard`; the key is the stack's.
    """

    def __init__(
        self,
        name: str,
        tensorboard: shapes.Tensorboard,
        *,
        project: str,
        region: str,
        kms_key: str | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("vertex:gcp:Tensorboard", name, None, opts)
        self.fields: Mapping[str, str] = {"tensorboard": tensorboard.get("existing", TENSORBOARD_NAME)}
        self.created_name: pulumi.Output[str] | None = None
        if "existing" not in tensorboard:
            resource = vertex.AiTensorboard(
                name,
                display_name=tensorboard["displayName"],
                project=project,
                region=region,
                encryption_spec={"kms_key_name": kms_key} if kms_key else None,
                labels=tensorboard.get("labels"),
                opts=create_retrying_options(self, protect=tensorboard.get("protect")),
            )
            prefix = f"{location_name(project, region)}/tensorboards/"
            # The service writes the project's number, and a job's other fields have the project's id.
            self.created_name = resource.name.apply(lambda service_name: prefix + service_name.rpartition("/")[2])
        self.register_outputs(dict(self.fields))
