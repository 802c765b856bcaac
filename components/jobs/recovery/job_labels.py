"""Labels of submitted jobs, by which a later `pulumi up` finds the jobs of its stack."""

import re
from collections.abc import Collection, Iterator

from vertex_api.validation.formats import MAX_LABELS, Violation

TOKEN_LABEL = "pulumi_token"
MARK_LABEL = "pulumi_mark"
OWN_LABELS = ("pulumi_project", "pulumi_stack", "pulumi_name", TOKEN_LABEL, MARK_LABEL)
"""All labels that a submitted job has beside those of its spec."""


def build_labels(project_stack_and_job_name: str, idempotency_token: str) -> dict[str, str]:
    """Return the labels of a submitted job within the service's rules: lower case, at most 63 characters.

    `project_stack_and_job_name` is `<pulumi project>/<stack>/<resource name>`.
    """
    parts = project_stack_and_job_name.lower().split("/")
    project, stack, name = (re.sub(r"[^a-z0-9_-]", "-", part)[:63] for part in parts)
    return {"pulumi_project": project, "pulumi_stack": stack, "pulumi_name": name, TOKEN_LABEL: idempotency_token}


def build_stack_filter(project_and_stack_name: str) -> str:
    """Return the list filter for all jobs of a stack; its qualified name is `<pulumi project>/<stack>`."""
    labels = build_labels(f"{project_and_stack_name}/", "")
    return " AND ".join(f'labels.{name}="{labels[name]}"' for name in ("pulumi_project", "pulumi_stack"))


def find_reserved_or_excess_label_violations(
    labels: Collection[str], stack_labels: Collection[str] = ()
) -> Iterator[Violation]:
    """Find labels of a job, or of all jobs, that leave no room for `OWN_LABELS` and the labels of the stack file."""
    for name in OWN_LABELS:
        if name in labels:
            yield (name,), "is a label that the stack gives its jobs itself; take another name"
    count, max_count = len({*labels, *stack_labels}), MAX_LABELS - len(OWN_LABELS)
    if len(stack_labels) <= max_count < count <= MAX_LABELS:
        total = f"{count} labels{', with those of the stack file' if stack_labels else ''}"
        yield (), f"has {total}; at most {max_count} are allowed, as {len(OWN_LABELS)} are the stack's own"
