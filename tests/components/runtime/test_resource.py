"""Pulumi's options on our resources: each reaches the engine, or is refused with a line that says what to do."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulumi
import pytest
from vertex_training import (
    Completion,
    CustomJob,
    HyperparameterTuningJob,
    JobTemplate,
    PythonPackage,
    Schedule,
    TrainingImage,
    TrainingPipeline,
)

from tests.components.fakes import Ground
from tests.components.targets.gcp.graph import Graph, graph
from tests.vertex_api.jobs import custom_job, pipeline, tuning_job

# The threads of Pulumi's mocks leave an event loop each.
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.usefixtures("sources"),
]

PAGE = (Path(__file__).parents[3] / "docs" / "python.md").read_text()
DYNAMIC: dict[str, Callable[..., Any]] = {
    "CustomJob": lambda name, opts, at: CustomJob(name, custom_job(), opts, foundation=at),  # type: ignore[arg-type]
    "HyperparameterTuningJob": lambda name, opts, at: HyperparameterTuningJob(name, tuning_job(), opts, foundation=at),  # type: ignore[arg-type]
    "TrainingPipeline": lambda name, opts, at: TrainingPipeline(name, pipeline(), opts, foundation=at),  # type: ignore[arg-type]
    "Completion": lambda name, opts, at: Completion(name, {}, opts, foundation=at),
    "TrainingImage": lambda name, opts, at: TrainingImage(name, {"context": "."}, opts, foundation=at),
    "PythonPackage": lambda name, opts, at: PythonPackage(name, {"script": "train.py"}, opts, foundation=at),
}


def scheduled(name: str, opts: pulumi.ResourceOptions, at: Ground) -> Schedule:
    jobs = {"train": JobTemplate(CustomJob, custom_job())}  # type: ignore[arg-type]
    return Schedule(name, {"cron": "0 2 * * *", "jobs": jobs}, opts, foundation=at)


ALL = {**DYNAMIC, "Schedule": scheduled}


def made(kind: str, **options: Any) -> Graph:
    return graph(lambda: ALL[kind]("one", pulumi.ResourceOptions(**options), Ground()) and None)


@pytest.mark.parametrize("kind", ALL)
def test_options_reach_the_engine(kind: str) -> None:
    request = made(kind, protect=True, aliases=[pulumi.Alias(name="old")]).requests[f"{kind}/one"]
    assert request.protect
    assert [alias.spec.name for alias in request.aliases] == ["old"]


@pytest.mark.parametrize("kind", DYNAMIC)
def test_options_of_one_resource_reach_the_engine(kind: str) -> None:
    options = {"retain_on_delete": True, "ignore_changes": ["spec"], "replace_on_changes": ["lifecycle"]}
    options |= {"additional_secret_outputs": ["run"], "delete_before_replace": False}
    request = made(kind, **options).requests[f"{kind}/one"]
    assert [*request.additionalSecretOutputs] == ["run"]
    assert request.deleteBeforeReplaceDefined and not request.deleteBeforeReplace
    assert request.retainOnDelete
    assert [*request.ignoreChanges] == ["spec"]
    assert "lifecycle" in request.replaceOnChanges
    assert "Job" not in kind or "spec" in request.replaceOnChanges, "beside our own"


@pytest.mark.parametrize("kind", DYNAMIC)
def test_stack_traces_are_of_other_resources(kind: str) -> None:
    class Other(pulumi.ComponentResource):
        def __init__(self) -> None:
            super().__init__("team:index:Other", "after")

    def program() -> None:
        ALL[kind]("one", pulumi.ResourceOptions(), Ground())
        Other()

    requests = graph(program, traces=True).requests
    assert [*requests[f"{kind}/one"].stackTrace.frames] == []
    assert [*requests["Other/after"].stackTrace.frames] != []


@pytest.mark.parametrize("kind", ALL)
def test_a_parent_is_the_parent(kind: str) -> None:
    def program() -> None:
        above = pulumi.ComponentResource("team:index:Above", "above")
        ALL[kind]("one", pulumi.ResourceOptions(parent=above), Ground())

    assert graph(program).parent(f"{kind}/one") == "Above/above"


@pytest.mark.parametrize("kind", DYNAMIC)
def test_options_without_effect_are_refused(kind: str) -> None:
    other: Any = object.__new__(pulumi.ProviderResource)
    other.package = "gcp"
    for options, said in (
        ({"providers": {"gcp": other}}, "providers has no effect: it is Pulumi's own for Python"),
        ({"provider": other}, "provider has no effect: it is Pulumi's own for Python; credentials and the region come"),
        ({"custom_timeouts": pulumi.CustomTimeouts(delete="1m")}, "custom_timeouts has no effect: a job ends by sched"),
        ({"import_": "1"}, "import_ is not possible; give a job `lifecycle="),
        ({"version": "1.0.0"}, "version has no effect: the provider is Pulumi's own for Python"),
        ({"plugin_download_url": "https://here"}, "plugin_download_url has no effect: the provider is Pulumi's own"),
    ):
        opts = pulumi.ResourceOptions()
        opts.__dict__.update(options)
        with pytest.raises(pulumi.RunError, match=rf'^{kind} "one": {said}'):
            graph(lambda opts=opts: ALL[kind]("one", opts, Ground()) and None)


@pytest.mark.parametrize(
    "options",
    [
        {"ignore_changes": ["cron"]},
        {"replace_on_changes": ["cron"]},
        {"custom_timeouts": pulumi.CustomTimeouts(delete="1m")},
        {"retain_on_delete": True},
        {"delete_before_replace": True},
        {"additional_secret_outputs": ["status"]},
    ],
    ids=lambda options: next(iter(options)),
)
def test_options_of_one_resource_are_refused_by_a_component(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(pulumi.RunError, match=rf'^Schedule "one": {name} is for one resource, and this has several'):
        made("Schedule", **options)


def test_providers_of_a_schedule_reach_its_resources() -> None:
    import pulumi_gcp

    class Cloud(Ground):
        def create_schedule(self, name: str, request: Any, opts: pulumi.ResourceOptions) -> Any:
            pulumi_gcp.storage.Bucket("starts", location="EU", opts=opts)
            return super().create_schedule(name, request, opts)

    def program() -> None:
        other = pulumi_gcp.Provider("other", project="acme")
        scheduled("one", pulumi.ResourceOptions(providers=[other]), Cloud())

    assert "::other::" in graph(program).requests["Bucket/starts"].provider


def test_the_page_names_all_options_and_resources() -> None:
    table = PAGE[PAGE.index("## Pulumi's resource options") :]
    options = "protect retain_on_delete ignore_changes replace_on_changes custom_timeouts aliases parent transforms"
    others = "additional_secret_outputs delete_before_replace import_ version plugin_download_url"
    for name in (*options.split(), *others.split(), "provider", "providers"):
        assert f"`{name}`" in table
    assert all(f"`{kind}`" in table for kind in ALL)
