"""What training needs in a Google Cloud project: components that any Pulumi program can use alone.

Each takes `(name, args, opts)`: args are a dictionary of a typed shape, with those of `schema.shapes` for maps of a
stack file. Each is the parent of what it creates, and lets the caller's options win. E-mails, URIs and names are plain
text, not outputs: previews show them.
"""

from .access import BuilderIdentity, SecretAccess, ServiceAgentAccess, TrainingIdentity
from .alerts import JobFailureAlerts, ScheduleAlerts
from .foundation import GcpFoundation
from .network import JobNetwork
from .project import ServiceAgents, Services
from .schedules import ScheduleAccounts
from .storage import ImageRegistry, RepositoryName, StagingBucket
from .vertex import PersistentResource, Tensorboard

__all__ = [
    "BuilderIdentity",
    "GcpFoundation",
    "ImageRegistry",
    "JobFailureAlerts",
    "JobNetwork",
    "PersistentResource",
    "RepositoryName",
    "ScheduleAccounts",
    "ScheduleAlerts",
    "SecretAccess",
    "ServiceAgentAccess",
    "ServiceAgents",
    "Services",
    "StagingBucket",
    "Tensorboard",
    "TrainingIdentity",
]
