"""What training needs of a Google Cloud project: components that any Pulumi program can use alone.

Each takes plain typed arguments (the TypedDicts of `schema.shapes`, where a stack file has a map), parents what it
makes, and lets the caller's options win. What a reviewer asks for (e-mails, URIs, names) is plain text, not an output.
"""

from .access import Grants, ServiceAgentAccess
from .bucket import StagingBucket
from .foundation import GcpFoundation
from .identity import TrainingIdentity
from .network import JobNetwork
from .persistent_resource import PersistentResource
from .registry import ImageRegistry, Repository
from .service_agents import ServiceAgents
from .services import Services

__all__ = [
    "GcpFoundation",
    "Grants",
    "ImageRegistry",
    "JobNetwork",
    "PersistentResource",
    "Repository",
    "ServiceAgentAccess",
    "ServiceAgents",
    "Services",
    "StagingBucket",
    "TrainingIdentity",
]
