"""Google's SDK (`google.cloud.aiplatform`) on Vertex AI Experiments: what a notebook does.

An `init` with a project goes on by gRPC, and one without by REST.
"""

import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud.aiplatform.metadata import metadata

from tests.blocks import taken
from tests.clients.test_sdk import snake
from tests.vertex_emulator.running import RunningEmulator

ACCOUNT = "trainer@local.iam.gserviceaccount.com"
PRINTS = """
import json, os
print(json.dumps({name: value for name, value in os.environ.items() if name.startswith(("AIP_EXP", "CLOUD_ML_"))}))
"""


class Frame:
    """As much of pandas' DataFrame as the SDK uses to return a table."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = rows

    @property
    def columns(self) -> list[str]:
        return [*dict.fromkeys(name for row in self.rows for name in row)]

    def reindex(self, columns: list[str], axis: int) -> "Frame":
        return Frame([{name: row.get(name) for name in columns} for row in self.rows])


@pytest.fixture
def sdk(aiplatform: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The SDK without an experiment, and with one that it has begun no longer set afterwards."""
    monkeypatch.setattr(aiplatform.initializer.global_config, "_api_transport", None)
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=Frame))  # the SDK does not require it
    yield aiplatform
    metadata._experiment_tracker.reset()
    for board in aiplatform.Tensorboard.list():
        board.delete()


def table(sdk: Any, experiment: str, **options: Any) -> list[dict[str, Any]]:
    return list(sdk.get_experiment_df(experiment, **options).rows)


def test_a_notebook_keeps_the_record_of_its_runs(sdk: Any) -> None:
    sdk.init(project="local", experiment="digits", experiment_description="of a notebook")
    (board,) = sdk.Tensorboard.list(filter="is_default=true")
    for number, rate in enumerate((0.1, 0.01), 1):
        with sdk.start_run(f"run-{number}"):
            sdk.log_params({"rate": rate, "optimizer": "sgd", "layers": number})
            for step, loss in enumerate((1.0, 0.5)):
                sdk.log_time_series_metrics({"loss": loss / number}, step=step)
            sdk.log_metrics({"accuracy": 0.5 * number})
            sdk.log_classification_metrics(labels=["no", "yes"], matrix=[[3, 1], [0, 4]], display_name="confusion")
    (second, first) = table(sdk, "digits")
    assert first == {
        "experiment_name": "digits",
        "run_name": "run-1",
        "run_type": "system.ExperimentRun",
        "state": "COMPLETE",
        "param.rate": 0.1,
        "param.optimizer": "sgd",
        "param.layers": 1.0,
        "metric.accuracy": 0.5,
        "time_series_metric.loss": 0.5,
    }
    assert (second["run_name"], second["time_series_metric.loss"]) == ("run-2", 0.25)
    assert "time_series_metric.loss" not in table(sdk, "digits", include_time_series=False)[0]
    (shown,) = sdk.ExperimentRun("run-1", "digits").get_classification_metrics()
    assert (shown["labels"], shown["matrix"], shown["display_name"]) == (["no", "yes"], [[3, 1], [0, 4]], "confusion")

    sdk.init(project="local", experiment="digits")  # another notebook goes on
    with sdk.start_run("run-1", resume=True) as resumed:
        assert (resumed.get_params()["optimizer"], resumed.get_state()) == ("sgd", "RUNNING")
        sdk.log_metrics({"accuracy": 0.75})
        sdk.log_time_series_metrics({"loss": 0.125})
    assert resumed.get_metrics() == {"accuracy": 0.75}
    assert [row["time_series_metric.loss"] for row in table(sdk, "digits")] == [0.25, 0.125]
    with pytest.raises(ZeroDivisionError), sdk.start_run("fails"):
        sdk.log_params({"rate": 1 / 0})
    assert table(sdk, "digits")[0]["state"] == "FAILED"
    with pytest.raises(exceptions.Conflict, match=r"Context with name projects/\d+/.*/digits-fails already exi"):
        sdk.start_run("fails")

    assert {run.name for run in sdk.ExperimentRun.list(experiment="digits")} == {"run-1", "run-2", "fails"}
    sdk.ExperimentRun("fails", "digits").delete(delete_backing_tensorboard_run=True)
    assert sdk.ExperimentRun.get("fails", experiment="digits") is None
    (experiment,) = [each for each in sdk.Experiment.list() if each.name == "digits"]
    assert experiment.backing_tensorboard_resource_name == board.resource_name
    experiment.delete(delete_backing_tensorboard_runs=True)
    assert sdk.Experiment.get("digits") is None
    assert sdk.TensorboardRun.list(f"{board.resource_name}/experiments/digits") == []


def test_lineage_of_a_run_is_recorded(sdk: Any) -> None:
    sdk.init(experiment="lineage", experiment_tensorboard=False)
    sdk.start_run("first")
    data = sdk.Artifact.create("system.Dataset", uri="gs://bucket/data", display_name="data")
    with sdk.start_execution(schema_title="system.ContainerExecution", display_name="train") as step:
        step.assign_input_artifacts([data])
        model = sdk.Artifact.create("system.Model", uri="gs://bucket/model", metadata={"layers": 2})
        step.assign_output_artifacts([model])
    found = sdk.ExperimentRun("first", "lineage")
    assert {each.uri for each in found.get_artifacts()} == {"gs://bucket/data", "gs://bucket/model"}
    assert [each.display_name for each in found.get_executions()] == ["train"]
    assert [each.uri for each in step.get_input_artifacts()] == ["gs://bucket/data"]
    assert sdk.Artifact.get_with_uri("gs://bucket/model").metadata == {"layers": 2}
    graph = sdk.Context(found.resource_name).query_lineage_subgraph()
    assert (len(graph.artifacts), len(graph.executions), len(graph.events)) == (2, 1, 2)
    sdk.Experiment("lineage").delete()


def test_an_update_begins_again_when_another_was_first(sdk: Any) -> None:
    sdk.init(project="local", experiment="races", experiment_tensorboard=False)
    sdk.start_run("run")
    other = sdk.ExperimentRun("run", "races")
    with pytest.raises(exceptions.InvalidArgument, match="NaN"):  # which JSON has not
        sdk.log_metrics({"loss": float("nan")})
    sdk.log_params({"a": 1})
    other.log_params({"b": 2})
    assert sdk.ExperimentRun("run", "races").get_params() == {"a": 1, "b": 2}
    sdk.Experiment("races").delete()


def test_a_run_that_is_missing_is_told_as_there(sdk: Any) -> None:
    sdk.init(experiment="empty", experiment_tensorboard=False)
    missing = "Resource not found.; GetContext is unable to find context resource with name: projects/.*/empty-none"
    with pytest.raises(exceptions.NotFound, match=missing):
        sdk.ExperimentRun("none", "empty")
    assert table(sdk, "empty") == []
    sdk.Experiment("empty").delete()


def test_a_job_is_a_run_of_its_experiment(sdk: Any, emulator: RunningEmulator, monkeypatch: pytest.MonkeyPatch) -> None:
    (program,) = taken("docs/google.md", "python", "from os import environ")
    sdk.init(project="local", location="us-central1", experiment="jobs", experiment_tensorboard=False)
    sdk.start_run("named")
    metadata._experiment_tracker.reset()
    bucket = "gs://sdk/experiment"
    pools = [snake(PRINTS)]
    job = sdk.CustomJob(display_name="of a run", worker_pool_specs=pools, base_output_dir=bucket)
    job.submit(service_account=ACCOUNT, experiment="jobs", experiment_run="named")
    job._block_until_complete()
    alone = sdk.CustomJob(display_name="of none", worker_pool_specs=pools, base_output_dir=bucket)
    alone.run(service_account=ACCOUNT, experiment="jobs")

    for each, name in ((job, "named"), (alone, alone.name)):
        (printed,) = [line for line in emulator.objects(each.resource_name) if "AIP_EXPERIMENT_NAME" in line]
        assert (printed["AIP_EXPERIMENT_NAME"], printed["AIP_EXPERIMENT_RUN_NAME"]) == ("jobs", name)
        for variable, value in printed.items():
            monkeypatch.setenv(variable, str(value))
        exec(program, {})  # what the job's own code does
        metadata._experiment_tracker.reset()
    rows = {row["run_name"]: row for row in table(sdk, "jobs")}
    found = {name: (row["param.rate"], row["metric.accuracy"]) for name, row in rows.items()}
    assert found == {"named": (0.1, 0.9), alone.name: (0.1, 0.9)}
    assert rows["named"]["state"] == "COMPLETE"  # the SDK ends it, which waits for the job
    (logged,) = sdk.ExperimentRun("named", "jobs").get_logged_custom_jobs()
    assert logged.resource_name == job.resource_name
    sdk.Experiment("jobs").delete()
