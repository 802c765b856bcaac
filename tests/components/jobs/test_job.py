"""What a program reads of jobs and gives to others: properties, and results that wait, order and rerun."""

from typing import Any

import pulumi
import pytest
from vertex_training import Completion, CustomJob, HyperparameterTuningJob
from vertex_training.errors import DeclarationErrors

from tests.components.fakes import Ground
from tests.components.jobs.test_provider import ARGS
from tests.components.targets.gcp.graph import Graph, graph
from tests.vertex_api.jobs import custom_job, edited, tuning_job

# The threads of Pulumi's mocks leave an event loop each.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

RUN = {"name": "projects/p/locations/r/customJobs/1", "state": "JOB_STATE_RUNNING", "page": "https://page"}
TRIAL = {"id": "3", "parameters": {"rate": 0.1}, "metrics": {"accuracy": 0.9}}


def searching(ground: Ground, **given: Any) -> HyperparameterTuningJob:
    return HyperparameterTuningJob("search", tuning_job(), foundation=ground, **given)  # type: ignore[arg-type]


def training(ground: Ground, *args: str, name: str = "train", **given: Any) -> CustomJob:
    return CustomJob(name, edited(custom_job(), *ARGS, to=[*args]), foundation=ground, **given)  # type: ignore[arg-type]


def using(**lifecycle: Any) -> Graph:
    """A search, and a training with a parameter of its best trial."""

    def program() -> None:
        ground = Ground()
        search = searching(ground, lifecycle=lifecycle)
        training(ground, f"--rate={search.result('bestTrial.parameters.rate')}")

    return graph(program)


def test_a_result_waits_and_orders_by_itself() -> None:
    found = using()
    assert found.inputs["CustomJob/train"]["spec"]["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["args"] == [
        "--rate=${jobs.search.bestTrial.parameters.rate}"
    ]
    assert found.inputs["CustomJob/train"]["jobs"] == {"search": "search-id"}
    assert found.inputs["Completion/wait-for-search"]["jobs"] == {"search": "search-id"}
    assert found.needs("CustomJob/train") == {"HyperparameterTuningJob/search", "Completion/wait-for-search"}


def test_a_rerun_search_reruns_its_training() -> None:
    def folder(found: Graph) -> str:
        spec = found.inputs["CustomJob/train"]["spec"]["jobSpec"]
        return str(spec["baseOutputDirectory"]["outputUriPrefix"])

    assert len({folder(using()), folder(using(rerun=1)), folder(using(rerun="2026-11-25 again"))}) == 3
    assert folder(using(rerun=1)) == folder(using(rerun="1"))
    assert folder(using(rerun=0)) == folder(using())


def test_a_job_waits_for_no_other_than_it_uses() -> None:
    def program() -> None:
        ground = Ground()
        search = searching(ground)
        training(ground, f"--rate={search.result('bestTrial.parameters.rate')}")
        training(ground, "--plain", name="plain")
        training(ground, "--again=${jobs.search.name}", name="again")

    found = graph(program)
    assert found.needs("CustomJob/plain") == set()
    assert found.needs("CustomJob/again") == found.needs("CustomJob/train")
    assert len(found.of("Completion")) == 1


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ("bestTrial.parameters.rat", r"parameters\.rat\} is not a result of search; did you mean"),
        ("metrics.score", r"\.metrics\.score\} cannot be used by another job: the stack's output `results`, or"),
    ],
)
def test_an_unknown_result_is_named(result: str, message: str) -> None:
    def program() -> None:
        ground = Ground()
        training(ground, searching(ground).result(result))

    with pytest.raises(DeclarationErrors, match=message):
        graph(program)


def test_metrics_of_a_custom_job_are_refused() -> None:
    def program() -> None:
        ground = Ground()
        training(ground, training(ground, name="first").result("metrics.score"))

    with pytest.raises(DeclarationErrors, match=r"first\.metrics\.score\} cannot be used by another job"):
        graph(program)


def test_two_jobs_of_a_name_have_no_results() -> None:
    def program() -> None:
        ground = Ground()
        searching(ground).result("bestTrial.id")
        training(ground, name="search").result("modelDir")

    with pytest.raises(pulumi.RunError, match=r'^"search": two jobs have this name; pass them as `jobs`'):
        graph(program)


def test_outputs_are_properties() -> None:
    seen: dict[str, Any] = {}

    def program() -> None:
        job = training(Ground(), "--epochs=1")
        for name in ("resource_name", "state", "page", "model_dir"):
            getattr(job, name).apply(lambda value, name=name: seen.update({name: value}))

    graph(program, {"CustomJob": {"run": RUN}})
    assert seen.pop("model_dir").startswith("gs://staging/train/")
    assert seen == {"resource_name": "train-id", "state": "JOB_STATE_RUNNING", "page": "https://page"}


def test_a_best_trial_waits_for_the_search() -> None:
    seen: list[Any] = []

    def program() -> None:
        searching(Ground()).best_trial.apply(seen.append)

    found = graph(program, {"Completion": {"results": {"search": {"bestTrial": TRIAL}}}})
    assert seen == [TRIAL]
    assert [*found.of("Completion")] == ["Completion/wait-for-search"]


def test_a_wait_is_beside_its_job() -> None:
    def program() -> None:
        above = pulumi.ComponentResource("team:index:Search", "above")
        searching(Ground(), opts=pulumi.ResourceOptions(parent=above)).completion  # noqa: B018

    assert graph(program).parent("Completion/wait-for-search") == "Search/above"


def test_passed_jobs_need_no_own_wait() -> None:
    def program() -> None:
        ground = Ground()
        search = searching(ground)
        search.result("bestTrial.id")
        done = Completion("done", {"search": search}, foundation=ground)
        opts = pulumi.ResourceOptions(depends_on=[done])
        training(ground, "${jobs.search.bestTrial.id}", jobs={"search": search}, opts=opts)

    assert [*graph(program).of("Completion")] == ["Completion/done"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"secrets": ["a"]}, 'CustomJob "train": secrets: must be an object'),
        ({"data": {"a": "b"}}, 'CustomJob "train": data.a: must be one of the `data` of a TrainingStack'),
        ({"data": ["a"]}, 'CustomJob "train": data: must be an object'),
        ({"lifecycle": "keep"}, 'CustomJob "train": lifecycle: must be an object'),
        ({"opts": {}}, 'CustomJob "train": opts: {} must be a pulumi.ResourceOptions'),
        ({"foundation": "x"}, "CustomJob \"train\": foundation: 'x' must be the `foundation` of a TrainingStack"),
        ({"deadlines": {"trian": "60s"}}, 'Completion "done": deadlines.trian: is not one of its jobs; did you mean'),
        ({"deadlines": {"train": "soon"}}, 'Completion "done": deadlines.train: "soon" is not a duration'),
        ({"deadlines": "60s"}, 'Completion "done": deadlines: must be an object'),
    ],
)
def test_a_keyword_of_a_wrong_type_is_one_line(arguments: Any, message: str) -> None:
    def program() -> None:
        ground = Ground()
        if "deadlines" in arguments:
            job = training(ground)
            Completion("done", {"train": job}, foundation=ground, **arguments)
        else:
            CustomJob("train", custom_job(), **{"foundation": ground, **arguments})  # type: ignore[arg-type]

    with pytest.raises(DeclarationErrors) as caught:
        graph(program)
    assert message in str(caught.value)
