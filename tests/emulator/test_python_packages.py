"""pythonPackageSpec: packages from a bucket, installed into an executor image that runs one of their modules."""

from typing import Any

from tests.emulator import packages
from tests.emulator.running import IMAGE, RunningEmulator, custom_job

BUCKET = "my-packages"


def pool(*names: str, module: str = "trainer.task", replicas: int = 1, **package: Any) -> dict[str, Any]:
    """A worker pool that runs a module of packages from the bucket."""
    spec = {
        "executorImageUri": IMAGE,
        "packageUris": [f"gs://{BUCKET}/{name}" for name in names],
        "pythonModule": module,
        **package,
    }
    return {"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": replicas, "pythonPackageSpec": spec}


REPORT = """
import json, os, sys, lib.task
print(json.dumps({"args": sys.argv[1:], "job": json.loads(os.environ["CLOUD_ML_JOB"]), "token": os.environ["TOKEN"],
    "in_cluster": json.loads(json.loads(os.environ["CLUSTER_SPEC"])["job"]), "lib": lib.task.NAME,
    "container": os.environ.get("AIP_USE_CUSTOM_CONTAINER")}))
"""


def test_packages_are_installed_in_order_and_the_module_runs_with_its_arguments(shared: RunningEmulator) -> None:
    folder = shared.data / "gcs" / BUCKET
    names = [packages.wheel(folder, "lib", "NAME = 'l'"), packages.sdist(folder, "trainer", REPORT)]
    arguments = ["--out=$(AIP_MODEL_DIR)", "$$(X)", "a b"]
    body = custom_job(
        pool(*names, args=arguments, env=[{"name": "TOKEN", "value": "t-$(CLOUD_ML_REGION)"}]),
        baseOutputDirectory={"outputUriPrefix": "gs://my-bucket/run"},
    )
    name = shared.create(body)
    job = shared.ended(name)
    assert job["state"] == "JOB_STATE_SUCCEEDED", shared.lines(name)
    lines = shared.lines(name)
    uris = [f"gs://{BUCKET}/{each}" for each in names]
    assert [line for line in lines if line.startswith("Installing the package")] == [
        f"Installing the package: {uri}" for uri in uris
    ]
    (entry,) = [entry["jsonPayload"] for entry in shared.entries(name) if "jsonPayload" in entry]
    program = {"python_module": "trainer.task", "package_uris": uris, "job_args": arguments}
    assert entry == {
        "args": ["--out=gs://my-bucket/run/model/", "$(X)", "a b"],
        "job": program,
        "in_cluster": program,
        "token": "t-us-central1",
        "lib": "l",
        "container": None,
    }
