"""The scalars of jobs, studies and pipelines as the page asks for them, on a machine in memory."""

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
from tests.vertex_emulator.jobs import custom_job_spec, pool, tuning_job_spec
from tests.vertex_emulator.web_page.test_job_view import create, emulator
from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, TRAINING_PIPELINE
from vertex_api.pipelines import CUSTOM_TASK
from vertex_emulator.curves import MAX_RECORD_BYTES, CurveCache
from vertex_emulator.errors import ApiError
from vertex_emulator.gcs.files import BucketTree
from vertex_emulator.web_page import scalars_view

__all__ = ["emulator"]
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
    return scalars_view.build_scalars_view(emulator.database, cache, emulator.job(job_id), tags)


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


def test_the_latest_trials_of_a_study_are_runs(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    trial = {"workerPoolSpecs": [pool()], "baseOutputDirectory": BASE}
    study = create(emulator, HYPERPARAMETER_TUNING_JOB, tuning_job_spec(3, 3, trialJobSpec=trial))
    emulator.run()
    for number in (1, 2, 3):
        write(emulator, f"{number}/logs/train", plain("loss", 1, float(number)))
    found = view(emulator, study, "loss")
    assert [(line["run"], line["values"]) for line in found["lines"]] == [
        (f"trial-{number}/train", [float(number)]) for number in (1, 2, 3)
    ]
    monkeypatch.setattr(scalars_view, "MAX_TRIALS", 2)
    assert (view(emulator, study)["runs"], view(emulator, study)["left_out"]) == (["trial-2/train", "trial-3/train"], 1)


def test_a_pipeline_shows_what_its_job_writes(emulator: Emulator) -> None:
    inputs = {"workerPoolSpecs": [pool()], "baseOutputDirectory": BASE}
    spec = {"displayName": "a pipeline", "trainingTaskDefinition": CUSTOM_TASK, "trainingTaskInputs": inputs}
    pipeline = create(emulator, TRAINING_PIPELINE, spec)
    assert view(emulator, pipeline)["folder"] is None
    emulator.run()
    write(emulator, "logs", plain("loss", 1, 0.5))
    assert (view(emulator, pipeline)["runs"], view(emulator, pipeline)["tags"]) == ([""], ["loss"])


def test_too_many_tags_in_one_request_are_refused(emulator: Emulator) -> None:
    job = create(emulator, CUSTOM_JOB, custom_job_spec())
    with pytest.raises(ApiError, match="tag is given 101 times"):
        view(emulator, job, *(str(i) for i in range(101)))


def test_messages_of_events_are_loaded_for_scalars_only() -> None:
    code = "import sys, vertex_emulator.server; print({'tensorboardX', 'numpy'} & set(sys.modules))"
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


def test_an_answer_has_a_limited_number_of_lines(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scalars_view, "MAX_LINES", 5)
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
