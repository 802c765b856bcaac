"""Says where it runs and with what, scores a trial, and saves a model: what there is to see of a job."""

import json
import os
import pathlib
import sys
import time


def path(uri: str) -> pathlib.Path:
    """A folder of a bucket as jobs see it."""
    return pathlib.Path(uri.replace("gs://", "/gcs/"))


task = json.loads(os.environ.get("TF_CONFIG", os.environ["CLUSTER_SPEC"]))["task"]
print(f"{task['type']} {task['index']}: {' '.join(sys.argv[1:])}")
if "TF_CONFIG" in os.environ:
    cluster = json.loads(os.environ["TF_CONFIG"])["cluster"]
    print("cluster:", ", ".join(f"{len(hosts)} {role}" for role, hosts in sorted(cluster.items())))
for name in ("GREETING", "ROLE", "CLOUD_ML_JOB_SA", "AIP_DATA_FORMAT"):
    if name in os.environ:
        print(f"{name}: {os.environ[name]}")
boto = pathlib.Path("/etc/boto.cfg")
if boto.exists():
    print("boto:", boto.read_text().splitlines()[-1])
if "AIP_TRAINING_DATA_URI" in os.environ:
    for file in path("gs://").glob(os.environ["AIP_TRAINING_DATA_URI"].removeprefix("gs://")):
        print(f"rows: {len(file.read_text().splitlines())}")
if "CLOUD_ML_HP_METRIC_FILE" in os.environ:
    flags = dict(flag.removeprefix("--").split("=") for flag in sys.argv[1:])
    score = {"score": str(1 - (float(flags["rate"]) - 0.3) ** 2), "trial": os.environ["CLOUD_ML_TRIAL_ID"]}
    entry = {**score, "timestamp": time.time(), "global_step": "1"}
    pathlib.Path(os.environ["CLOUD_ML_HP_METRIC_FILE"]).write_text(json.dumps(entry) + "\n")
if "AIP_MODEL_DIR" in os.environ:
    folder = path(os.environ["AIP_MODEL_DIR"])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.json").write_text("{}")
