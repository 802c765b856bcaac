"""Fields that the service sets: those that are there, in their order of time, and those that never are."""

import re
from datetime import datetime
from typing import Any

import pytest

from tests.vertex_emulator.running import RunningEmulator, custom_job, pool

TIMES = ("createTime", "startTime", "endTime", "updateTime")
NEVER = ("webAccessUris", "satisfiesPzs", "satisfiesPzi")
REPORT = (
    "import json, os, time; entry = {'timestamp': time.time(), 'acc': '1', 'global_step': '1'};"
    "open(os.environ['CLOUD_ML_HP_METRIC_FILE'], 'w').write(json.dumps(entry) + '\\n')"
)


def tuning_job(script: str) -> dict[str, Any]:
    return {
        "displayName": "one trial",
        "studySpec": {
            "algorithm": "RANDOM_SEARCH",
            "metrics": [{"metricId": "acc", "goal": "MAXIMIZE"}],
            "parameters": [{"parameterId": "x", "doubleValueSpec": {"maxValue": 1.0}}],
        },
        "maxTrialCount": 1,
        "parallelTrialCount": 1,
        "trialJobSpec": {"workerPoolSpecs": [pool(script)]},
    }


@pytest.mark.parametrize(
    ("collection", "body"),
    [("customJobs", custom_job(pool("pass"))), ("hyperparameterTuningJobs", tuning_job(REPORT))],
)
def test_ended_jobs_have_only_provided_fields(shared: RunningEmulator, collection: str, body: dict[str, Any]) -> None:
    ended = shared.ended(shared.create(body, collection))
    assert re.fullmatch(rf"projects/\d+/locations/us-central1/{collection}/\d{{19}}", ended["name"])
    assert ended["state"] == "JOB_STATE_SUCCEEDED"
    times = [datetime.fromisoformat(ended[field]) for field in TIMES]
    assert times == sorted(times) and all(ended[field].endswith("Z") for field in TIMES)
    assert [field for field in NEVER if field in ended] == []
    assert "error" not in ended
