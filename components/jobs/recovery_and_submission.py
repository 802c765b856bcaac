"""Recovery or submission of a job: an equivalent job is found again, orphans are removed, or a new job is submitted."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from ..runtime.engine import require_alive
from ..runtime.target import Target
from ..schema import interpolation
from .provider_inputs import JobInputs
from .recovery.current_ledger_contents import get_current_ledger
from .recovery.job_digests import compute_idempotency_token
from .recovery.job_labels import MARK_LABEL, build_labels
from .recovery.orphan_removal import remove_orphans_among_jobs
from .recovery.submitted_jobs_cache import SubmittedJobsCache
from .refusal_explanations import reraise_refusals_with_remedies

Job = Mapping[str, Any]


def remove_orphans_find_or_submit_job(
    api: Target, inputs: JobInputs, reference_tables: interpolation.Tables, jobs_cache: SubmittedJobsCache
) -> Job:
    """Return the job that stands for a resource: an equivalent one that exists already, or a new one.

    Other jobs that this stack has submitted for the resource are removed first. `reference_tables` have the values of
    the references in its spec. Raises VertexError and SubmitFailed.
    """
    kind, project_and_stack_name = inputs.spec.kind, inputs.project_and_stack_name
    token = compute_idempotency_token(
        inputs.spec, inputs.owner, inputs.secrets, inputs.rerun, inputs.upstream_api_names_by_reference
    )
    labels = build_labels(inputs.owner, token)
    equivalent_job = jobs_cache.find_equivalent_usable_job_or_none(api, kind, project_and_stack_name, token)
    ledger = get_current_ledger().get_contents_or_none(project_and_stack_name)
    if ledger and inputs.pulumi_name in ledger.names:
        labels[MARK_LABEL] = ledger.compute_mark_label_value(inputs.pulumi_name)
        marked = jobs_cache.find_marked_job_api_names(api, kind, project_and_stack_name, labels[MARK_LABEL])
        orphans = [name for name in marked if not equivalent_job or name != equivalent_job["name"]]
        remove_orphans_among_jobs(
            api.client, ledger.fully_qualified_stack_name, dict.fromkeys(orphans, inputs.pulumi_name)
        )
    if equivalent_job:
        return equivalent_job
    job = interpolation.expand(inputs.spec.fields, reference_tables)
    job["labels"] = {**job.get("labels", {}), **labels}
    with reraise_refusals_with_remedies(inputs.spec, api):
        return api.client.create(
            kind,
            api.parent,
            job,
            check_before=partial(require_alive, inputs.error_prefix),
            find_created=partial(
                jobs_cache.find_job_created_since_listing_or_none, api, kind, project_and_stack_name, token
            ),
            keep_first=lambda created: jobs_cache.remove_all_but_first(
                api, kind, project_and_stack_name, token, created, inputs.pulumi_name
            ),
        )
