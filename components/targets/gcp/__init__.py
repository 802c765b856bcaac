"""What training needs in a Google Cloud project: components that any Pulumi program can use alone.

Each takes plain typed arguments (those of `schema.stack_config_types` for maps of a stack file), is the parent of what
it creates, and lets the caller's options win. E-mails, URIs and names are plain text, not outputs: previews show them.
"""

from .account_emails import ServiceAgentMembers
from .builder_identity import BuilderIdentity
from .enabled_apis import Services
from .foundation import GcpFoundation
from .image_registry import ImageRegistry, RepositoryName
from .job_failure_alerts import JobFailureAlerts, ScheduleAlerts
from .job_network_connection import JobNetwork
from .persistent_resource_component import PersistentResource
from .schedule_prerequisites import ScheduleAccounts
from .secret_access import SecretAccess
from .service_agent_access import Grants, ServiceAgentAccess
from .staging_bucket import StagingBucket
from .tensorboard import Tensorboard
from .training_identity import TrainingIdentity

__all__ = [
    "BuilderIdentity",
    "GcpFoundation",
    "Grants",
    "ImageRegistry",
    "JobFailureAlerts",
    "JobNetwork",
    "PersistentResource",
    "RepositoryName",
    "ScheduleAccounts",
    "ScheduleAlerts",
    "SecretAccess",
    "ServiceAgentAccess",
    "ServiceAgentMembers",
    "Services",
    "StagingBucket",
    "Tensorboard",
    "TrainingIdentity",
]
