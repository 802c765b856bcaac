"""What a program gives a job: every slip is said in the words of the declarations, before anything is registered."""

from collections.abc import Callable
from typing import Any, cast

import pulumi
import pytest
from vertex_training import CustomJob, HyperparameterTuningJob
from vertex_training.errors import KNOWN_HERE, DeclarationErrors
from vertex_training.plan.plan import Plan
from vertex_training.plan.programmed import Program

from tests.components.fakes import Ground
from tests.components.jobs.test_provider import ARGS
from tests.components.targets.gcp.graph import Graph, graph
from tests.vertex_api.jobs import custom_job, edited, tuning_job

# The threads of Pulumi's mocks leave an event loop each.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

UNKNOWN = "is not a reference that is allowed here; write ${secrets.NAME} or ${jobs.NAME.RESULT}"


def problems_of(program: Callable[[], Any]) -> list[str]:
    """What is wrong with the jobs of a program, of which an update then registers none."""
    try:
        found = graph(program)
    except DeclarationErrors as errors:
        count, *lines = (line for line in str(errors).splitlines() if KNOWN_HERE not in line)
    else:
        assert found.of("CustomJob")
        return []
    assert count == f"{len(lines)} problem{'s' if len(lines) > 1 else ''} in what is declared:"
    return [line.removeprefix("  ") for line in lines]


def said(name: str = "train", spec: Any = None, ground: Ground | None = None, **given: Any) -> list[str]:
    """What is wrong with a job, without its name."""
    place = f'CustomJob "{name}": '
    lines = problems_of(lambda: CustomJob(name, spec or custom_job(), foundation=ground or Ground(), **given))
    assert all(line.startswith(place) for line in lines)
    return [line.removeprefix(place) for line in lines]


def with_args(*args: Any) -> Any:
    return edited(custom_job(), *ARGS, to=[*args])


def made(spec: Any, **given: Any) -> Graph:
    return graph(lambda: CustomJob("train", spec, foundation=Ground(), **given) and None)


@pytest.mark.parametrize(
    ("lifecycle", "problem"),
    [
        ({"onDelet": "keep"}, "lifecycle.onDelet: unknown field; did you mean onDelete?"),
        ({"onDelete": "kepp"}, 'lifecycle.onDelete: "kepp" is not one of delete, cancel or keep'),
        ({"rerun": [1]}, "lifecycle.rerun: [1] is not a string"),
        (
            {"wait": True},
            "lifecycle.wait: is for files of declarations: in a program a Completion waits for the jobs that it is "
            "given",
        ),
        (
            {"after": ["a"]},
            "lifecycle.after: is for files of declarations: in a program depends_on says the order, and a Completion "
            "among them that jobs have succeeded",
        ),
        (
            {"deadline": "1s"},
            "lifecycle.deadline: is for files of declarations: in a program a Completion takes deadlines",
        ),
        (
            {"run": "scheduled"},
            "lifecycle.run: is for files of declarations: in a program a Schedule takes jobs to run, each as a "
            "JobTemplate",
        ),
    ],
)
def test_a_lifecycle_rejects_what_is_not_for_programs(lifecycle: dict[str, Any], problem: str) -> None:
    assert said(lifecycle=lifecycle) == [problem]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "${vars.a}",
            "${vars.a} is not a reference that is allowed here; write ${secrets.NAME} or ${jobs.NAME.RESULT}"
            ". For a literal ${ write $${",
        ),
        (
            "${images.a}",
            "${images.a} is not a reference that is allowed here; write ${secrets.NAME} or ${jobs.NAME.RESULT}"
            ". For a literal ${ write $${",
        ),
        ("${secrets.tokn}", "${secrets.tokn} is not among the secrets of this job; did you mean token?"),
        ("${secrets.a", '"${secrets.a" is a `${` without `}`; close it, or write `$${` for a literal `${`'),
        ("${jobs.nope.modelDir}", "${jobs.nope.modelDir} is of none of the jobs of this job"),
    ],
)
def test_a_reference_that_nothing_fills_is_refused(text: str, problem: str) -> None:
    (found,) = said(spec=with_args("--a", text), secrets={"token": "s"})
    assert found == f"jobSpec.workerPoolSpecs[0].containerSpec.args[1]: {problem}"


def test_an_unknown_result_suggests_the_closest_name() -> None:
    def program() -> None:
        ground = Ground()
        tune = HyperparameterTuningJob("tune", tuning_job(), foundation=ground)
        spec = with_args("${jobs.tune.bestTrial.parameters.rat}")
        CustomJob("train", spec, foundation=ground, jobs={"tune": tune})

    (problem,) = problems_of(program)
    assert problem.endswith("is not a result of tune; did you mean bestTrial.parameters.rate?")


def test_all_problems_are_reported_at_once() -> None:
    spec = {**with_args("${vars.a}"), "labels": {"pulumi_name": "mine"}, "displayName": 5}
    found = said("UPPER name!", spec, lifecycle={"wait": True, "onDelet": "keep", "rerun": [1]})
    assert [line.partition(":")[0] for line in found] == [
        '"UPPER name!" must be lower-case letters, digits, "-", "_" and ".", at most 63',
        "lifecycle.wait",
        "lifecycle.onDelet",
        "lifecycle.rerun",
        "displayName",
        "jobSpec.workerPoolSpecs[0].containerSpec.args[0]",
    ]


@pytest.mark.parametrize("name", ["packages", "build-sources"])
def test_no_job_has_the_name_of_a_closed_folder(name: str) -> None:
    assert said(name) == [f'"{name}" is a folder of the bucket that jobs may not write to; choose another name']


def test_the_label_limit_counts_foundation_and_stack_labels() -> None:
    spec, ground = (
        custom_job() | {"labels": {f"a{n}": "b" for n in range(40)}},
        Ground(program=Program(Plan({"target": "local", "labels": {"a0": "b", "team": "x"}}))),
    )
    assert made(spec)
    spec["labels"] |= {f"c{n}": "d" for n in range(19)}
    assert made(spec)
    (problem,) = said(spec=spec, ground=ground)
    assert problem == (
        "labels: has 60 labels, with those of the stack file; at most 59 are allowed, as 5 are the stack's own"
    )


def test_a_spec_is_checked_once_known() -> None:
    def program() -> None:
        late = cast(str, pulumi.Output.from_input("--late"))
        spec = {**with_args(late, "${secrets.q}"), "labels": {"No": "no"}}
        CustomJob("train", cast(Any, spec), foundation=Ground())

    assert [line.partition(": ")[2].partition(": ")[0] for line in problems_of(program)] == [
        "jobSpec.workerPoolSpecs[0].containerSpec.args[1]",
        "labels",
    ]


def test_an_adoption_is_checked_by_location() -> None:
    name = "projects/p/locations/europe-west4/customJobs/1"
    assert said(lifecycle={"adopt": name, "rerun": 1}) == [
        f'lifecycle.adopt: "{name}" is in europe-west4, and the jobs of this stack are in us-central1',
        "lifecycle.rerun: an adopted job is not run; take adopt out to run what is declared",
    ]


def test_what_is_right_is_taken_as_it_is() -> None:
    found = made(with_args("$${vars.a}", "${secrets.a}"), secrets={"a": "b"}, lifecycle={"onDelete": "cancel"})
    assert found.inputs["CustomJob/train"]["lifecycle"] == {"onDelete": "cancel"}
