"""Settings: what a stack and its declarations say, parsed once, with every problem reported together."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vertex_api.estimates import persistent_resource
from vertex_api.estimates.cost import Cost, estimate_cost
from vertex_api.validation.messages import check_partially, collect_problems, extract_valid_part
from vertex_api.validation.rules import Violation, likely_mistakes, region
from vertex_api.validation.shape import FieldProblem, validate_shape

from ..errors import DeclarationErrors
from ..errors import Problem as Declared
from ..images import rules as image_rules
from ..jobs import adoption
from ..jobs.recovery import ownership
from ..schema import references, shapes
from ..schema.job_declaration import JobDeclaration
from ..schema.source_file import Source
from . import google_cloud, guardrails, prices
from .declarations import SECTIONS, Declarations

NAMESPACE = "vertex-training"
"""Always this one: a project made from the template has another name, but the same keys."""


@dataclass(frozen=True)
class Settings:
    """All that the program is told. `root` is the project's folder, `project` and `region` are Google Cloud's.

    `cloud` is what the target `gcp` stands on, with names for all that is made; None for other targets. `costs` are
    those of its jobs by name, and that of `google_cloud.MACHINES`: other targets cost nothing.
    """

    pulumi_project: str
    stack: str
    root: Path
    project: str
    region: str
    emulator_port: int | None
    cloud: shapes.Cloud | None
    images: Mapping[str, shapes.Image]
    packages: Mapping[str, shapes.PythonPackage]
    jobs: tuple[JobDeclaration, ...]
    secrets: Mapping[str, str]
    guardrails: shapes.Guardrails
    costs: Mapping[str, Cost]

    @classmethod
    def load(cls) -> "Settings":
        """The settings of the running Pulumi program. Raises DeclarationErrors."""
        import pulumi
        from pulumi.runtime import get_config_env

        return cls.parse(pulumi.get_project(), pulumi.get_stack(), Path.cwd(), get_config_env())

    @classmethod
    def parse(cls, pulumi_project: str, stack: str, root: Path, config: Mapping[str, str]) -> "Settings":
        """The settings in a stack's config (`{"vertex-training:target": "local", …}`) and the files that it includes.

        Raises DeclarationErrors with everything that is wrong.
        """
        source = Source(root / "stacks" / f"Pulumi.{stack}.yaml", f"stacks/Pulumi.{stack}.yaml", f"{NAMESPACE}:")
        given = {
            key.removeprefix(source.namespace): _value(text)
            for key, text in config.items()
            if key.startswith(source.namespace)
        }
        values, broken = validate_shape(
            shapes.Stack, {key: value for key, value in given.items() if key not in SECTIONS}
        )
        left = extract_valid_part(shapes.Stack, values, broken)
        unfit = check_partially(_of_the_target, left) if ("target",) not in left.removed_paths else []
        problems = [source.problem(problem.path, _discreet(problem)) for problem in (*broken, *unfit)]
        without_choice = guardrails.empty(given.get("guardrails"))
        problems += [source.problem(("guardrails", *path), message) for path, message in without_choice]
        # As jobs with a problem, machines with one are neither priced nor judged, nor is anything by no region.
        unsound = {problem.path[0] for problem in unfit} & {google_cloud.MACHINES, "region"}
        unsound |= {problem.path[0] for problem in broken}
        values = {key: value for key, value in values.items() if key not in unsound}
        declarations = Declarations(root, source, {**values, **{key: given[key] for key in SECTIONS if key in given}})
        images, packages, jobs = declarations.images(), declarations.packages(), declarations.jobs()
        problems += declarations.problems + declarations.unused_vars()
        problems += _not_adoptable(declarations, jobs, values)
        problems += _not_meant(declarations, jobs, images, values)
        problems += _out_of_region(declarations, jobs, values)
        problems += _mislabelled(declarations, jobs, values)
        costs = _costs(jobs, values)
        problems += _beyond_guardrails(declarations, images, jobs, costs, values)
        if problems:
            raise DeclarationErrors(sorted(problems, key=lambda problem: _by_line(problem.place)))
        return cls(
            pulumi_project=pulumi_project,
            stack=stack,
            root=root,
            project=values.get("project", "local"),
            region=values.get("region", "us-central1"),
            emulator_port=values.get("emulator", {}).get("port"),
            cloud=google_cloud.completed(pulumi_project, stack, values) if values["target"] == "gcp" else None,
            images=images,
            packages=packages,
            jobs=jobs,
            secrets=values.get("secrets", {}),
            guardrails=values.get("guardrails", {}),
            costs=costs,
        )


def _of_the_target(values: Mapping[str, Any]) -> Iterable[Violation]:
    """What the stack's target asks for, and what it has no use for."""
    if values["target"] == "gcp":
        found = prices.broken(values["prices"], values.get("region")) if "prices" in values else ()
        return [*google_cloud.broken(values), *((("prices", *path), message) for path, message in found)]
    given = [key for key in shapes.Cloud.__annotations__ if key in values]
    return [((key,), "is for the target gcp, and the target here is local") for key in given]


def _not_meant(
    declarations: Declarations,
    jobs: Iterable[JobDeclaration],
    images: Mapping[str, shapes.Image],
    values: Mapping[str, Any],
) -> Iterable[Declared]:
    """What the jobs without a problem say that cannot be meant; those that are adopted are as they are."""
    for job in (job for job in jobs if job.valid_spec and not job.is_adopted):
        kind, trains = job.spec.training_job.kind, job.spec.training_job.fields
        on_google_cloud = likely_mistakes.find_foreign_executors(kind, trains) if values.get("target") == "gcp" else ()
        problems = collect_problems(
            (*likely_mistakes.find_likely_mistakes(kind, trains), *on_google_cloud), trains, references.is_open
        )
        found = {job.spec.locate(problem.path): problem.message for problem in problems}
        found |= dict(
            (
                *likely_mistakes.find_missing_serving_container(job.spec.fields),
                *image_rules.unmarked(job.spec, images),
            )
        )
        for path, message in found.items():
            yield declarations.problem_of(job, path, message)


def _out_of_region(
    declarations: Declarations, jobs: Iterable[JobDeclaration], values: Mapping[str, Any]
) -> Iterable[Declared]:
    """What the jobs without a problem name in other regions: only Vertex AI has some."""
    if values.get("target") == "gcp" and "region" in values:
        for job in (job for job in jobs if job.valid_spec):
            for path, message in region.find_region_mismatches(
                job.spec.fields, job.spec.job_spec_path, values["region"]
            ):
                yield declarations.problem_of(job, path, message)


def _mislabelled(
    declarations: Declarations, jobs: Iterable[JobDeclaration], values: Mapping[str, Any]
) -> Iterable[Declared]:
    """Labels of the stack's own in jobs that are submitted, or too many beside them."""
    for job in jobs:
        if job.valid_spec and not job.is_adopted:
            labels = job.spec.fields.get("labels", {})
            for path, message in ownership.labels_broken(labels, values.get("labels", {})):
                yield declarations.problem_of(job, ("labels", *path), message)


def _costs(jobs: Iterable[JobDeclaration], values: Mapping[str, Any]) -> dict[str, Cost]:
    """What jobs and machines without a problem cost, where they cost anything and where is known."""
    if values.get("target") != "gcp" or "region" not in values:
        return {}
    known = prices.prices_of(values.get("prices"))
    costs = {job.name: estimate_cost(job.spec, values["region"], known) for job in jobs if job.valid_spec}
    if machines := [pool for _, pool in google_cloud.pools(values)]:
        costs[google_cloud.MACHINES] = persistent_resource.estimate_pool_cost(machines, values["region"], known)
    return costs


def _not_adoptable(
    declarations: Declarations, jobs: Iterable[JobDeclaration], values: Mapping[str, Any]
) -> Iterable[Declared]:
    """What is wrong with the jobs that are adopted by name."""
    place = values.get("project", "local"), values.get("projectNumber"), values.get("region", "us-central1")
    adopted: dict[str, str] = {}
    for job in jobs:
        if (adopt := job.lifecycle.get("adopt")) is None:
            continue
        other = adopted.setdefault(adopt.rpartition("/")[2], job.name)
        messages = [*adoption.broken(job.kind, adopt, *place)]
        messages += [f'"{adopt}" is adopted by {other} already'] if other != job.name else []
        yield from (declarations.problem_of(job, ("lifecycle", "adopt"), message) for message in messages)
        if job.lifecycle.get("rerun"):
            yield declarations.problem_of(job, ("lifecycle", "rerun"), adoption.NOT_RUN)


def _beyond_guardrails(
    declarations: Declarations,
    images: Mapping[str, shapes.Image],
    jobs: Iterable[JobDeclaration],
    costs: Mapping[str, Cost],
    values: Mapping[str, Any],
) -> Iterable[Declared]:
    rules: shapes.Guardrails | None = values.get("guardrails")
    if rules is None:
        return
    by_name = {job.name: job for job in jobs if job.valid_spec}
    for job in by_name.values():
        for path, message in guardrails.broken(rules, job, images, values.get("labels", {})):
            yield declarations.problem_of(job, path, message)
    for path, message in guardrails.broken_by_machines(rules, values):
        yield declarations.stack.problem(path, message)
    for name, rule, message in guardrails.over_budget(rules, costs, values.get("region", "")):
        if name in by_name:
            yield declarations.problem_of(by_name[name], (), message)
        else:
            yield declarations.stack.problem((name,) if name else ("guardrails", rule), message)


def _value(text: str) -> Any:
    """A value of the config: the engine hands texts over as they are, and lists and objects as JSON."""
    try:
        return json.loads(text) if text[:1] in ("{", "[") else text
    except ValueError:
        return text


def _discreet(problem: FieldProblem) -> str:
    return "must be a string" if problem.path[0] == "secrets" and len(problem.path) > 1 else problem.message


def _by_line(place: str) -> tuple[str, int]:
    file, _, line = place.partition(":")
    return file, int(line or 0)
