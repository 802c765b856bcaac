"""Two faults, two problems: one of shape hides no fault of rule in the same job, and makes none up."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import pytest

from tests.corpus.faults import Base, Case, bases, cases
from vertex_api import pipelines
from vertex_api.job import parse_job
from vertex_api.messages import KeyPath
from vertex_api.names import KINDS, TRAINING_PIPELINE, Kind
from vertex_api.pipelines import CUSTOM_TASK
from vertex_api.validation.shape import FieldProblem, canonicalize

DEPENDENT = {
    ("acceleratorCount", "acceleratorType"),
    ("acceleratorCount", "machineType"),
    ("acceleratorTyp", "acceleratorType"),
    ("acceleratorType", "acceleratorCount"),
    ("acceleratorType", "machineType"),
    ("acceleratrType", "strategy"),
    ("envs", "trainingTaskDefinition"),
    ("machine_typ", "strategy"),
    ("machine_type", "machineSpec"),
    ("maxTrialCount", "maxFailedTrialCount"),
    ("maxTrialCount", "parallelTrialCount"),
    ("maxTrials", "maxFailedTrialCount"),
    ("maxTrials", "parallelTrialCount"),
    ("metric", "metrics"),
    ("parameter", "convexAutomatedStoppingSpec"),
    ("parameter", "parameterId"),
    ("parameters", "convexAutomatedStoppingSpec"),
    ("params", "convexAutomatedStoppingSpec"),
    ("reservationAffinityType", "key"),
    ("reservationAffinityType", "values"),
    ("schedulng", "trainingTaskDefinition"),
    ("sheduling", "trainingTaskDefinition"),
    ("trainingTaskInputs", "trainingTaskDefinition"),
    ("workerPoolSpecs", "trainingTaskDefinition"),
}
"""A field that is misshapen, and another whose fault depends on what it should have said."""
JOB_BASES = tuple(
    base for base in bases().values() if base.at[:1] and base.at[0] in KINDS and "config/job.yaml" not in base.files
)
"""Those whose job stands in the declaration itself."""


def job_in(case: Case) -> tuple[Kind, dict[str, Any]]:
    section, name = case.base.at[:2]
    job = case.files()[case.base.file][section][name]
    job.pop("lifecycle", None)
    named = {} if job.keys() & {"displayName", "display_name"} else {"displayName": "job"}
    if isinstance(model := job.get("modelToUpload"), dict):
        model.setdefault("displayName", "model")
    if section == TRAINING_PIPELINE.collection:
        job.setdefault("trainingTaskDefinition", CUSTOM_TASK)
    return KINDS[str(section)], {**named, **job}


def problems(case: Case) -> list[FieldProblem]:
    return parse_job(*job_in(case))[1]


def is_of_shape(case: Case) -> bool:
    kind, job = job_in(case)
    if kind == TRAINING_PIPELINE and pipelines.validate_pipeline(job).headline:
        return True
    return bool(canonicalize(kind.typed_dict, job)[1])


@cache
def faults() -> Mapping[str, list[tuple[Case, FieldProblem, bool]]]:
    """Cases with one problem, by base, with that problem and whether it is one of shape."""
    found = defaultdict(list)
    for case in cases():
        if case.base in JOB_BASES:
            found[case.base.name] += [(case, problem, is_of_shape(case)) for problem in problems(case)]
    return found


def both(one: Case, other: Case) -> Case:
    """A case that has the faults of two."""
    return replace(other, base=replace(other.base, files=one.files()))


def related(*paths: KeyPath) -> bool:
    return all(part == another for part, another in zip(*paths, strict=False))


def name(case: Case) -> str:
    written = getattr(case.value, "name", None) or case.path[-1]
    return str(written) if isinstance(written, str) else str(case.path[-2])


def judged_together(misshapen: Case, broken: Case) -> bool:
    """Values of a study's parameter are judged with its children, its scale and its id."""
    paths = [
        case.path[: case.path.index("parameters") + 2] for case in (misshapen, broken) if "parameters" in case.path
    ]
    return len(set(paths)) < len(paths)


def pairs(base: Base) -> Iterator[tuple[Case, Case, FieldProblem, FieldProblem]]:
    found = faults()[base.name]
    for (misshapen, first, is_shape), (broken, second, is_too) in product(found, found):
        theirs = product((misshapen.path[2:], first.path), (broken.path[2:], second.path))
        if is_shape and not is_too and not any(related(*paths) for paths in theirs):
            yield misshapen, broken, first, second


@pytest.mark.parametrize("base", JOB_BASES, ids=lambda base: base.name)
def test_shape_violations_neither_hide_nor_cause_rule_violations(base: Base) -> None:
    for misshapen, broken, first, second in pairs(base):
        found = set(problems(both(misshapen, broken)))
        assert found <= {first, second}, (misshapen.name, broken.name)
        if (name(misshapen), name(broken)) not in DEPENDENT and not judged_together(misshapen, broken):
            assert found == {first, second}, (misshapen.name, broken.name)


def places(value: Any, at: KeyPath = ()) -> Iterator[KeyPath]:
    if isinstance(value, dict | list):
        for key, child in value.items() if isinstance(value, dict) else enumerate(value):
            yield (*at, key)
            yield from places(child, (*at, key))


@pytest.mark.parametrize("base", JOB_BASES, ids=lambda base: base.name)
def test_misshapen_values_cause_no_other_violation(base: Base) -> None:
    whole = Case(base, (), None, "", "")
    job = base.files[base.file][base.at[0]][base.at[1]]
    for path in places(job):
        for wrong in ("text!", [{"of": {"an": "other"}}], 7.5, True):
            case = replace(whole, path=(*base.at[:2], *path), value=wrong)
            found = problems(case)
            if is_of_shape(case):
                assert len({problem.path[: len(path)] for problem in found}) == 1, (path, wrong, found)
