"""Results of jobs: filled in as texts when a job that uses them is submitted, and named where they are missing."""

from typing import Any

import pytest
from vertex_training.errors import SubmitFailed
from vertex_training.jobs.inputs import Inputs
from vertex_training.jobs.lookup import referenced_values
from vertex_training.jobs.provider import CustomJobProvider
from vertex_training.runtime import target
from vertex_training.schema.interpolation import split_result

from tests.components.fakes import FakeClient, start_new_process
from tests.components.jobs.test_provider import ARGS, PARENT, engine_s, inputs
from tests.vertex_api.jobs import custom_job, edited, pipeline, tuning_job, tuning_pipeline
from vertex_api import errors
from vertex_api.names import CUSTOM_JOB

TUNE = f"{PARENT}/hyperparameterTuningJobs/7"
TRAIN = f"{PARENT}/customJobs/8"
REGISTER = f"{PARENT}/trainingPipelines/9"
MODEL = f"{PARENT}/models/5"
JOBS = {"tune": TUNE, "train": TRAIN, "register": REGISTER}
DONE = "JOB_STATE_SUCCEEDED"
LR = "${jobs.tune.bestTrial.parameters.rate}"


def trial(number: int, score: float, **parameters: Any) -> dict[str, Any]:
    return {
        "id": str(number),
        "state": "SUCCEEDED",
        "parameters": [{"parameterId": name, "value": value} for name, value in parameters.items()],
        "finalMeasurement": {"metrics": [{"metricId": "accuracy", "value": score}]},
    }


@pytest.fixture
def done(api: FakeClient) -> FakeClient:
    """An API with a search, a training and a pipeline that have succeeded."""
    trials = [trial(1, 0.5, rate=0.1), trial(2, 0.75, rate=0.001, units=64.0, activation="relu", **{"a.b": 1.5e-07})]
    search = edited(tuning_job(), "trialJobSpec", "baseOutputDirectory", to={"outputUriPrefix": "gs://b/tune/"})
    api.add(TUNE, **search, state=DONE, trials=trials)
    spec = edited(custom_job(), "jobSpec", "baseOutputDirectory", to={"outputUriPrefix": "gs://b/train/"})
    api.add(TRAIN, **spec, state=DONE)
    api.add(REGISTER, **edited(pipeline(), "modelToUpload", "name", to=MODEL), state="PIPELINE_STATE_SUCCEEDED")
    return api


def value(reference: str, jobs: dict[str, str] = JOBS) -> str:
    at = target.resolve(f"//local/{PARENT}")
    spec = edited(custom_job(), *ARGS, to=[f"${{jobs.{reference}}}"])
    return referenced_values(at, Inputs.parse(CUSTOM_JOB, inputs(spec, jobs=jobs)))[reference]


@pytest.mark.parametrize(
    ("reference", "text"),
    [
        ("tune.name", TUNE),
        ("tune.modelDir", "gs://b/tune/2/model/"),
        ("tune.bestTrial.id", "2"),
        ("tune.bestTrial.parameters.rate", "0.001"),
        ("tune.bestTrial.parameters.units", "64"),
        ("tune.bestTrial.parameters.activation", "relu"),
        ("tune.bestTrial.parameters.a.b", "1.5e-07"),
        ("tune.bestTrial.metrics.accuracy", "0.75"),
        ("train.name", TRAIN),
        ("train.modelDir", "gs://b/train/model/"),
        ("register.model", MODEL),
    ],
)
def test_a_result_is_json_text(done: FakeClient, reference: str, text: str) -> None:
    assert value(reference) == text


def test_a_tuning_pipeline_has_its_search_s_results(done: FakeClient) -> None:
    backing = {"backingHyperparameterTuningJob": TUNE}
    done.add(REGISTER, **tuning_pipeline(), state="PIPELINE_STATE_SUCCEEDED", trainingTaskMetadata=backing)
    assert value("register.bestTrial.parameters.rate") == "0.001"
    assert value("register.backingJob") == TUNE


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("tune.bestTrial.parameters.batch", "does not exist: the best trial of tune, 2, has no parameters.batch"),
        ("register.modelDir", "does not exist: register has no modelDir"),
        ("other.name", "is not a result of its upstream jobs: tune, train, register"),
    ],
)
def test_a_result_that_is_missing_is_named(done: FakeClient, reference: str, said: str) -> None:
    with pytest.raises(SubmitFailed) as failure:
        value(reference)
    assert str(failure.value) == f"digits: not submitted: ${{jobs.{reference}}} {said}"


def test_a_search_without_a_best_trial_is_named(done: FakeClient) -> None:
    done.jobs[TUNE]["trials"] = []
    with pytest.raises(SubmitFailed, match="does not exist: no trial of tune has succeeded with its metric"):
        value("tune.bestTrial.id")


def test_only_a_succeeded_job_has_results(done: FakeClient) -> None:
    done.jobs[TRAIN]["state"] = "JOB_STATE_RUNNING"
    with pytest.raises(SubmitFailed, match=r"^digits: not submitted: train, whose results it uses, is JOB_STATE_RUNN"):
        value("train.name")


def test_a_missing_job_raises_not_found(done: FakeClient) -> None:
    with pytest.raises(errors.NotFound):
        value("train.name", {"train": f"{PARENT}/customJobs/99"})


def test_a_reference_splits_at_the_longest_known_name() -> None:
    assert split_result("a.b.name", {"a", "a.b"}) == ("a.b", "name")
    assert split_result("a.b.name", {"a"}) == ("a", "b.name")
    assert split_result("x.y.z", {"a"}) == ("x", "y.z")
    assert split_result("a", {"a"}) == ("a", "")


def created(**given: Any) -> dict[str, Any]:
    """The state of a job that uses the rate of the search, made in an `up` of its own."""
    start_new_process()
    spec = edited(custom_job(), *ARGS, to=[f"--rate={LR}", LR])
    checked = CustomJobProvider().check({}, engine_s(inputs(**{"spec": spec, "jobs": {"tune": TUNE}, **given})))
    assert checked.failures == []
    made = CustomJobProvider().create(engine_s(checked.inputs))
    return {"id": made.id, **(made.outs or {})}


def test_results_are_sent_and_stored_beside_the_spec(done: FakeClient) -> None:
    state = created()
    assert done.sent[0]["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["args"] == ["--rate=0.001", "0.001"]
    assert state["results"] == {"tune.bestTrial.parameters.rate": "0.001"}
    assert state["spec"]["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["args"] == [f"--rate={LR}", LR]
    assert done.calls == ["get", "list", "create"]


def test_only_a_changed_filled_in_result_is_drift(done: FakeClient) -> None:
    state = created()
    name = state.pop("id")
    provider = CustomJobProvider()
    read = provider.read(name, state)
    assert (read.outs, read.inputs) == (state, {key: state[key] for key in state.keys() - {"run", "results"}})
    assert provider.update(name, state, dict(read.inputs or {}, lifecycle={"wait": True})).outs == {
        **state,
        "lifecycle": {"wait": True},
    }
    done.jobs[name]["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["args"] = ["--rate=0.001", "0.1"]
    drifted = provider.read(name, state).inputs
    assert drifted is not None
    assert drifted["spec"]["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["args"] == [f"--rate={LR}", "0.1"]


def test_a_rerun_upstream_job_prevents_adoption(done: FakeClient) -> None:
    first = created()
    assert created()["id"] == first["id"]
    again = f"{PARENT}/hyperparameterTuningJobs/17"
    done.add(again, **{key: value for key, value in done.jobs[TUNE].items() if key not in ("name", "createTime")})
    assert created(jobs={"tune": again})["id"] != first["id"]
    assert len(done.sent) == 2
