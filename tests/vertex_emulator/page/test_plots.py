"""What the page draws: a study, and the scalars of jobs, studies and pipelines, on a machine in memory."""

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import JSONResponse

from tests.vertex_emulator.events import add_to_file, plain, raw_records, records, tensor
from tests.vertex_emulator.fakes import Emulator
from tests.vertex_emulator.jobs import LOCATION, custom_job_spec, pool, tuning_job_spec
from tests.vertex_emulator.page.test_jobs import create
from vertex_api.events import MAX_RECORD_BYTES
from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, TRAINING_PIPELINE
from vertex_api.pipelines import CUSTOM_TASK
from vertex_emulator.curves import CurveCache
from vertex_emulator.database.records import RUNNING, Job, Trial
from vertex_emulator.errors import ApiError
from vertex_emulator.gcs.files import BucketTree
from vertex_emulator.page import plots
from vertex_emulator.page.plots import ThinnedTrial

BASE = {"outputUriPrefix": "gs://logs/run"}
NAME = "events.out.tfevents.1.host"
WORST = """
import resource, sys, time
from pathlib import Path
from vertex_emulator.curves import CurveCache
from vertex_emulator.gcs.files import BucketTree

cache = CurveCache(BucketTree(Path(sys.argv[1])))
used, most = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with cache.update(["gs://logs/run"]) as (reader,):
    assert reader.has_files and not reader.problems, reader.problems
print(time.process_time() - used, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - most) * 1024)
"""


def view(emulator: Emulator, job_id: str, *tags: str) -> dict[str, Any]:
    cache = CurveCache(BucketTree(emulator.data.buckets))
    return plots.scalars(emulator.database, cache, emulator.job(job_id), tags)


def write(emulator: Emulator, run: str, *events: Any) -> None:
    add_to_file(emulator.data.buckets, NAME, records(events), run)


def test_runs_and_tags_come_with_requested_lines(emulator: Emulator) -> None:
    job = create(emulator, CUSTOM_JOB, custom_job_spec(baseOutputDirectory=BASE))
    write(emulator, "logs/train", plain("loss", 1, 0.5), plain("rate", 1, 2.0))
    write(emulator, "logs/validation", plain("loss", 1, 0.75))
    found = view(emulator, job, "loss", "unknown")
    assert (found["folder"], found["runs"], found["tags"]) == (
        "gs://logs/run/logs/",
        ["train", "validation"],
        ["loss", "rate"],
    )
    assert [(line["run"], line["values"]) for line in found["lines"]] == [("train", [0.5]), ("validation", [0.75])]
    assert (found["has_files"], found["has_more"], found["problems"], found["left_out"]) == (True, False, [], 0)


def test_job_without_output_directory_has_no_folder(emulator: Emulator) -> None:
    job = create(emulator, CUSTOM_JOB, custom_job_spec())
    found = view(emulator, job)
    assert (found["folder"], found["has_files"], found["tags"]) == (None, False, [])


def test_the_latest_trials_are_runs(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    trial = {"workerPoolSpecs": [pool()], "baseOutputDirectory": BASE}
    study = create(emulator, HYPERPARAMETER_TUNING_JOB, tuning_job_spec(3, 3, trialJobSpec=trial))
    emulator.run()
    for number in (1, 2, 3):
        write(emulator, f"{number}/logs/train", plain("loss", 1, float(number)))
    found = view(emulator, study, "loss")
    assert [(line["run"], line["values"]) for line in found["lines"]] == [
        (f"trial-{number}/train", [float(number)]) for number in (1, 2, 3)
    ]
    monkeypatch.setattr(plots, "MAX_TRIALS", 2)
    assert (view(emulator, study)["runs"], view(emulator, study)["left_out"]) == (["trial-2/train", "trial-3/train"], 1)


def test_a_pipeline_shows_what_its_job_writes(emulator: Emulator) -> None:
    inputs = {"workerPoolSpecs": [pool()], "baseOutputDirectory": BASE}
    spec = {"displayName": "a pipeline", "trainingTaskDefinition": CUSTOM_TASK, "trainingTaskInputs": inputs}
    pipeline = create(emulator, TRAINING_PIPELINE, spec)
    assert view(emulator, pipeline)["folder"] is None
    emulator.run()
    write(emulator, "logs", plain("loss", 1, 0.5))
    assert (view(emulator, pipeline)["runs"], view(emulator, pipeline)["tags"]) == ([""], ["loss"])


def test_too_many_tags_are_refused(emulator: Emulator) -> None:
    job = create(emulator, CUSTOM_JOB, custom_job_spec())
    with pytest.raises(ApiError, match="tag is given 101 times"):
        view(emulator, job, *(str(i) for i in range(101)))


def test_events_are_loaded_for_scalars_only() -> None:
    code = "import sys, vertex_emulator.server; print({'vertex_api.events', 'numpy'} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "set()\n"


def test_lying_events_are_valid_json(emulator: Emulator) -> None:
    job = create(emulator, CUSTOM_JOB, custom_job_spec(baseOutputDirectory=BASE))
    numbers = [math.nan, math.inf, -math.inf, 1.7e308, -1.7e308, 5e-324, -0.0]
    times = [-1.0, -1e308, 3e16, math.nan, math.inf, 1e308]
    values = [tensor("lies", step, dtype=2, double_val=[value]) for step, value in enumerate(numbers)]
    steps = [plain("lies", step, 0.5) for step in (-(2**63), 2**63 - 1, -1)]
    shape = tensor("lies", 9, dtype=2, double_val=[1.0])
    for size in (1, 2**62, -1):
        shape.summary.value[0].tensor.tensor_shape.dim.add(size=size)
    write(emulator, "logs", *values, *steps, *(plain("lies", 1, 0.5, time) for time in times), shape)
    reply = JSONResponse(view(emulator, job, "lies"))  # refuses NaN and infinity
    (line,) = json.loads(reply.body, parse_constant=pytest.fail)["lines"]
    assert (line["count"], line["not_finite"]) == (13, {"count": 3, "step": 0})
    assert (line["steps"][0], line["steps"][-1]) == (-(2**63), 2**63)
    assert {-1.7e308, 1.7e308, 5e-324} <= {*line["values"]}
    assert max(map(abs, line["seconds"])) <= 1000.0


def test_answers_have_limited_lines(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plots, "MAX_LINES", 5)
    job = create(emulator, CUSTOM_JOB, custom_job_spec(baseOutputDirectory=BASE))
    for run in range(4):
        write(emulator, f"logs/{run}", plain("loss", 1, 0.5), plain("rate", 1, 0.5))
    found = view(emulator, job, "loss", "rate")
    assert ([line["run"] for line in found["lines"]], len(found["runs"])) == (["0", "1", "2", "3", "0"], 4)
    assert found["problems"] == ["only the first 5 lines are drawn"]


@pytest.mark.parametrize("member", [b"\x0a\x00", b"\x0a\x05\x15\0\0\0?"], ids=["empty", "tiny"])
def test_the_worst_records_take_bounded_work(tmp_path: Path, member: bytes) -> None:
    """A megabyte of one event is half a million empty values, or 150,000 scalars."""
    count = MAX_RECORD_BYTES // len(member) - 10
    length = count * len(member)
    size = bytes([length & 127 | 128, length >> 7 & 127 | 128, length >> 14])
    add_to_file(tmp_path, NAME, raw_records([b"\x2a" + size + member * count]) * 2)
    done = subprocess.run([sys.executable, "-c", WORST, str(tmp_path)], capture_output=True, text=True, check=True)
    seconds, more_bytes = map(float, done.stdout.split())
    assert seconds < 3  # of the processor; 0.2 measured
    assert more_bytes < 100e6  # 50 MB measured


PARAMETERS = [
    {"parameterId": "rate", "scaleType": "UNIT_LOG_SCALE", "doubleValueSpec": {"minValue": 0.001, "maxValue": 1.0}},
    {
        "parameterId": "kind",
        "categoricalValueSpec": {"values": ["deep", "wide"]},
        "conditionalParameterSpecs": [
            {
                "parentCategoricalValues": {"values": ["deep"]},
                "parameterSpec": {"parameterId": "layers", "integerValueSpec": {"minValue": 1, "maxValue": 9}},
            }
        ],
    },
]


def study(goals: dict[str, str]) -> Job:
    metrics = [{"metricId": name, "goal": goal} for name, goal in goals.items()]
    spec = {
        "displayName": "s",
        "maxTrialCount": 9,
        "studySpec": {"metrics": metrics, "parameters": PARAMETERS},
        "trialJobSpec": {},
    }
    return Job("1", 1, HYPERPARAMETER_TUNING_JOB, LOCATION, spec, RUNNING, created=0, updated=0)


def measured(step: int, **values: float) -> dict[str, Any]:
    metrics = [{"metricId": name, "value": value} for name, value in values.items()]
    return {"stepCount": step, "elapsedDuration": f"{step / 2}s", "metrics": metrics}


def trial(number: int, measurements: list[dict[str, Any]]) -> Trial:
    return Trial("1", number, "SUCCEEDED", {"rate": 0.1}, f"j{number}", 0, 10**9, tuple(measurements), measurements[-1])


def study_view(job: Job, trials: list[Trial]) -> dict[str, Any]:
    most = plots.max_points(len(trials))
    return plots.study(job, [ThinnedTrial.thin(each, most) for each in trials])


def test_conditional_parameters_name_their_parent() -> None:
    shown = study_view(study({"loss": "MINIMIZE"}), [])["parameters"]
    assert [(found["id"], found["type"], found["parent"]) for found in shown] == [
        ("rate", "DOUBLE", None),
        ("kind", "CATEGORICAL", None),
        ("layers", "INTEGER", "kind"),
    ]
    assert (shown[0]["scale"], shown[0]["min"], shown[0]["max"]) == ("UNIT_LOG_SCALE", 0.001, 1.0)
    assert shown[1]["values"] == ["deep", "wide"]
    assert (shown[2]["min"], shown[2]["max"]) == (1.0, 9.0)


def test_best_trials_follow_goal_of_each_metric() -> None:
    trials = [trial(1, [measured(1, loss=1.0, size=9.0)]), trial(2, [measured(1, loss=2.0, size=1.0)])]
    trials.append(trial(3, [measured(1, loss=3.0, size=2.0)]))
    assert study_view(study({"loss": "MINIMIZE"}), trials)["best"] == ["1"]
    assert study_view(study({"loss": "MAXIMIZE"}), trials)["best"] == ["3"]
    assert study_view(study({"loss": "MINIMIZE", "size": "MINIMIZE"}), trials)["best"] == ["1", "2"]


def test_safety_thresholds_limit_best_trials() -> None:
    job = study({"loss": "MINIMIZE", "heat": "MINIMIZE"})
    job.spec["studySpec"]["metrics"][1]["safetyConfig"] = {"safetyThreshold": 5.0}
    trials = [trial(1, [measured(1, loss=1.0, heat=9.0)]), trial(2, [measured(1, loss=2.0, heat=1.0)])]
    shown = study_view(job, trials)
    assert [(metric["id"], metric["threshold"]) for metric in shown["metrics"]] == [("loss", None), ("heat", 5.0)]
    assert shown["best"] == ["2"]


def test_curve_has_gap_where_metric_is_missing() -> None:
    trials = [trial(1, [measured(1, loss=1.0), measured(2, size=3.0), measured(3, loss=0.5, size=2.0)])]
    curve = study_view(study({"loss": "MINIMIZE", "size": "MINIMIZE"}), trials)["trials"][0]["curve"]
    assert curve == {
        "measured": 3,
        "steps": [1, 2, 3],
        "seconds": [0.5, 1.0, 1.5],
        "values": {"loss": [1.0, None, 0.5], "size": [None, 3.0, 2.0]},
    }


def test_thinned_curve_keeps_its_last_point() -> None:
    trials = [trial(1, [measured(step, loss=1.0) for step in range(1, 1001)])]
    curve = study_view(study({"loss": "MINIMIZE"}), trials)["trials"][0]["curve"]
    assert 200 < len(curve["steps"]) <= 300
    assert (curve["steps"][-1], curve["measured"]) == (1000, 1000)


def test_curves_of_long_study_stay_small() -> None:
    trials = [trial(number, [measured(step, loss=1.0) for step in range(1, 101)]) for number in range(1, 1001)]
    shown = study_view(study({"loss": "MINIMIZE"}), trials)["trials"]
    assert sum(len(found["curve"]["steps"]) for found in shown) <= 20_000
