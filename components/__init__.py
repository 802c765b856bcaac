"""What a platform team provisions: Pulumi components and dynamic resources for Vertex AI training."""

import gc as _gc
import typing as _typing
from importlib import import_module as _import_module

if _typing.TYPE_CHECKING:
    from vertex_api.pipeline_types import TrainingPipeline as TrainingPipelineArgs
    from vertex_api.types import CustomJob as CustomJobArgs
    from vertex_api.types import HyperparameterTuningJob as HyperparameterTuningJobArgs

    from .images.training_image import TrainingImage
    from .jobs.completion_resource import Completion
    from .jobs.job_resources import CustomJob, HyperparameterTuningJob, TrainingPipeline
    from .packages.python_package_resource import PythonPackage
    from .preview.availability_warnings import show_availability
    from .preview.cost_report import show_cost
    from .program_runner import run
    from .runtime.foundation_protocol import Foundation
    from .settings.settings import Settings
    from .stack_resources import Images, Jobs, Packages, export_outputs
    from .targets.choice import create_foundation
    from .targets.local import LocalFoundation

__all__ = [
    "Completion",
    "CustomJob",
    "CustomJobArgs",
    "Foundation",
    "HyperparameterTuningJob",
    "HyperparameterTuningJobArgs",
    "Images",
    "Jobs",
    "LocalFoundation",
    "Packages",
    "PythonPackage",
    "Settings",
    "TrainingImage",
    "TrainingPipeline",
    "TrainingPipelineArgs",
    "create_foundation",
    "export_outputs",
    "run",
    "show_availability",
    "show_cost",
]

_MODULES = {
    "vertex_api.pipeline_types": ("TrainingPipelineArgs",),
    "vertex_api.types": ("CustomJobArgs", "HyperparameterTuningJobArgs"),
    ".images.training_image": ("TrainingImage",),
    ".jobs.completion_resource": ("Completion",),
    ".jobs.job_resources": ("CustomJob", "HyperparameterTuningJob", "TrainingPipeline"),
    ".packages.python_package_resource": ("PythonPackage",),
    ".preview.availability_warnings": ("show_availability",),
    ".preview.cost_report": ("show_cost",),
    ".program_runner": ("run",),
    ".runtime.foundation_protocol": ("Foundation",),
    ".settings.settings": ("Settings",),
    ".stack_resources": ("Images", "Jobs", "Packages", "export_outputs"),
    ".targets.choice": ("create_foundation",),
    ".targets.local": ("LocalFoundation",),
}
"""The names that are imported from each module when they are first used; `…Args` have no such ending there.

So the process of a stack's providers, which imports single modules of this package, does without the others.
"""
_ORIGINS = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> _typing.Any:
    """Import what a name stands for (PEP 562)."""
    if name not in _ORIGINS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    is_collecting = _gc.isenabled()
    _gc.disable()  # an import leaves no garbage, and looking for it takes a quarter of the time
    try:
        value = globals()[name] = getattr(_import_module(_ORIGINS[name], __name__), name.removesuffix("Args"))
    finally:
        if is_collecting:
            _gc.enable()
    return value


def __dir__() -> list[str]:
    """Return the public names, imported or not."""
    return [*globals(), *_ORIGINS]
