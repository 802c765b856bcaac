"""What a platform team provisions: Pulumi components and dynamic resources for Vertex AI training."""

import gc as _gc
import typing as _typing
from importlib import import_module as _import_module

if _typing.TYPE_CHECKING:
    from vertex_api.training_pipeline import TrainingPipeline as TrainingPipelineArgs
    from vertex_api.types import CustomJob as CustomJobArgs
    from vertex_api.types import HyperparameterTuningJob as HyperparameterTuningJobArgs

    from .images.training_image import TrainingImage
    from .jobs.completion import Completion
    from .jobs.job import CustomJob, HyperparameterTuningJob, TrainingPipeline
    from .packages.python_package import PythonPackage
    from .preview.availability import show_availability
    from .preview.cost import show_cost
    from .program import run
    from .runtime.foundation import Foundation
    from .settings.settings import Settings
    from .stack import Images, Jobs, Packages, export_outputs
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

_ORIGINS = {
    "TrainingPipelineArgs": ("vertex_api.training_pipeline", "TrainingPipeline"),
    "CustomJobArgs": ("vertex_api.types", "CustomJob"),
    "HyperparameterTuningJobArgs": ("vertex_api.types", "HyperparameterTuningJob"),
    "TrainingImage": (".images.training_image", "TrainingImage"),
    "Completion": (".jobs.completion", "Completion"),
    "CustomJob": (".jobs.job", "CustomJob"),
    "HyperparameterTuningJob": (".jobs.job", "HyperparameterTuningJob"),
    "TrainingPipeline": (".jobs.job", "TrainingPipeline"),
    "PythonPackage": (".packages.python_package", "PythonPackage"),
    "show_availability": (".preview.availability", "show_availability"),
    "show_cost": (".preview.cost", "show_cost"),
    "run": (".program", "run"),
    "Foundation": (".runtime.foundation", "Foundation"),
    "Settings": (".settings.settings", "Settings"),
    "Images": (".stack", "Images"),
    "Jobs": (".stack", "Jobs"),
    "Packages": (".stack", "Packages"),
    "export_outputs": (".stack", "export_outputs"),
    "create_foundation": (".targets.choice", "create_foundation"),
    "LocalFoundation": (".targets.local", "LocalFoundation"),
}
"""By name: the module that it is imported from when it is first used, and its name there.

So the process of a stack's providers, which imports single modules of this package, does without the others.
"""


def __getattr__(name: str) -> _typing.Any:
    """Import what a name stands for (PEP 562)."""
    if name not in _ORIGINS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _ORIGINS[name]
    is_collecting = _gc.isenabled()
    _gc.disable()  # an import leaves no garbage, and looking for it takes a quarter of the time
    try:
        value = globals()[name] = getattr(_import_module(module, __name__), attribute)
    finally:
        if is_collecting:
            _gc.enable()
    return value


def __dir__() -> list[str]:
    """Return the public names, imported or not."""
    return [*globals(), *_ORIGINS]
