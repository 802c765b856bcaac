"""Training pipelines on a machine in memory: their states, their models, and kills at any step."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.vertex_emulator.fakes import Clock, Emulator, Machine, use_clock
from tests.vertex_emulator.jobs import LOCATION, pool, tuning_job_spec
from tests.vertex_emulator.kills import assert_that_no_kill_changes_the_end, beginning
from tests.vertex_emulator.scheduling.steps import inject, mounted
from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, TRAINING_PIPELINE
from vertex_api.pipelines import CUSTOM_TASK, TUNING_TASK
from vertex_emulator.api.validation import canonicalize
from vertex_emulator.errors import ApiError
from vertex_emulator.replicas.spec import ReplicaSpec
from vertex_emulator.scheduling.pipeline import InputData

OUTPUT = {"outputUriPrefix": "gs://my-bucket/run"}
MODEL = {"displayName": "a model", "containerSpec": {"imageUri": "serve:1"}}


@pytest.fixture
def emulator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Emulator:
    clock = Clock()
    use_clock(clock, monkeypatch)
    return Emulator(tmp_path, Machine(clock, program=saves))


def saves(spec: ReplicaSpec) -> int:
    """A trainer that writes a file to its model folder, and reports how far its x is from 0.5 when it is a trial."""
    buckets = mounted(spec, "/gcs")
    assert buckets is not None
    if "AIP_MODEL_DIR" in spec.environment:
        folder = buckets / spec.environment["AIP_MODEL_DIR"].removeprefix("gs://")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "weights").write_text("1")
    folder = mounted(spec, "/tmp/hypertune")
    if folder is not None:
        value = abs(float(str(spec.args[-1]).partition("=")[2]) - 0.5) if spec.args else 0.0
        line = {"timestamp": 1_700_000_100.0, "trial": "1", "acc": str(-value), "global_step": "1"}
        (folder / "output.metrics").write_text(json.dumps(line) + "\n")
    return 0


def submit(emulator: Emulator, **fields: Any) -> str:
    body = {
        "displayName": "a pipeline",
        "trainingTaskDefinition": CUSTOM_TASK,
        "trainingTaskInputs": {"workerPoolSpecs": [pool()], "baseOutputDirectory": OUTPUT},
        **fields,
    }
    return str(emulator.jobs.create(TRAINING_PIPELINE, LOCATION, body)["name"]).rpartition("/")[2]


def submit_study(emulator: Emulator, trials: int = 3, **fields: Any) -> str:
    spec = tuning_job_spec(trials, 1, trialJobSpec={"workerPoolSpecs": [pool()], "baseOutputDirectory": OUTPUT})
    inputs = {name: value for name, value in spec.items() if name != "displayName"}
    return submit(emulator, trainingTaskDefinition=TUNING_TASK, trainingTaskInputs=inputs, **fields)


def shown(emulator: Emulator, pipeline: str) -> dict[str, Any]:
    return emulator.jobs.get(TRAINING_PIPELINE, LOCATION, pipeline)


def backing(emulator: Emulator, pipeline: str) -> str:
    return str(next(iter(shown(emulator, pipeline)["trainingTaskMetadata"].values()))).rpartition("/")[2]


def models(emulator: Emulator) -> list[tuple[str, int, str | None]]:
    with emulator.database.read() as transaction:
        found = transaction.models.versions(LOCATION)
    return [(each.spec["displayName"], each.version, each.spec.get("artifactUri")) for each in found]


def cancel(emulator: Emulator, pipeline: str) -> None:
    emulator.jobs.cancel(TRAINING_PIPELINE, LOCATION, pipeline)


def test_pipeline_uploads_its_job_model(emulator: Emulator) -> None:
    pipeline = submit(emulator, modelToUpload=MODEL)
    assert shown(emulator, pipeline)["state"] == "PIPELINE_STATE_PENDING"
    assert "trainingTaskMetadata" not in shown(emulator, pipeline)
    emulator.run_ready_steps()
    running = shown(emulator, pipeline)
    assert running["state"] == "PIPELINE_STATE_RUNNING"
    assert emulator.job(backing(emulator, pipeline)).state == "JOB_STATE_RUNNING"
    assert "name" not in running["modelToUpload"]
    emulator.run()
    done = shown(emulator, pipeline)
    assert done["state"] == "PIPELINE_STATE_SUCCEEDED"
    assert models(emulator) == [("a model", 1, "gs://my-bucket/run/model/")]
    assert done["modelToUpload"]["name"].startswith(f"{LOCATION.name}/models/")
    assert done["modelToUpload"]["versionId"] == "1"
    assert "error" not in done


def test_a_later_version_is_the_one_returned(emulator: Emulator) -> None:
    """Google's SDK reads `version_id` beside `name`; without it, it shows the default version."""
    first = submit(emulator, modelToUpload=MODEL)
    emulator.run()
    parent = shown(emulator, first)["modelToUpload"]["name"]
    later = submit(
        emulator, parentModel=parent, modelToUpload={**MODEL, "versionAliases": ["candidate"], "displayName": "later"}
    )
    emulator.run()
    uploaded = shown(emulator, later)["modelToUpload"]
    assert (uploaded["name"], uploaded["versionId"]) == (parent, "2")


def test_pipeline_waits_with_its_job(emulator: Emulator) -> None:
    first = submit(emulator, trainingTaskInputs={"workerPoolSpecs": [pool(), pool(3)]})
    second = submit(emulator)
    emulator.run_ready_steps()
    assert shown(emulator, first)["state"] == "PIPELINE_STATE_RUNNING"
    assert shown(emulator, second)["state"] == "PIPELINE_STATE_PENDING"
    assert emulator.job(backing(emulator, second)).state == "JOB_STATE_QUEUED"


def test_failed_job_fails_its_pipeline(emulator: Emulator) -> None:
    emulator.machine.program = lambda spec: 9
    pipeline = submit(emulator, modelToUpload=MODEL)
    emulator.run()
    done = shown(emulator, pipeline)
    assert done["state"] == "PIPELINE_STATE_FAILED"
    job = emulator.jobs.get(CUSTOM_JOB, LOCATION, backing(emulator, pipeline))
    assert done["error"] == job["error"]
    assert "non-zero status of 9" in done["error"]["message"]
    assert models(emulator) == []


def test_job_without_model_fails_its_pipeline(emulator: Emulator) -> None:
    emulator.machine.program = lambda spec: 0
    pipeline = submit(emulator, modelToUpload=MODEL)
    emulator.run()
    error = {"code": 5, "message": 'There are no files under "gs://my-bucket/run/model/" to copy.'}
    assert shown(emulator, pipeline)["error"] == error
    assert models(emulator) == []


def test_models_with_own_or_no_artifact_are_uploaded(
    emulator: Emulator,
) -> None:
    elsewhere = submit(emulator, modelToUpload=MODEL | {"artifactUri": "gs://elsewhere/model"})
    emulator.run()
    nowhere = submit(emulator, modelToUpload=MODEL, trainingTaskInputs={"workerPoolSpecs": [pool()]})
    emulator.run()
    assert {shown(emulator, each)["state"] for each in (elsewhere, nowhere)} == {"PIPELINE_STATE_SUCCEEDED"}
    assert models(emulator) == [("a model", 1, "gs://elsewhere/model"), ("a model", 1, None)]
    with emulator.database.read() as transaction:
        warned = [
            [line.text for line in transaction.jobs.messages(backing(emulator, each)) if "no artifact" in line.text]
            for each in (elsewhere, nowhere)
        ]
    assert [len(lines) for lines in warned] == [0, 1]


def test_tuning_pipeline_uploads_best_model(emulator: Emulator) -> None:
    pipeline = submit_study(emulator, modelToUpload=MODEL)
    emulator.run()
    done = shown(emulator, pipeline)
    assert done["state"] == "PIPELINE_STATE_SUCCEEDED"
    study = emulator.jobs.get(HYPERPARAMETER_TUNING_JOB, LOCATION, backing(emulator, pipeline))
    values = {trial["id"]: trial["finalMeasurement"]["metrics"][0]["value"] for trial in study["trials"]}
    best = max(values, key=lambda number: values[number])
    with emulator.database.read() as transaction:
        jobs = {str(trial.number): trial.job for trial in transaction.trials.all(backing(emulator, pipeline))}
    assert done["trainingTaskMetadata"]["bestTrialBackingCustomJob"].endswith(f"/customJobs/{jobs[best]}")
    assert models(emulator) == [("a model", 1, f"gs://my-bucket/run/{best}/model/")]
    assert len(set(values.values())) == 3


def test_pipeline_beyond_quota_is_created_and_fails(emulator: Emulator) -> None:
    inject(emulator, "quota")
    pipeline = submit(emulator)
    emulator.run()
    failed = shown(emulator, pipeline)
    assert failed["state"] == "PIPELINE_STATE_FAILED"
    assert failed["error"]["code"] == 8
    assert failed["error"]["message"].startswith("The following quota metrics exceed quota limits: aiplatform.")
    assert "trainingTaskMetadata" not in failed


def test_pipeline_without_its_image_is_not_created(emulator: Emulator) -> None:
    emulator.machine.images.clear()
    with pytest.raises(ApiError, match=r"^The image trainer:1 does not exist\.$") as error:
        submit(emulator)
    assert error.value.http == 404


def test_scalars_in_inputs_reach_containers_as_texts(emulator: Emulator) -> None:
    specs = []
    emulator.machine.program = lambda spec: specs.append(spec) or 0  # type: ignore[func-returns-value]
    inputs = {"worker_pool_specs": [pool(args=[7, 0.5], env=[{"name": "WANDB_DISABLED", "value": True}])]}
    pipeline = submit(emulator, trainingTaskInputs=inputs)
    emulator.run()
    assert shown(emulator, pipeline)["trainingTaskInputs"] == inputs
    (spec,) = specs
    assert (spec.args, spec.environment["WANDB_DISABLED"]) == (["7.0", "0.5"], "true")


def test_second_pipeline_uploads_new_model_version(emulator: Emulator) -> None:
    submit(emulator, modelToUpload=MODEL, modelId="mine")
    emulator.run()
    submit(emulator, modelToUpload=MODEL, parentModel="projects/my-project/locations/us-central1/models/mine")
    emulator.run()
    assert [version for _, version, _ in models(emulator)] == [1, 2]


def test_model_id_is_never_taken_twice(emulator: Emulator) -> None:
    first, second = (submit(emulator, modelToUpload=MODEL, modelId="mine") for _ in range(2))
    emulator.run()
    states = [shown(emulator, each) for each in (first, second)]
    assert [found["state"] for found in states] == ["PIPELINE_STATE_SUCCEEDED", "PIPELINE_STATE_FAILED"]
    assert states[1]["error"]["code"] == 6
    with pytest.raises(ApiError) as refusal:
        submit(emulator, modelToUpload=MODEL, modelId="mine")
    assert refusal.value.status == "ALREADY_EXISTS"


def test_missing_parent_model_is_rejected(emulator: Emulator) -> None:
    for parent in (
        "models/x",
        f"{LOCATION.name}/models/x",
        "projects/other/locations/us-central1/models/x",
    ):
        with pytest.raises(ApiError) as refusal:
            submit(emulator, modelToUpload=MODEL, parentModel=parent)
        assert refusal.value.status == "NOT_FOUND"


def test_cancelling_pipeline_cancels_its_job_first(emulator: Emulator) -> None:
    pipeline = submit(emulator, modelToUpload=MODEL)
    emulator.run_ready_steps()
    cancel(emulator, pipeline)
    assert shown(emulator, pipeline)["state"] == "PIPELINE_STATE_CANCELLING"
    emulator.run()
    done = shown(emulator, pipeline)
    assert (done["state"], done["error"]["code"]) == ("PIPELINE_STATE_CANCELLED", 1)
    assert emulator.job(backing(emulator, pipeline)).state == "JOB_STATE_CANCELLED"
    assert models(emulator) == []


def test_pipeline_cancelled_early_creates_no_job(emulator: Emulator) -> None:
    pipeline = submit(emulator)
    cancel(emulator, pipeline)
    emulator.run()
    done = shown(emulator, pipeline)
    assert done["state"] == "PIPELINE_STATE_CANCELLED"
    assert "trainingTaskMetadata" not in done
    with emulator.database.read() as transaction:
        assert [job.kind for job in transaction.jobs.created()] == [TRAINING_PIPELINE]


def test_inputs_of_a_pipeline_are_returned_as_sent(emulator: Emulator) -> None:
    scheduling = {"timeout": "1234s", "restartJobOnWorkerRestart": True, "disableRetries": True}
    inputs = {"workerPoolSpecs": [pool()], "scheduling": scheduling, "enableWebAccess": True}
    pipeline = submit(emulator, trainingTaskInputs=inputs)
    emulator.run()
    assert shown(emulator, pipeline)["trainingTaskInputs"] == inputs


def test_ended_pipeline_cannot_be_cancelled(emulator: Emulator) -> None:
    pipeline = submit(emulator)
    emulator.run()
    with pytest.raises(ApiError) as refusal:
        emulator.jobs.cancel(TRAINING_PIPELINE, LOCATION, pipeline)
    name = f"{LOCATION.name}/trainingPipelines/{pipeline}"
    text = f'The TrainingPipeline "{name}" is in state PIPELINE_STATE_SUCCEEDED and cannot be canceled.'
    assert (refusal.value.status, str(refusal.value)) == ("FAILED_PRECONDITION", text)
    assert emulator.jobs.cancel(CUSTOM_JOB, LOCATION, backing(emulator, pipeline)) == {}


def test_cancelling_job_cancels_its_pipeline(emulator: Emulator) -> None:
    pipeline = submit(emulator)
    emulator.run_ready_steps()
    emulator.jobs.cancel(CUSTOM_JOB, LOCATION, backing(emulator, pipeline))
    emulator.run()
    assert shown(emulator, pipeline)["state"] == "PIPELINE_STATE_CANCELLED"


def test_deleted_pipeline_leaves_its_job(emulator: Emulator) -> None:
    pipeline = submit(emulator)
    emulator.run(lambda _: emulator.job(pipeline).state == "JOB_STATE_RUNNING")
    job = backing(emulator, pipeline)
    emulator.run(lambda _: emulator.job(job).is_terminal or emulator.machine.finish_one() is not None)
    for kind, each in ((TRAINING_PIPELINE, pipeline), (CUSTOM_JOB, job)):
        with pytest.raises(ApiError) as refusal:
            emulator.jobs.delete(kind, LOCATION, each)
        assert refusal.value.status == "FAILED_PRECONDITION"
    emulator.run()
    emulator.jobs.delete(TRAINING_PIPELINE, LOCATION, pipeline)
    emulator.run_ready_steps()
    assert emulator.job(job).state == "JOB_STATE_SUCCEEDED"
    emulator.jobs.delete(CUSTOM_JOB, LOCATION, job)


def test_containers_of_pipeline_get_data_variables(emulator: Emulator) -> None:
    seen: dict[str, str] = {}

    def looks(spec: ReplicaSpec) -> int:
        seen.update(spec.environment)
        seen["args"] = str(spec.args)
        return 0

    emulator.machine.program = looks
    container = pool(args=["--data=$(AIP_TRAINING_DATA_URI)"], env=[{"name": "AIP_DATA_FORMAT", "value": "mine"}])
    submit(
        emulator,
        trainingTaskInputs={"workerPoolSpecs": [container]},
        inputDataConfig={"datasetId": "7", "gcsDestination": {"outputUriPrefix": "gs://my-bucket/data/"}},
    )
    emulator.run()
    assert seen["AIP_TEST_DATA_URI"] == "gs://my-bucket/data/test-*.csv"
    assert seen["args"] == "['--data=gs://my-bucket/data/training-*.csv']"
    assert seen["AIP_DATA_FORMAT"] == "mine"


Scenario = Callable[[Emulator], str]


def a_pipeline_with_a_model(emulator: Emulator) -> str:
    return submit(emulator, modelToUpload=MODEL)


def a_tuning_pipeline_with_a_model(emulator: Emulator) -> str:
    return submit_study(emulator, trials=1, modelToUpload=MODEL)


def a_failing_pipeline(emulator: Emulator) -> str:
    emulator.machine.program = lambda spec: 9
    return submit(emulator, modelToUpload=MODEL)


def a_pipeline_cancelled_at_once(emulator: Emulator) -> str:
    pipeline = submit(emulator)
    cancel(emulator, pipeline)
    return pipeline


def a_pipeline_cancelled_while_it_runs(emulator: Emulator) -> str:
    pipeline = submit(emulator)
    emulator.run_ready_steps()
    cancel(emulator, pipeline)
    return pipeline


def outcome(emulator: Emulator, pipeline: str) -> list[Any]:
    """All that must not depend on when the process was killed."""
    with emulator.database.read() as transaction:
        jobs = [(job.kind.type, job.state, job.ending and job.ending.code) for job in transaction.jobs.created()]
        unfinished = transaction.jobs.unfinished()
    found = shown(emulator, pipeline)
    counts = sorted(emulator.machine.started.values())
    uploaded = [(name, version, bool(uri)) for name, version, uri in models(emulator)]
    return [jobs, unfinished, found["state"], "name" in found.get("modelToUpload", {}), uploaded, counts]


@pytest.mark.parametrize(
    "scenario",
    [
        a_pipeline_with_a_model,
        a_tuning_pipeline_with_a_model,
        a_failing_pipeline,
        a_pipeline_cancelled_at_once,
        a_pipeline_cancelled_while_it_runs,
    ],
)
def test_kill_at_any_step_changes_no_outcome(
    scenario: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = beginning(scenario, outcome, monkeypatch, program=saves)
    assert_that_no_kill_changes_the_end(tmp_path, begin)


URI = "gs://my-bucket/data"


def config(**fields: Any) -> dict[str, Any]:
    return {"datasetId": "7", "gcsDestination": {"outputUriPrefix": f"{URI}/"}, **fields}


def files(root: Path, *names: str) -> None:
    for name in names:
        path = root / "my-bucket" / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")


def variables(folder: str, form: str) -> dict[str, str]:
    return {
        "AIP_DATA_FORMAT": form,
        "AIP_TRAINING_DATA_URI": f"{URI}{folder}/training-*.{form}",
        "AIP_VALIDATION_DATA_URI": f"{URI}{folder}/validation-*.{form}",
        "AIP_TEST_DATA_URI": f"{URI}{folder}/test-*.{form}",
    }


@pytest.mark.parametrize(
    ("names", "folder", "form"),
    [
        (["training-1.csv", "validation-1.csv", "test-1.csv"], "", "csv"),
        (["training-00000-of-00001.jsonl"], "", "jsonl"),
        (["training-1.csv", "training-1.jsonl"], "", "jsonl"),
        (["dataset-7-2024/training-1.csv", "dataset-7-2025/training-1.csv"], "/dataset-7-2025", "csv"),
        (["dataset-7-2024/training-1.csv", "training-1.jsonl"], "", "jsonl"),
        (["other/training-1.csv"], "", "csv"),
        (["training.csv"], "", "csv"),
    ],
)
def test_variables_name_files_of_folder(tmp_path: Path, names: list[str], folder: str, form: str) -> None:
    files(tmp_path, *names)
    assert InputData.find(config(), tmp_path).variables == variables(folder, form)


def test_without_files_schema_decides_format(tmp_path: Path) -> None:
    assert InputData.find(config(), tmp_path).variables == variables("", "csv")
    schema = "gs://google-cloud-aiplatform/schema/dataset/annotation/text_classification_1.0.0.yaml"
    assert InputData.find(config(annotationSchemaUri=schema), tmp_path).variables == variables("", "jsonl")


def test_differences_from_service_are_warned_about(tmp_path: Path) -> None:
    nothing = "\n".join(InputData.find(config(fractionSplit={}, savedQueryId="1"), tmp_path).warnings)
    assert "dataset 7" in nothing
    assert f"{URI} has no files training-*" in nothing
    assert "fractionSplit, savedQueryId have no effect" in nothing
    assert "there are no" not in nothing
    files(tmp_path, "training-1.csv", "test-1.csv")
    some = "\n".join(InputData.find(config(), tmp_path).warnings)
    assert "has no files" not in some
    assert "there are no validation files" in some
    files(tmp_path, "validation-1.csv")
    assert len(InputData.find(config(), tmp_path).warnings) == 1


def test_data_variables_come_before_pool_own(tmp_path: Path) -> None:
    own = {"name": "A", "value": "$(AIP_DATA_FORMAT)"}
    package = {"pythonPackageSpec": {"pythonModule": "m"}}
    spec = {"workerPoolSpecs": [pool(env=[own]), {}, package], "network": "n"}
    given = InputData({"AIP_DATA_FORMAT": "csv"}, []).add_to(spec)
    added = {"name": "AIP_DATA_FORMAT", "value": "csv"}
    assert given["workerPoolSpecs"][0]["containerSpec"]["env"] == [added, own]
    assert given["workerPoolSpecs"][1:] == [{}, {"pythonPackageSpec": {"pythonModule": "m", "env": [added]}}]
    assert given["network"] == "n"
    assert spec["workerPoolSpecs"][0]["containerSpec"]["env"] == [own]  # type: ignore[index]


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ({"datasetId": "7", "bigqueryDestination": {"outputUri": "bq://p"}}, "input_data_config.bigquery_destination"),
        ({"datasetId": "7"}, "input_data_config.gcs_destination"),
        (
            {"datasetId": "7", "gcsDestination": {"outputUriPrefix": "gs://b/../x"}},
            "input_data_config.gcs_destination.output_uri_prefix",
        ),
    ],
)
def test_unavailable_destination_is_rejected(tmp_path: Path, data: dict[str, Any], field: str) -> None:
    body = {
        "displayName": "p",
        "trainingTaskDefinition": CUSTOM_TASK,
        "trainingTaskInputs": {"workerPoolSpecs": [pool()]},
        "inputDataConfig": data,
    }
    with pytest.raises(ApiError) as refusal:
        canonicalize(TRAINING_PIPELINE, "us-central1", body, tmp_path)
    assert [found for found, _ in refusal.value.violations] == [field]


def test_rejection_names_pipeline_own_field(tmp_path: Path) -> None:
    mounts = [{"server": "10.0.0.1", "path": "/x/../y", "mountPoint": "x"}]
    body = {
        "displayName": "p",
        "trainingTaskDefinition": CUSTOM_TASK,
        "trainingTaskInputs": {
            "workerPoolSpecs": [{**pool(), "nfsMounts": mounts}],
            "baseOutputDirectory": {"outputUriPrefix": "gs://b/../x"},
        },
    }
    with pytest.raises(ApiError) as refusal:
        canonicalize(TRAINING_PIPELINE, "us-central1", body, tmp_path)
    assert [found for found, _ in refusal.value.violations] == [
        "training_task_inputs.worker_pool_specs[0].nfs_mounts[0]",
        "training_task_inputs.base_output_directory.output_uri_prefix",
    ]
