"""Google's services by the names of their hosts: those that the emulator has, and what to do for the others."""

from collections.abc import Collection

from vertex_api.emulator import SERVICES
from vertex_api.estimates.availability import REGIONS
from vertex_api.names import did_you_mean
from vertex_emulator.errors import ApiError

EMULATED = frozenset(
    {
        *(f"{service}.googleapis.com" for service in SERVICES),
        *(f"{region}-aiplatform.googleapis.com" for region in REGIONS),
        *("metadata.google.internal", "metadata"),
    }
)
"""The hosts that the emulator answers for. Cloud Storage's JSON API is at www.googleapis.com, too."""
RESOURCE_MANAGER = "cloudresourcemanager.googleapis.com"
"""Of it, the emulator has `projects.get` alone, of a job's own project."""
OTHERS = (
    *("artifactregistry", "bigquery", "bigquerydatatransfer", "bigquerystorage", "bigtable", "bigtableadmin"),
    *("cloudkms", "cloudresourcemanager", "cloudtasks", "cloudtrace", "compute", "dataflow", "datastore", "dlp"),
    *("firestore", "iam", "iamcredentials", "language", "monitoring", "oauth2", "pubsub", "run", "serviceusage"),
    *("spanner", "speech", "sqladmin", "sts", "texttospeech", "translate", "videointelligence", "vision"),
)
"""Services that training code calls and the emulator does not have, by their hosts below googleapis.com."""
NAMES = sorted({*EMULATED, *(f"{service}.googleapis.com" for service in OTHERS)})


def missing(host: str) -> str | None:
    """Return the host of a request to a service that is not emulated, None for the others."""
    name = host.partition(":")[0].lower()
    if not name.endswith(".googleapis.com") or name in EMULATED or name.endswith(".storage.googleapis.com"):
        return None
    return name


def refusal(name: str, stand_ins: Collection[str]) -> ApiError:
    """Return the error for a request to a service that is neither emulated nor among those that have stand-ins."""
    message = (
        f"{name} is not emulated at home{did_you_mean(name, stand_ins)}. Give the job credentials of its own "
        "(GOOGLE_APPLICATION_CREDENTIALS in its env), with which it calls Google, run it with --as account or user, or "
        f"name a stand-in in the stack's emulator: {{endpoints: {{{name}: URL}}}} (`vertex-training docs google`)."
    )
    return ApiError("UNIMPLEMENTED", message)
