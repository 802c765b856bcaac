"""ProgramJobs: the jobs that a program creates by hand, validated together before any of them is submitted."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

import pulumi

from vertex_api.job import Job
from vertex_api.messages import show_path
from vertex_api.names import Kind
from vertex_api.validation.formats import Violation

from ..errors import DeclarationErrors, Problem
from .resource import when_known

JobKey = tuple[str, str]
"""The type of a job (CustomJob) and its name: what tells the jobs of a program apart."""
MAX_NAMES = 5


class JobRules(Protocol):
    """What a stack requires of the jobs of a program, beyond the rules of the API."""

    def find_job_violations(self, spec: Job, built_image_names: Collection[str]) -> Iterable[Violation]:
        """Find the rules that a valid job breaks. `built_image_names` are image URIs of the program, without tags."""

    def find_cost_limit_problems(self, specs: Mapping[JobKey, Job]) -> Iterable[Problem]:
        """Find the limits of cost that valid jobs break, each alone or all together."""


class ProgramJobs:
    """Collects the problems of all jobs that a program creates by hand, and keeps the jobs from being submitted.

    A preview registers all jobs, those with problems with an unknown spec, and fails once all specs are known that a
    preview can know. An update registers no job as long as the program has problems. A spec with outputs is checked
    when those are known, and always before its job is submitted.
    """

    def __init__(self, rules: JobRules | None = None) -> None:
        #: What is called with all jobs whose specs are known: at the end of a preview without problems, and in an
        #: update before one of them is registered. It may raise a `pulumi.RunError`.
        self.on_valid_specs: Callable[[Mapping[JobKey, Job]], object] = len
        #: The URIs, without tags, of the images that the program builds.
        self.built_image_names: set[str] = set()
        self._rules = rules
        self._specs: dict[JobKey, Job] = {}
        self._problems: list[Problem] = []
        self._cost_problems: list[Problem] = []
        self._has_new_specs = False
        self._refusal: pulumi.RunError | None = None
        self._unknown_specs: dict[JobKey, None] = {}
        self._awaited_specs: list[pulumi.Output[Any]] = []
        self._preview_validation: pulumi.Output[None] | None = None

    def apply_rules_record_and_get_validity(
        self, kind: Kind, name: str, spec: Job | None, known_violations: Iterable[Violation]
    ) -> bool:
        """Record a job, its `known_violations` and the rules that its spec breaks. Return whether it is valid.

        `spec` is None if it is unknown or invalid.
        """
        found = list(known_violations)
        if spec:
            self._specs[kind.type, name] = spec
            self._has_new_specs = True
            found += self._rules.find_job_violations(spec, self.built_image_names) if self._rules else ()
        place = format_kind_and_name((kind.type, name))
        self._problems += [Problem(place, show_path(path), message) for path, message in found]
        if self._preview_validation is None and pulumi.runtime.is_dry_run():
            self._preview_validation = pulumi.Output.from_input(self._await_specs_and_raise_or_call_back())
        return not found

    def validate_and_record_spec_when_known(
        self, kind: Kind, name: str, spec: Any, validate: Callable[[Any], tuple[Job | None, list[Violation]]]
    ) -> pulumi.Output[Job | None]:
        """Validate a spec with outputs as soon as those are known, and record it. Return it, None if it is invalid."""

        def validate_and_record(known_spec: Any) -> Job | None:
            self._unknown_specs.pop((kind.type, name), None)
            canonical, violations = validate(known_spec)
            return canonical if self.apply_rules_record_and_get_validity(kind, name, canonical, violations) else None

        canonical = pulumi.Output.from_input(spec).apply(validate_and_record)
        self._unknown_specs[kind.type, name] = None
        self._awaited_specs.append(canonical)
        return canonical

    def get_fields_once_all_jobs_are_valid(
        self, spec: pulumi.Input[Job | None], upstream: Sequence[pulumi.Resource]
    ) -> pulumi.Input[Any]:
        """Return the fields that a job is registered with, failing in an update if any job of the program is invalid.

        In a preview they wait for no other job, and are unknown if the spec is invalid.
        """
        if pulumi.runtime.is_dry_run():
            return when_known(lambda known: known.fields if known else pulumi.Output.from_input(pulumi.UNKNOWN), spec)

        def raise_if_jobs_invalid_or_get_fields(spec_and_urns: Sequence[Any]) -> Mapping[str, Any] | None:
            known: Job | None = spec_and_urns[0]
            self._raise_if_jobs_invalid_or_call_back()
            return known.fields if known else None

        # An apply runs after the program's own statements, so all jobs that those create are recorded.
        # A program that ends while resources are being registered can crash, so those that the job needs come first.
        return pulumi.Output.all(spec, *(resource.urn for resource in upstream)).apply(
            raise_if_jobs_invalid_or_get_fields
        )

    async def _await_specs_and_raise_or_call_back(self) -> None:
        while self._awaited_specs:
            await self._awaited_specs.pop().future()
        self._preview_validation = None  # a job that an apply creates after this is a reason to end once more
        if self._unknown_specs:
            names = [format_kind_and_name(key) for key in self._unknown_specs]
            more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
            pulumi.log.info(
                f"not known in this preview: the specs of {', '.join(names[:MAX_NAMES])}{more}. "
                "They are validated during the update, each before its job is submitted"
            )
        self._raise_if_jobs_invalid_or_call_back()

    def _raise_if_jobs_invalid_or_call_back(self) -> None:
        """Raise a `pulumi.RunError` if one job or all together break a rule; else call `on_valid_specs`."""
        if self._refusal:
            raise self._refusal
        if self._has_new_specs:
            self._cost_problems = [*self._rules.find_cost_limit_problems(self._specs)] if self._rules else []
        try:
            if problems := [*self._problems, *self._cost_problems]:
                raise DeclarationErrors(problems)
            if self._has_new_specs:
                self._has_new_specs = False
                self.on_valid_specs(self._specs)
        except pulumi.RunError as refusal:
            self._refusal = refusal
            raise


def format_kind_and_name(key: JobKey) -> str:
    """Return how messages name a job of a program: `CustomJob "train"`."""
    kind_type, name = key
    return f'{kind_type} "{name}"'
