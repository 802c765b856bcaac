"""The export of a model as Vertex AI documents it, by Google's client and default credentials, in a job here."""

import docker
import pytest

from tests.vertex_emulator.running import IMAGE, RunningEmulator, custom_job, pool

TAG = "vertex-training-tests/exports"
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
"""Both upload a local file, as the page "Export model artifacts for prediction and explanation" does."""


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An image with what the samples import."""
    folder = tmp_path_factory.mktemp("exports")
    packages = "google-cloud-storage scikit-learn xgboost-cpu"
    install = f"RUN pip install --no-cache-dir --root-user-action=ignore {packages}"
    (folder / "Dockerfile").write_text(f"FROM {IMAGE}\n{install}\n")
    docker.from_env().images.build(path=str(folder), tag=TAG)
    return TAG


@pytest.mark.large
@pytest.mark.parametrize(("sample", "name"), [(SCIKIT_LEARN, "model.pkl"), (XGBOOST, "model.bst")])
def test_a_documented_export_is_in_the_bucket(emulator: RunningEmulator, image: str, sample: str, name: str) -> None:
    place = f"gs://exports/{name}"
    body = custom_job(pool(sample, imageUri=image), baseOutputDirectory={"outputUriPrefix": place})
    job = emulator.create(body)
    assert emulator.ended(job)["state"] == "JOB_STATE_SUCCEEDED", emulator.lines(job)
    assert (emulator.data / "gcs" / "exports" / name / "model" / name).stat().st_size > 1000
