"""A trainer that does what its flags say, in no time."""

import argparse
import json
import os
import pathlib
import signal
import sys
import time

signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the first process of a container ignores it otherwise

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=1)
parser.add_argument("--lr", type=float, default=0.5)
parser.add_argument("--seconds", type=float, default=0)
parser.add_argument("--until", type=pathlib.Path)
parser.add_argument("--exit", type=int, default=0)
flags = parser.parse_args()

for epoch in range(flags.epochs):
    print(f"epoch {epoch + 1} of {flags.epochs}")
time.sleep(flags.seconds)
while flags.until and not flags.until.exists():
    time.sleep(0.05)
if flags.exit:
    print("the data is not there")
    raise SystemExit(flags.exit)
if "CLOUD_ML_HP_METRIC_FILE" in os.environ:
    entry = {
        "timestamp": time.time(),
        "trial": os.environ["CLOUD_ML_TRIAL_ID"],
        "global_step": "1",
        "score": str(1 - (flags.lr - 0.3) ** 2),
    }
    pathlib.Path(os.environ["CLOUD_ML_HP_METRIC_FILE"]).write_text(json.dumps(entry) + "\n")
model = pathlib.Path(os.environ["AIP_MODEL_DIR"].replace("gs://", "/gcs/"))
model.mkdir(parents=True, exist_ok=True)
(model / "model.txt").write_text(str(flags.lr))
