"""Fits a line to ten points by gradient descent, and saves it where Vertex AI looks for the model."""

import argparse
import json
import os
from pathlib import Path

POINTS = [(x / 10, 3 * x / 10 + 1) for x in range(10)]

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=200)
steps = parser.parse_args().steps

slope, intercept = 0.0, 0.0
for step in range(steps):
    errors = [(slope * x + intercept - y, x) for x, y in POINTS]
    slope -= 0.2 * sum(error * x for error, x in errors)
    intercept -= 0.2 * sum(error for error, _ in errors) / len(POINTS)
    if step % 50 == 0:
        print(f"step {step}: mean squared error {sum(error**2 for error, _ in errors) / len(POINTS):.6f}")

# gs://BUCKET/PATH is the folder /gcs/BUCKET/PATH in each replica.
model = Path(os.environ.get("AIP_MODEL_DIR", "model").replace("gs://", "/gcs/"))
model.mkdir(parents=True, exist_ok=True)
(model / "line.json").write_text(json.dumps({"slope": slope, "intercept": intercept}))
# `pulumi up` prints what stands in metrics.json, and puts it into the stack's results.
error = sum((slope * x + intercept - y) ** 2 for x, y in POINTS) / len(POINTS)
(model / "metrics.json").write_text(json.dumps({"meanSquaredError": error, "steps": steps}))
print(f"y = {slope:.3f} x + {intercept:.3f}, saved in {model}")
