"""`$(VAR)` in a container's env, command and args, in a trial: the service's variables and the user's own."""

from tests.vertex_emulator.running import RunningEmulator, pool
from tests.vertex_emulator.test_studies import study

SCRIPT = """
import json, os, sys
print(json.dumps({"words": sys.argv[1:-1], "mine": os.environ["MINE"]}))
json.dump({"global_step": "1", "score": "1"}, open(sys.argv[-2], "w"))
"""
COMMAND = ["python3", "-c", SCRIPT, "$(AIP_MODEL_DIR)", "trial-$(CLOUD_ML_TRIAL_ID)", "$(UNKNOWN)", "$$(MINE)"]


def test_variable_references_expand_throughout_container_spec(shared: RunningEmulator) -> None:
    env = [{"name": "FIRST", "value": "$(AIP_CHECKPOINT_DIR)a"}, {"name": "MINE", "value": "$(FIRST)/$(RANK)"}]
    body = study(trials=1, parallel=1)
    body["trialJobSpec"] = {
        "workerPoolSpecs": [pool("", command=COMMAND, args=["$(MINE)", "$(CLOUD_ML_HP_METRIC_FILE)"], env=env)],
        "baseOutputDirectory": {"outputUriPrefix": "gs://tuning/out"},
    }
    name = shared.create(body, "hyperparameterTuningJobs")
    assert shared.ended(name)["state"] == "JOB_STATE_SUCCEEDED", shared.lines(name)
    (said,) = shared.objects(name)
    mine = "gs://tuning/out/1/checkpoints/a/0"
    assert said == {
        "words": [
            "gs://tuning/out/1/model/",
            "trial-1",
            "$(UNKNOWN)",
            "$(MINE)",
            mine,
            "/tmp/hypertune/output.metrics",
        ],
        "mine": mine,
    }
