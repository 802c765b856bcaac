"""What a refused request or a failed build means, in one line each, with what to do."""

import re

from vertex_api.calls.retry_rules import DISABLED_API, MISSING_ACT_AS, find_propagation
from vertex_api.client_errors import Interrupted, NotFound, PermissionDenied, RateLimited, Unavailable, VertexError

from .build_and_log_client import Build

_SETTING = "vertex-training:builder.cloudBuild"
_CREDENTIALS = re.compile(r"no valid Google credentials")
_NO_BUILDS_IN_REGION = re.compile(r"quota restrictions", re.IGNORECASE)
"""Of projects that may build in a few regions only (deploy-cloudrun#480)."""
_FAILED_STEP = "USER_BUILD_STEP"
_FAILURES = {
    "PUSH_NOT_AUTHORIZED": "{account} needs roles/artifactregistry.writer on the repository; if it is new, run "
    "`pulumi up` again",
    "PUSH_FAILED": "the image was built and cannot be pushed ({detail}); run `pulumi up` again",
    "PUSH_IMAGE_NOT_FOUND": "the build made no image of this name ({detail})",
    "LOGGING_FAILURE": "{account} needs roles/logging.logWriter on the project",
    "FETCH_SOURCE_FAILED": "{account} needs roles/storage.objectViewer on the staging bucket ({detail})",
}
"""By `failureInfo.type`."""
_STATUSES = {
    "SUCCESS": "Cloud Build reports no digest of the image; run `pulumi up` again",
    "TIMEOUT": f"its build took longer than its timeout of {{timeout}}; raise {_SETTING}.timeout, or name a larger "
    "machineType",
    "CANCELLED": "its build was cancelled in Cloud Build; run `pulumi up` again to build it",
    "EXPIRED": f"its build got no worker in time; run `pulumi up` again, or name another {_SETTING}.pool or region",
    "INTERNAL_ERROR": "Cloud Build had an internal error ({detail}); run `pulumi up` again",
}
"""By `status`; `FAILURE` has a type."""


def explain_refusal(error: VertexError, account: str) -> str:
    """Return why Cloud Build takes no build, and what to do. `account` is the e-mail of the account of the build."""
    text = str(error)
    if _CREDENTIALS.search(text) or isinstance(error, Interrupted):
        return text
    propagation = find_propagation(text)
    if propagation is DISABLED_API:
        advice = (
            "enable it by `gcloud services enable cloudbuild.googleapis.com`, or run `pulumi up` again if it is new"
        )
        return f"the Cloud Build API is off: {text}; {advice}"
    if _NO_BUILDS_IN_REGION.search(text):
        return f"Cloud Build refuses builds in this region: {text}; name another {_SETTING}.region, or ask for quota"
    if propagation and propagation is not MISSING_ACT_AS:
        return f"Cloud Build refuses: {text}; {propagation.remedy}"
    if propagation or isinstance(error, PermissionDenied):
        return (
            f"Cloud Build refuses: {text}; your account needs roles/cloudbuild.builds.editor on the project and "
            f"roles/iam.serviceAccountUser on {account}"
        )
    if isinstance(error, RateLimited):
        return f"Cloud Build has too many requests: {text}; run `pulumi up` again later, or ask for quota"
    if isinstance(error, NotFound):
        return f"Cloud Build does not find it: {text}; check the project, {_SETTING}.region and pool"
    if isinstance(error, Unavailable):
        return f"Cloud Build does not answer: {text}; run `pulumi up` again to continue"
    return f"Cloud Build rejects the build: {text}"


def explain_failed_build(build: Build) -> str:
    """Return why a build in a terminal state gives no image, and what to do."""
    info = build.get("failureInfo", {})
    values = {
        "account": build.get("serviceAccount", "").rpartition("/")[2],
        "timeout": build.get("timeout", "3600s"),
        "detail": " ".join(str(info.get("detail") or build.get("statusDetail") or "no details").split())[:300],
    }
    reason = _STATUSES.get(build["status"]) or _FAILURES.get(info.get("type", ""), "cannot be built: {detail}")
    return reason.format(**values)


def has_failed_in_dockerfile(build: Build) -> bool:
    """Whether the Dockerfile, or what it runs, is why a build has failed: then its last lines say why."""
    return bool(build["status"] == "FAILURE" and build.get("failureInfo", {}).get("type", _FAILED_STEP) == _FAILED_STEP)


def may_have_failed_for_new_grant(build: Build) -> bool:
    """Whether a build has failed before its first step for a grant that may not be known everywhere yet."""
    return build.get("failureInfo", {}).get("type") in ("FETCH_SOURCE_FAILED", "LOGGING_FAILURE")
