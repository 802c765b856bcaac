"""Who owns a job: labels that let a later `pulumi up` find what an interrupted one has submitted."""

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from vertex_api.states import strip_state_prefix
from vertex_api.validation.canonical import CanonicalSpec
from vertex_api.validation.rules import Violation
from vertex_api.validation.rules.resource import MAX_LABELS

TOKEN_LABEL = "pulumi_token"
MARK_LABEL = "pulumi_mark"
LABELS = ("pulumi_project", "pulumi_stack", "pulumi_name", TOKEN_LABEL, MARK_LABEL)
"""All that a submitted job has beside its own."""


def run_id(spec: CanonicalSpec, rerun: int, above: Sequence[str] = ()) -> str:
    """Eight hex digits that differ whenever the job would run anew: the folder of a run's outputs.

    `above` are those of the jobs whose results it uses. They stand in previews, so secrets play no part.
    """
    return _digest(spec.kind.collection, spec.fields, rerun, *above)[:8]


def token(
    owner: str,
    spec: CanonicalSpec,
    secrets: Mapping[str, str],
    rerun: int,
    jobs: Mapping[str, str] | None = None,
) -> str:
    """32 hex digits that are equal for equal jobs of one resource: the key of an idempotent create.

    `owner` is `<pulumi project>/<stack>/<resource name>`, `jobs` are the resource names of those whose results it uses:
    after they have run anew, it is another job.
    """
    return _digest(spec.kind.collection, owner, spec.fields, secrets, rerun, *([jobs] if jobs else []))[:32]


def mark(ledger: str, name: str) -> str:
    """What the jobs of one name have in common that one state has submitted, by the id of its ledger."""
    return f"{ledger}-{_digest(name)[:16]}"


def labels(owner: str, token: str) -> dict[str, str]:
    """The labels of a submitted job, within the service's rules: lower case, at most 63 characters."""
    project, stack, name = (re.sub(r"[^a-z0-9_-]", "-", part.lower())[:63] for part in owner.split("/"))
    return {"pulumi_project": project, "pulumi_stack": stack, "pulumi_name": name, TOKEN_LABEL: token}


def labels_broken(labels: Mapping[str, str], of_the_stack: Collection[str] = ()) -> Iterator[Violation]:
    """What is wrong with the labels of a job, or of all jobs, as it has those of the stack file and `LABELS` too."""
    for name in LABELS:
        if name in labels:
            yield (name,), "is a label that the stack gives its jobs itself; take another name"
    given, most = len({*labels, *of_the_stack}), MAX_LABELS - len(LABELS)
    if len(of_the_stack) <= most < given <= MAX_LABELS:
        with_those = ", with those of the stack file" if of_the_stack else ""
        yield (), f"has {given} labels{with_those}; at most {most} are allowed, as {len(LABELS)} are the stack's own"


def filter_of(stack: str) -> str:
    """The list filter for all jobs of a stack, `<pulumi project>/<stack>`."""
    own = labels(f"{stack}/", "")
    return " AND ".join(f'labels.{name}="{own[name]}"' for name in ("pulumi_project", "pulumi_stack"))


def adoptable(jobs: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The job with a token that stands for it: the newest that is under way or has succeeded; failed ones do not."""
    ended_badly = {"FAILED", "CANCELLING", "CANCELLED", "EXPIRED"}
    alive = [job for job in jobs if strip_state_prefix(job["state"]) not in ended_badly]
    return max(alive, key=lambda job: datetime.fromisoformat(job["createTime"]), default=None)


def _digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
