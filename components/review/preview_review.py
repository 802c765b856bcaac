"""Review: all findings of a preview, compared with a preview of the base branch if there is one."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from vertex_api.estimates.quota import parse_quota_table

from ..plan.guardrails import Near
from ..plan.plan import Totals
from .data_losses import DataLoss, find_data_losses
from .grant_changes import Grant, find_grant_changes
from .image_and_package_changes import ImageFinding, find_changed_images_and_packages
from .job_changes import JobFinding, find_changed_jobs
from .other_resource_changes import OtherChange, find_changes_of_other_resources
from .preview_document import PreviewDocument
from .preview_messages import list_unique_root_error_messages, list_unique_warning_messages
from .schedule_changes import ScheduleFinding, find_changed_schedules
from .stack_cost_and_quota import Submissions, pace, plan_of


@dataclass(frozen=True)
class Review:
    """What a reviewer needs of a preview.

    If the preview failed, there are `problems`, and everything else but `warnings` is empty. `before` and `after` are
    None for a target without cost. `granted_quota` has, by metric, what the preview shows as granted. `unlisted_count`
    is how many unchanged resources the preview does not list, so that the totals lack their jobs. `pending_in_base`
    names what the base would change in the same way, which is left out of the findings; `only_in_base` what the base
    would change and this preview does not.
    """

    project: str
    stack: str
    has_base: bool
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    images: tuple[ImageFinding, ...] = ()
    jobs: tuple[JobFinding, ...] = ()
    schedules: tuple[ScheduleFinding, ...] = ()
    data_losses: tuple[DataLoss, ...] = ()
    grants: tuple[Grant, ...] = ()
    other_changes: tuple[OtherChange, ...] = ()
    before: Totals | None = None
    after: Totals | None = None
    near_limits: tuple[Near, ...] = ()
    granted_quota: Mapping[str, str] = field(default_factory=dict)
    submissions: Submissions | None = None
    unlisted_count: int = 0
    pending_in_base: tuple[str, ...] = ()
    only_in_base: tuple[str, ...] = ()


def build_review(preview: PreviewDocument, base: PreviewDocument | None = None) -> Review:
    """Return the findings of a preview. With a `base`, they are those that the base does not have."""
    problems = list_unique_root_error_messages(preview.diagnostics)
    warnings = list_unique_warning_messages(preview.diagnostics)
    if base and base.has_failed:
        base = None
        warnings.append("the preview of the base failed, so this one is compared with the stack as it is")
    if preview.has_failed:
        return Review(preview.project, preview.stack, base is not None, tuple(problems), tuple(warnings))
    base_steps = {step.urn: step for step in base.steps} if base else {}
    steps = [step for step in preview.steps if step.op == "same" or step != base_steps.get(step.urn)]
    changed_urns = {step.urn for step in preview.steps if step.op != "same"}
    before = plan_of(base, is_after=True) if base else plan_of(preview, is_after=False)
    after = plan_of(preview, is_after=True)
    all_jobs = find_changed_jobs(preview.steps, preview.steps)
    return Review(
        preview.project,
        preview.stack,
        base is not None,
        warnings=tuple(warnings),
        images=tuple(find_changed_images_and_packages(steps)),
        jobs=tuple(find_changed_jobs(steps, preview.steps) if base else all_jobs),
        schedules=tuple(find_changed_schedules(steps, preview.steps, preview.diagnostics)),
        data_losses=tuple(find_data_losses(steps)),
        grants=tuple(find_grant_changes(steps)),
        other_changes=tuple(find_changes_of_other_resources(steps)),
        before=before.totals if before else None,
        after=after.totals if after else None,
        near_limits=tuple(after.near) if after else (),
        granted_quota=parse_quota_table(each.message for each in preview.diagnostics),
        submissions=Submissions(sum(job.creation_and_deletion_count for job in all_jobs), pace(preview)),
        unlisted_count=preview.unlisted_count,
        pending_in_base=tuple(
            step.name for step in preview.steps if step.op != "same" and step == base_steps.get(step.urn)
        ),
        only_in_base=tuple(
            step.name for step in base_steps.values() if step.op != "same" and step.urn not in changed_urns
        ),
    )
