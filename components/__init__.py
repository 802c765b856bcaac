"""What a platform team provisions: Pulumi components and dynamic resources for Vertex AI training."""

import typing as _typing
from importlib import import_module as _import_module

if _typing.TYPE_CHECKING:
    from .args import CustomJobArgs as CustomJobArgs
    from .args import HyperparameterTuningJobArgs as HyperparameterTuningJobArgs
    from .args import TrainingPipelineArgs as TrainingPipelineArgs
    from .images.image import TrainingImage as TrainingImage
    from .images.image import TrainingImageArgs as TrainingImageArgs
    from .jobs.job import Completion as Completion
    from .jobs.job import CustomJob as CustomJob
    from .jobs.job import HyperparameterTuningJob as HyperparameterTuningJob
    from .jobs.job import TrainingPipeline as TrainingPipeline
    from .packages import PythonPackage as PythonPackage
    from .packages import PythonPackageArgs as PythonPackageArgs
    from .plan.programmed import Foundation as Foundation
    from .program import TrainingStack as TrainingStack
    from .program import run as run
    from .schedules.component import JobTemplate as JobTemplate
    from .schedules.component import Schedule as Schedule
    from .schedules.component import ScheduleArgs as ScheduleArgs
    from .schema.shapes import TrainingStackArgs as TrainingStackArgs
    from .settings.settings import Settings as Settings

_MODULES = {
    "Completion": ".jobs.job",
    "CustomJob": ".jobs.job",
    "CustomJobArgs": ".args",
    "Foundation": ".plan.programmed",
    "HyperparameterTuningJob": ".jobs.job",
    "HyperparameterTuningJobArgs": ".args",
    "JobTemplate": ".schedules.component",
    "PythonPackage": ".packages",
    "PythonPackageArgs": ".packages",
    "Schedule": ".schedules.component",
    "ScheduleArgs": ".schedules.component",
    "Settings": ".settings.settings",
    "TrainingImage": ".images.image",
    "TrainingImageArgs": ".images.image",
    "TrainingPipeline": ".jobs.job",
    "TrainingPipelineArgs": ".args",
    "TrainingStack": ".program",
    "TrainingStackArgs": ".schema.shapes",
    "run": ".program",
}
"""By public name: the module that it is imported from when it is first used.

So the process of a stack's providers, which imports single modules of this package, does without the others.
"""
__all__ = [*_MODULES]


def __getattr__(name: str) -> _typing.Any:
    """Import what a name stands for (PEP 562)."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(_import_module(_MODULES[name], __name__), name)
    return value


def __dir__() -> list[str]:
    """Return the public names, imported or not."""
    return [*globals(), *_MODULES]
