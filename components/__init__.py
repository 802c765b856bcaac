"""What a platform team provisions: Pulumi components and dynamic resources for Vertex AI training."""

from components.availability_lines import show_availability
from components.completion import Completion
from components.cost_lines import show_cost
from components.foundation import Foundation, foundation
from components.image import TrainingImage
from components.job import CustomJob, HyperparameterTuningJob, TrainingPipeline
from components.local import LocalFoundation
from components.program import run
from components.python_package import PythonPackage
from components.settings import Settings
from components.training import Images, Jobs, Packages, export
from vertex.training_pipeline import TrainingPipeline as TrainingPipelineArgs
from vertex.types import CustomJob as CustomJobArgs
from vertex.types import HyperparameterTuningJob as HyperparameterTuningJobArgs

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
    "export",
    "foundation",
    "run",
    "show_availability",
    "show_cost",
]
