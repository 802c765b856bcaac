"""Settings: the stack file and its declarations, parsed once, with every problem reported together."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vertex_api.errors import first_problems, too_many
from vertex_api.estimates.cost import Cost, estimate_cost, persistent_cost

from ..errors import DeclarationErrors, Problem
from ..schema import shapes
from ..schema.declared_job import DeclaredJob
from ..schema.declared_schedule import DeclaredSchedule
from ..schema.source import SourceFile
from . import gcp_stack_rules, guardrail_checks
from .declaration_loading import load_entries_and_problems
from .declaration_parsing import parse_declarations_and_find_problems
from .default_cloud_names import build_cloud_config_with_default_names_and_labels
from .price_overrides import merge_prices
from .stack_config_parsing import (
    NAMESPACE,
    extract_and_decode_own_config,
    find_credentials_problems,
    find_valid_values_and_violations,
)
from .stack_specific_job_checks import find_duplicate_adoptions, find_job_violations
from .writable_folders import WritableFolders


@dataclass(frozen=True)
class Settings:
    """The valid settings of a stack.

    `root` is the project's folder, `project` and `region` are Google Cloud's. `cloud` is None unless the target is
    `gcp`; it has names for all resources that the stack creates. `jobs` are those that `pulumi up` submits,
    `scheduled_jobs` those of `schedules`. `costs` are those of the jobs by name, and that of
    `gcp_stack_rules.PERSISTENT_RESOURCE`; empty unless the target is `gcp`.
    """

    pulumi_project: str
    stack: str
    root: Path
    project: str
    region: str
    emulator: shapes.Emulator
    cloud: shapes.Cloud | None
    images: Mapping[str, shapes.Image]
    packages: Mapping[str, shapes.PythonPackage]
    jobs: tuple[DeclaredJob, ...]
    scheduled_jobs: tuple[DeclaredJob, ...]
    schedules: tuple[DeclaredSchedule, ...]
    secrets: Mapping[str, str]
    guardrails: shapes.Guardrails
    costs: Mapping[str, Cost]

    @classmethod
    def load(cls) -> "Settings":
        """Return the settings of the running Pulumi program. Raises DeclarationErrors."""
        import pulumi
        from pulumi.runtime import get_config_env

        return cls.load_from_config(pulumi.get_project(), pulumi.get_stack(), Path.cwd(), get_config_env())

    @classmethod
    def load_from_config(cls, pulumi_project: str, stack: str, root: Path, config: Mapping[str, str]) -> "Settings":
        """Return the settings of a stack's config (`{"vertex-training:target": "local", …}`) and its included files.

        Raises DeclarationErrors with all problems.
        """
        stack_file = read_stack_file_for_line_numbers(root, stack)
        values, violations = find_valid_values_and_violations(extract_and_decode_own_config(config))
        problems = [stack_file.problem(*violation) for violation in first_problems(violations)]
        if values.get("target") == "gcp":
            problems += find_credentials_problems(stack_file.name, config)
        entries, unloadable = load_entries_and_problems(root, stack_file, values)
        if too_many([*problems, *unloadable]):
            raise DeclarationErrors(sorted([*problems, *unloadable], key=_get_file_and_line))
        declared = parse_declarations_and_find_problems(entries, stack_file, values, root)
        cloud = None
        if values.get("target") == "gcp" and "project" in values:
            cloud = build_cloud_config_with_default_names_and_labels(pulumi_project, stack, values)
        folders = WritableFolders.of_stack(pulumi_project, stack, cloud) if cloud else None
        costs = _estimate_job_and_persistent_resource_costs_by_name(declared.jobs, values)
        problems += [*unloadable, *declared.problems]
        for job in declared.jobs:
            if too_many(problems):
                break
            entry = entries[job.kind.collection][job.name]
            problems += [
                entry.problem(*each)
                for each in first_problems(find_job_violations(job, declared.images, values, folders))
            ]
        if folders:
            specs = [job.valid_spec for job in declared.jobs if job.valid_spec]
            problems += [stack_file.problem(*violation) for violation in folders.find_violations(specs)]
        for job, message in find_duplicate_adoptions(declared.jobs):
            problems.append(entries[job.kind.collection][job.name].problem(("lifecycle", "adopt"), message))
        if rules := values.get("guardrails"):
            pool_violations = guardrail_checks.find_resource_pool_violations(rules, values)
            problems += [stack_file.problem(*violation) for violation in pool_violations]
            kinds = {job.name: job.kind for job in declared.jobs}
            for name, rule, message in guardrail_checks.find_cost_limit_violations(
                rules, costs, values.get("region", "")
            ):
                if name in kinds:
                    problems.append(entries[kinds[name].collection][name].problem((), message))
                else:
                    problems.append(stack_file.problem((name,) if name else ("guardrails", rule), message))
        if problems:
            raise DeclarationErrors(sorted(problems, key=_get_file_and_line))
        return cls(
            pulumi_project=pulumi_project,
            stack=stack,
            root=root,
            project=values.get("project", "local"),
            region=values.get("region", "us-central1"),
            emulator=values.get("emulator", {}),
            cloud=cloud,
            images=declared.images,
            packages=declared.packages,
            jobs=tuple(job for job in declared.jobs if not job.is_scheduled),
            scheduled_jobs=tuple(job for job in declared.jobs if job.is_scheduled),
            schedules=declared.schedules,
            secrets=values.get("secrets", {}),
            guardrails=values.get("guardrails", {}),
            costs=costs,
        )


def read_stack_file_for_line_numbers(root: Path, stack: str) -> SourceFile:
    """Read a stack file for its line numbers only: its values come from the engine, with secrets decrypted."""
    name = f"stacks/Pulumi.{stack}.yaml"
    file = root / name
    return SourceFile(name, file.read_bytes() if file.is_file() else b"", f"{NAMESPACE}:")


def _estimate_job_and_persistent_resource_costs_by_name(
    jobs: Iterable[DeclaredJob], stack_values: Mapping[str, Any]
) -> dict[str, Cost]:
    """Estimate what valid jobs and the persistent resource cost, if the target is `gcp` and its region is valid."""
    if stack_values.get("target") != "gcp" or "region" not in stack_values:
        return {}
    region, known = stack_values["region"], merge_prices(stack_values.get("prices"))
    specs = {job.name: job.required_valid_spec for job in jobs if job.valid_spec}
    costs = {name: estimate_cost(spec, region, known) for name, spec in specs.items()}
    if pools := [pool for _, pool in gcp_stack_rules.iterate_resource_pools_with_paths(stack_values)]:
        costs[gcp_stack_rules.PERSISTENT_RESOURCE] = persistent_cost(pools, region, known)
    return costs


def _get_file_and_line(problem: Problem) -> tuple[str, int]:
    file, _, line = problem.place.rpartition(":")
    return (file, int(line)) if line.isdecimal() else (problem.place, 0)
