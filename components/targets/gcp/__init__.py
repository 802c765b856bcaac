"""What training needs of a Google Cloud project: components that any Pulumi program can use alone.

Each takes plain typed arguments (the TypedDicts of `components.shapes`, where a stack file has a map), parents what it
makes, and lets the caller's options win. What a reviewer asks for (e-mails, URIs, names) is plain text, not an output.
"""

from components.gcp.access import Grants, ServiceAgentAccess
from components.gcp.bucket import StagingBucket
from components.gcp.foundation import GcpFoundation
from components.gcp.identity import TrainingIdentity
from components.gcp.network import JobNetwork
from components.gcp.persistent_resource import PersistentResource
from components.gcp.registry import ImageRegistry, Repository
from components.gcp.service_agents import ServiceAgents
from components.gcp.services import Services

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
