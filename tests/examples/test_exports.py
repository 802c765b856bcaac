"""The export of a model as Vertex AI documents it, by Google's client and default credentials, in a job here."""

import os
from pathlib import Path

import docker
import pytest

from tests.vertex_emulator.running import IMAGE, RunningEmulator, custom_job, pool

TAG = "vertex-training-tests/exports-{}"
SCIKIT_LEARN = """
import os
import pickle

from google.cloud import storage
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier

X, y = load_iris(return_X_y=True)
classifier = RandomForestClassifier()
classifier.fit(X, y)

artifact_filename = 'model.pkl'

# Save model artifact to local filesystem (doesn't persist)
local_path = artifact_filename
with open(local_path, 'wb') as model_file:
  pickle.dump(classifier, model_file)

# Upload model artifact to Cloud Storage
model_directory = os.environ['AIP_MODEL_DIR']
storage_path = os.path.join(model_directory, artifact_filename)
blob = storage.blob.Blob.from_string(storage_path, client=storage.Client())
blob.upload_from_filename(local_path)
"""
XGBOOST = """
import os

from google.cloud import storage
from sklearn import datasets
import xgboost as xgb

digits = datasets.load_digits()
dtrain = xgb.DMatrix(digits.data, label=digits.target)
bst = xgb.train({}, dtrain, 20)

artifact_filename = 'model.bst'

# Save model artifact to local filesystem (doesn't persist)
local_path = artifact_filename
bst.save_model(local_path)

# Upload model artifact to Cloud Storage
model_directory = os.environ['AIP_MODEL_DIR']
storage_path = os.path.join(model_directory, artifact_filename)
blob = storage.blob.Blob.from_string(storage_path, client=storage.Client())
blob.upload_from_filename(local_path)
"""
PYTORCH = """
import os

from google.cloud import storage
import torch

model = torch.nn.Linear(4, 3)

artifact_filename = 'model.pth'

# Save model artifact to local filesystem (doesn't persist)
local_path = artifact_filename
torch.save(model.state_dict(), local_path)

# Upload model artifact to Cloud Storage
model_directory = os.environ['AIP_MODEL_DIR']
storage_path = os.path.join(model_directory, artifact_filename)
blob = storage.blob.Blob.from_string(storage_path, client=storage.Client())
blob.upload_from_filename(local_path)
"""
TENSORFLOW = """
import os

import tensorflow as tf

model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(3)])
tf.saved_model.save(model, os.environ['AIP_MODEL_DIR'])
assert tf.io.gfile.exists(os.path.join(os.environ['AIP_MODEL_DIR'], 'saved_model.pb'))
"""
"""Three upload a local file, as the page "Export model artifacts for prediction and explanation" does; TensorFlow
writes to the URI itself.
"""
PIP = "pip install --no-cache-dir --root-user-action=ignore google-cloud-storage"
DEBIAN = "apt-get update && apt-get install --yes --no-install-recommends python3-torch"
"""Without CUDA, with which a wheel of PyTorch comes."""
INSTALLS = {
    "scikit-learn": f"{PIP} scikit-learn xgboost-cpu",
    "pytorch": f"{DEBIAN} && {PIP}",
    "tensorflow": f"{PIP} tensorflow-cpu",
}


@pytest.mark.large
@pytest.mark.parametrize(
    ("sample", "framework", "name"),
    [
        (SCIKIT_LEARN, "scikit-learn", "model.pkl"),
        (XGBOOST, "scikit-learn", "model.bst"),
        (PYTORCH, "pytorch", "model.pth"),
        (TENSORFLOW, "tensorflow", "saved_model.pb"),
    ],
    ids=["scikit-learn", "xgboost", "pytorch", "tensorflow"],
)
def test_a_documented_export_is_in_the_bucket(
    emulator: RunningEmulator, tmp_path: Path, sample: str, framework: str, name: str
) -> None:
    if framework == "tensorflow" and os.geteuid():
        pytest.skip("its gs:// needs an emulator that runs as root")
    tag = TAG.format(framework)
    (tmp_path / "Dockerfile").write_text(f"FROM {IMAGE}\nRUN {INSTALLS[framework]}\n")
    docker.from_env().images.build(path=str(tmp_path), tag=tag)
    place = f"gs://exports/{name}"
    body = custom_job(pool(sample, imageUri=tag), baseOutputDirectory={"outputUriPrefix": place})
    job = emulator.create(body)
    assert emulator.ended(job)["state"] == "JOB_STATE_SUCCEEDED", emulator.lines(job)
    assert (emulator.data / "gcs" / "exports" / name / "model" / name).stat().st_size > 1000
