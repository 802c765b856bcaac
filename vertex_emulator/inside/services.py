"""Google's services by the names of their hosts: those that the emulator has, and what to do for the others."""

from vertex_api.estimates.availability import REGIONS
from vertex_emulator.errors import ApiError

EMULATED = frozenset(
    {
        *("aiplatform.googleapis.com", "logging.googleapis.com", "secretmanager.googleapis.com"),
        *("storage.googleapis.com", "www.googleapis.com", "metadata.google.internal", "metadata"),
        *(f"{region}-aiplatform.googleapis.com" for region in REGIONS),
    }
)
"""The hosts that the emulator answers for. Cloud Storage's JSON API is at www.googleapis.com, too."""
OTHERS = (
    *("artifactregistry", "bigquery", "bigquerydatatransfer", "bigquerystorage", "bigtable", "bigtableadmin"),
    *("cloudkms", "cloudresourcemanager", "cloudtasks", "cloudtrace", "compute", "dataflow", "datastore", "dlp"),
    *("firestore", "iam", "iamcredentials", "language", "monitoring", "oauth2", "pubsub", "run", "serviceusage"),
    *("spanner", "speech", "sqladmin", "sts", "texttospeech", "translate", "videointelligence", "vision"),
)
"""Services that training code calls and the emulator does not have, by their hosts below googleapis.com."""
NAMES = sorted({*EMULATED, *(f"{service}.googleapis.com" for service in OTHERS)})


def refusal(host: str) -> ApiError | None:
    """Return the error for a request to a host that is not emulated, None for the others."""
    name = host.partition(":")[0].lower()
    if not name.endswith(".googleapis.com") or name in EMULATED or name.endswith(".storage.googleapis.com"):
        return None
    message = (
        f"{name} is not emulated at home. Give the job credentials of its own (GOOGLE_APPLICATION_CREDENTIALS in its "
        "env), with which it calls Google, or the address of a stand-in (docs/google.md)."
    )
    return ApiError("UNIMPLEMENTED", message)
