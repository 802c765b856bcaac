"""What a stack requires of jobs that a Python program creates by hand: its guardrails and its region."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from vertex_api.estimates.cost import estimate_cost_of_priced_parts
from vertex_api.validation.canonical_spec import CanonicalSpec
from vertex_api.validation.rules import Violation
from vertex_api.validation.rules.region_mismatches import find_region_mismatches

from ..errors import Problem
from ..runtime.program_job_validation import JobKey, format_kind_and_name
from ..schema.config_types import Guardrails
from ..schema.declared_job import DeclaredJob
from . import guardrail_checks
from .price_overrides import merge_prices
from .settings import Settings, read_stack_file_for_line_numbers


class ProgramJobRules:
    """The rules of a stack, as `ProgramJobs` applies them. Their limits of cost count what the stack declares too."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def find_job_violations(self, spec: CanonicalSpec, built_image_names: Collection[str]) -> Iterator[Violation]:
        """Find what a job breaks: the guardrails, and the region of its resources on the target gcp."""
        cloud = self._settings.cloud
        if cloud is not None:
            yield from find_region_mismatches(spec.fields, spec.job_spec_path, self._settings.region)
        rules = _copy_guardrails_allowing_images(self._settings.guardrails, built_image_names)
        job = DeclaredJob(spec.kind, "", spec, {})
        yield from guardrail_checks.find_job_violations(rules, job, {}, (cloud or {}).get("labels", {}))

    def find_cost_limit_problems(self, specs: Mapping[JobKey, CanonicalSpec]) -> Iterator[Problem]:
        """Find the limits of cost that the jobs break, each alone or together with all that the stack declares."""
        settings = copy_settings_with_program_jobs(self._settings, specs)
        places = dict(zip(_list_unique_job_names(self._settings, specs), map(format_kind_and_name, specs), strict=True))
        stack_file = read_stack_file_for_line_numbers(settings.root, settings.stack)
        for name, rule, message in guardrail_checks.find_cost_limit_violations(
            settings.guardrails, settings.costs, settings.region
        ):
            if name in places:
                yield Problem(places[name], "", message)
            else:
                yield stack_file.create_problem((name,) if name else ("guardrails", rule), message)


def copy_settings_with_program_jobs(settings: Settings, specs: Mapping[JobKey, CanonicalSpec]) -> Settings:
    """Return the settings as if the jobs of a program had been declared, with their costs.

    A job whose name another one has too is named with its type.
    """
    specs_by_name = dict(zip(_list_unique_job_names(settings, specs), specs.values(), strict=True))
    jobs = (DeclaredJob(spec.kind, name, spec, {}) for name, spec in specs_by_name.items())
    costs = dict(settings.costs)
    if settings.cloud is not None:
        prices = merge_prices(settings.cloud.get("prices"))
        for name, spec in specs_by_name.items():
            costs[name] = estimate_cost_of_priced_parts(spec, settings.region, prices)
    return replace(settings, jobs=(*settings.jobs, *jobs), costs=costs)


def _list_unique_job_names(settings: Settings, specs: Mapping[JobKey, CanonicalSpec]) -> list[str]:
    counts = Counter([*(job.name for job in settings.jobs), *(name for _, name in specs)])
    return [key[1] if counts[key[1]] == 1 else format_kind_and_name(key) for key in specs]


def _copy_guardrails_allowing_images(rules: Guardrails, built_image_names: Collection[str]) -> Guardrails:
    """Return the guardrails for a program that builds these images: they are pushed to the stack's own registry."""
    if "registries" not in rules:
        return rules
    return {**rules, "registries": [*rules["registries"], *sorted(built_image_names)]}
