"""What a refused request or a failed build means, in one line each, with what to do."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from vertex_api.errors import Interrupted, NotFound, PermissionDenied, RateLimited, Unavailable, VertexError
from vertex_api.retry import DISABLED_API, MISSING_ACT_AS, SECRET_ACCESS, find_propagation

from .build_client import Build

_SETTING = "vertex-training:builder.cloudBuild"
_CREDENTIALS = re.compile(r"no valid Google credentials")
_NO_BUILDS_IN_REGION = re.compile(r"quota restrictions", re.IGNORECASE)
"""Of projects that may build in a few regions only (deploy-cloudrun#480)."""
_FAILED_STEP = "USER_BUILD_STEP"
_DENIED_SECRET, _UNREADABLE_SECRET = "SECRET_DENIED", "SECRET_UNREADABLE"
"""Failures that have no type of Cloud Build's own: it reports them as a failed step, which it has not begun."""
_UNREADABLE = re.compile(r"failed to access secret version", re.IGNORECASE)
"""In Cloud Build's words: googlecodelabs/feedback#1458, and GroundLevel-firebase-es#100 of a missing secret."""
_UNKNOWN_INSTRUCTION = re.compile(r"dockerfile parse error|unknown (instruction|flag)", re.IGNORECASE)
_FAILURES = {
    "PUSH_NOT_AUTHORIZED": "{account} needs roles/artifactregistry.writer on the repository; if it is new, run "
    "`pulumi up` again",
    "PUSH_FAILED": "the image was built and cannot be pushed ({detail}); run `pulumi up` again",
    "PUSH_IMAGE_NOT_FOUND": "the build made no image of this name ({detail})",
    "LOGGING_FAILURE": "{account} needs roles/logging.logWriter on the project",
    "FETCH_SOURCE_FAILED": "{account} needs roles/storage.objectViewer on the staging bucket ({detail})",
    _DENIED_SECRET: "{account} needs roles/secretmanager.secretAccessor on the secrets of "
    f"{_SETTING}.secrets ({{detail}})",
    _UNREADABLE_SECRET: f"a secret of {_SETTING}.secrets cannot be read ({{detail}}); correct its name and version",
}
"""By type of failure."""
_STATUSES = {
    "SUCCESS": "Cloud Build reports no digest of the image; run `pulumi up` again",
    "TIMEOUT": f"its build took longer than its timeout of {{timeout}}; raise {_SETTING}.timeout, or name a larger "
    "machineType",
    "CANCELLED": "its build was cancelled in Cloud Build; run `pulumi up` again to build it",
    "EXPIRED": f"its build got no worker in time; run `pulumi up` again, or name another {_SETTING}.pool or region",
    "INTERNAL_ERROR": "Cloud Build had an internal error ({detail}); run `pulumi up` again",
}
"""By `status`; `FAILURE` has a type."""


def refusal(error: VertexError, account: str, pool: str = "") -> str:
    """Return why Cloud Build takes no build, and what to do.

    `account` is the e-mail of the account of the build, `pool` the name of the private pool that it runs in.
    """
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
        needed = f"roles/cloudbuild.builds.editor on the project and roles/iam.serviceAccountUser on {account}"
        if pool:  # the page "Run builds in a private pool"
            needed += f", and roles/cloudbuild.workerPoolUser on the project {pool.split('/')[1]} of its pool"
        return f"Cloud Build refuses: {text}; your account needs {needed}"
    if isinstance(error, RateLimited):
        return f"Cloud Build has too many requests: {text}; run `pulumi up` again later, or ask for quota"
    if isinstance(error, NotFound):
        return f"Cloud Build does not find it: {text}; check the project, {_SETTING}.region and pool"
    if isinstance(error, Unavailable):
        return f"Cloud Build does not answer: {text}; run `pulumi up` again to continue"
    return f"Cloud Build rejects the build: {text}"


def failed_in_step(build: Build) -> bool:
    """Whether a build has failed in what Cloud Build calls a step: then the last lines of its log say why."""
    return bool(build["status"] == "FAILURE" and build.get("failureInfo", {}).get("type", _FAILED_STEP) == _FAILED_STEP)


@dataclass(frozen=True)
class Outcome:
    """How a build has ended. `last_lines` are those of its log, where they say why."""

    build: Build
    last_lines: Sequence[str] = ()

    @property
    def explanation(self) -> str:
        """Why the build gives no image, and what to do."""
        values = {
            "account": self.build.get("serviceAccount", "").rpartition("/")[2],
            "timeout": self.build.get("timeout", "3600s"),
            "detail": self._detail[:300] or "no details",
        }
        reason = _STATUSES.get(self.build["status"]) or _FAILURES.get(self._failure, "cannot be built: {detail}")
        return reason.format(**values)

    @property
    def is_dockerfile(self) -> bool:
        """Whether the Dockerfile, or what it runs, is why the build has failed."""
        return failed_in_step(self.build) and self._failure == _FAILED_STEP

    @property
    def advice(self) -> str:
        """What to do if Docker does not know what a Dockerfile says; else nothing."""
        if not any(_UNKNOWN_INSTRUCTION.search(line) for line in self.last_lines):
            return ""
        return (
            "Docker in Cloud Build may be older than yours: if the Dockerfile is right, let it begin with "
            f"`# syntax=docker/dockerfile:1`, or name a version of Docker in {_SETTING}.dockerImage"
        )

    @property
    def may_be_new_grant(self) -> bool:
        """Whether the build has failed before its first step for a grant that may not be known everywhere yet."""
        return self._failure in ("FETCH_SOURCE_FAILED", "LOGGING_FAILURE", _DENIED_SECRET)

    @cached_property
    def _failure(self) -> str:
        """The type of the failure, Cloud Build's or one of this module."""
        if failed_in_step(self.build):
            if _UNREADABLE.search(self._detail):
                return _DENIED_SECRET if find_propagation(self._detail) is SECRET_ACCESS else _UNREADABLE_SECRET
            return _FAILED_STEP
        return str(self.build.get("failureInfo", {}).get("type", ""))

    @cached_property
    def _detail(self) -> str:
        """What says in one line why the build has failed: its details, or the end of its log if that says more."""
        texts = [
            self.build.get("failureInfo", {}).get("detail"),
            self.build.get("statusDetail"),
            *self.last_lines[-1:],
        ]
        lines = [" ".join(str(text).split()) for text in texts if text]
        return next((line for line in lines if _UNREADABLE.search(line)), lines[0] if lines else "")
