"""What a platform team provisions: Pulumi components and dynamic resources for Vertex AI training."""

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
