"""The check of a training pipeline's images, which the service makes when it creates the pipeline."""

from collections.abc import Mapping
from typing import Any

from vertex_api.catalog.reduction_server import is_reduction_server
from vertex_api.job_kinds import TRAINING_PIPELINE
from vertex_api.validation.canonical_spec import CanonicalSpec
from vertex_emulator.errors import ApiError
from vertex_emulator.replicas.executor_protocol import Executor


def raise_if_pipeline_image_is_missing(executor: Executor, pipeline: Mapping[str, Any]) -> None:
    """Raise ApiError NOT_FOUND, with the service's text, if an image of a canonical pipeline does not exist.

    An image whose registry cannot be asked passes; without it, the job fails when it runs.
    """
    pools = CanonicalSpec(TRAINING_PIPELINE, pipeline).backing_spec_or_self.job_spec["workerPoolSpecs"]
    for pool in pools:
        if pool and not is_reduction_server(pool):
            container, package = pool.get("containerSpec", {}), pool.get("pythonPackageSpec", {})
            image = container.get("imageUri") or package["executorImageUri"]
            if executor.is_image_missing_here_and_in_registry(image):
                raise ApiError("NOT_FOUND", f"The image {image} does not exist.")
