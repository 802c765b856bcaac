"""What tells jobs apart: the labels by which a later `pulumi up` finds them, and digests of what they run."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from vertex_api.job import Job

from ..plan.job_rules import SUBMITTER_LABELS, TOKEN_LABEL
from ..plan.training import Training

NAME_FIELDS = ("displayName", "labels")
"""Fields of a job that a run does not depend on."""


def own_labels(owner: str, token: str) -> dict[str, str]:
    """Return the labels of a submitted job within the service's rules: lower case, at most 63 characters.

    `owner` is `<pulumi project>/<stack>/<resource name>`, `token` that of `job_token`.
    """
    parts = map(as_label, owner.split("/"))
    return {**dict(zip(SUBMITTER_LABELS, parts, strict=True)), TOKEN_LABEL: token}


def as_label(name: str) -> str:
    """Return a name as the value of a label can be."""
    return re.sub(r"[^a-z0-9_-]", "-", name.lower())[:63]


def stack_filter(stack: str) -> str:
    """Return the list filter for all jobs of a stack, `<pulumi project>/<stack>`."""
    labels = own_labels(f"{stack}/", "")
    return " AND ".join(f'labels.{name}="{labels[name]}"' for name in SUBMITTER_LABELS[:-1])


def run_digest(spec: Job, rerun: str, upstream: Sequence[str] = ()) -> str:
    """Return eight hex digits that differ whenever the job would run anew: the folder of a run's outputs.

    Other labels or another display name make others, too; `training_digests` tell these apart.
    `upstream` are the run digests of the jobs whose results it uses, and the digests of its data. Previews show the
    digest, so it does not depend on secrets.
    """
    return digest(spec.kind.collection, spec.fields, rerun or 0, *upstream)[:8]


def job_token(
    spec: Job,
    owner: str,
    secrets: Mapping[str, str],
    rerun: str,
    referenced: Mapping[str, str],
    data: Sequence[str] = (),
) -> str:
    """Return 32 hex digits that are equal for equal jobs of one resource: the key of an idempotent create.

    `owner` is `<pulumi project>/<stack>/<resource name>`, `referenced` the resource names of the jobs whose results it
    uses, and of its TensorBoard, by reference: when one of them is another one, this is another job. `data` are the
    digests of its locked data.
    """
    others = ([referenced] if referenced else []) + ([[*data]] if data else [])
    return digest(spec.kind.collection, owner, spec.fields, secrets, rerun or 0, *others)[:32]


def mark(ledger_id: str, job_name: str) -> str:
    """Return the label value that all jobs have which one state has submitted under one name."""
    return f"{ledger_id}-{digest(job_name)[:16]}"


def training_digests(jobs: Iterable[Training]) -> dict[str, str]:
    """Return by name eight hex digits that are equal for declared jobs that differ in names and labels alone."""
    return {
        job.name: digest(job.kind.collection, without_names(job.job.fields), job.lifecycle.get("rerun") or 0)[:8]
        for job in jobs
    }


def renamed(olds: Mapping[str, Any], news: Mapping[str, Any], gone: Iterable[str]) -> dict[str, str]:
    """Return the jobs that are new among the inputs of a ledger and run what one that is `gone` has run, with its name.

    `olds` and `news` are the ledger's inputs before and after an update.
    """
    runs, kinds = news.get("runs") or {}, olds.get("jobs") or {}
    before = {(olds.get("runs") or {}).get(name): name for name in sorted(gone)}
    names = {name: before.get(runs.get(name)) for name in sorted(news["jobs"].keys() - kinds.keys())}
    return {name: old for name, old in names.items() if old and kinds[old] == news["jobs"][name]}


def without_names(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a job that a run depends on: no labels, no display name, and none of a model after it."""
    model = fields.get("modelToUpload") or {}
    if model.get("displayName") == fields.get("displayName"):
        fields = {**fields, "modelToUpload": {**model, "displayName": None}}
    return {key: value for key, value in fields.items() if key not in NAME_FIELDS}


def declarations_digest(jobs: Iterable[Training]) -> str:
    """Return 16 hex digits that differ whenever what is declared of any job differs, its lifecycle included."""
    return digest({job.name: (job.kind.collection, job.job.fields, job.lifecycle) for job in jobs})[:16]


def digest(*parts: object) -> str:
    """Return 64 hex digits that differ whenever one of the parts does, values of JSON. No unknown is like another."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=repr).encode()).hexdigest()
