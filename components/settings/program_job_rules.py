"""What a stack requires of jobs that a Python program creates by hand: its guardrails and its region."""

from collections.abc import Collection, Iterator, Mapping

from vertex_api.job import Job
from vertex_api.mistakes import region_mismatches
from vertex_api.validation.formats import Violation

from ..errors import Problem
from ..runtime.program_job_validation import JobKey, format_kind_and_name
from ..schema.declared_job import DeclaredJob
from ..schema.shapes import Guardrails
from . import guardrail_checks
from .settings import Settings, read_stack_file_for_line_numbers
from .settings_with_program_jobs import copy_settings_with_program_jobs, list_unique_program_job_names
from .writable_folders import WritableFolders


class ProgramJobRules:
    """The rules of a stack, as `ProgramJobs` applies them. Their limits of cost count what the stack declares too."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def find_job_violations(self, spec: Job, built_image_names: Collection[str]) -> Iterator[Violation]:
        """Find what a job breaks: the guardrails, and on the target gcp its region and the folders of the bucket."""
        cloud = self._settings.cloud
        if cloud is not None:
            yield from region_mismatches(spec, self._settings.region)
            folders = WritableFolders.of_stack(self._settings.pulumi_project, self._settings.stack, cloud)
            yield from folders.find_job_violations(spec, is_granted=False)
        rules = _copy_guardrails_allowing_images(self._settings.guardrails, built_image_names)
        job = DeclaredJob(spec.kind, "", spec, {})
        yield from guardrail_checks.find_job_violations(rules, job, {}, (cloud or {}).get("labels", {}))

    def find_cost_limit_problems(self, specs: Mapping[JobKey, Job]) -> Iterator[Problem]:
        """Find the limits of cost that the jobs break, each alone or together with all that the stack declares."""
        settings = copy_settings_with_program_jobs(self._settings, specs)
        places = dict(
            zip(list_unique_program_job_names(self._settings, specs), map(format_kind_and_name, specs), strict=True)
        )
        stack_file = read_stack_file_for_line_numbers(settings.root, settings.stack)
        for name, rule, message in guardrail_checks.find_cost_limit_violations(
            settings.guardrails, settings.costs, settings.region
        ):
            if name in places:
                yield Problem(places[name], "", message)
            else:
                yield stack_file.problem((name,) if name else ("guardrails", rule), message)


def _copy_guardrails_allowing_images(rules: Guardrails, built_image_names: Collection[str]) -> Guardrails:
    """Return the guardrails for a program that builds these images: they are pushed to the stack's own registry."""
    if "registries" not in rules:
        return rules
    return {**rules, "registries": [*rules["registries"], *sorted(built_image_names)]}
