from tests.vertex_emulator.jobs import pool, tuning_job, tuning_job_spec
from vertex_emulator.scheduling.trial_job_spec import build_trial_job_spec


def test_parameters_become_typed_flags_of_every_pool() -> None:
    spec = {"workerPoolSpecs": [pool(args=["--a"]), {}, pool()], "baseOutputDirectory": {"outputUriPrefix": "gs://b/o"}}
    study = tuning_job(tuning_job_spec(trialJobSpec=spec))
    made = build_trial_job_spec(study, 3, {"n": 4, "batch": 256.0, "rate": 1e-05, "kind": "sgd"})
    flags = ["--n=4", "--batch=256.0", "--rate=1e-05", "--kind=sgd"]
    assert made["workerPoolSpecs"][0]["containerSpec"]["args"] == ["--a", *flags]
    assert made["workerPoolSpecs"][1] == {}
    assert made["workerPoolSpecs"][2]["containerSpec"]["args"] == flags
    assert made["baseOutputDirectory"] == {"outputUriPrefix": "gs://b/o/3/"}
    assert spec["workerPoolSpecs"][0]["containerSpec"]["args"] == ["--a"]
