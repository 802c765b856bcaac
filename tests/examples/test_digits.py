"""The digits example: its image and trainer meet what Vertex AI asks of a training container."""

import json
import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import docker
import pytest
import yaml
from docker.models.containers import Container
from docker.models.images import Image
from vertex_training.images.builders import ClassicBuilder
from vertex_training.images.context import DockerfileContext

from tests.blocks import taken
from tests.vertex_emulator.running import PATIENCE_SECONDS, until

ROOT = Path(__file__).parents[2]
CONTEXT = ROOT / "examples" / "digits"
TAG = "vertex-training-tests/digits"  # stays, so that the next run finds its layers
METRIC_FILE = "/gcs/metrics/output.metrics"

Start = Callable[..., Container]


@pytest.fixture(scope="module")
def client() -> Iterator[docker.DockerClient]:
    client = docker.from_env()
    yield client
    client.close()


def build_image(client: docker.DockerClient, folder: Path, tag: str) -> Image:
    """Build an image by the project's builder, which starts again if another test removes an image meanwhile."""
    context = DockerfileContext(folder, "Dockerfile", {}, None, "linux/amd64")
    ClassicBuilder().build(context, tag, {}, lambda _line: None)
    return client.images.get(tag)


@pytest.fixture(scope="module")
def image(client: docker.DockerClient) -> Image:
    return build_image(client, CONTEXT, TAG)


@pytest.fixture
def start(client: docker.DockerClient, image: Image) -> Iterator[Start]:
    """Start a container of the image with the flags given; all are removed after the test."""
    containers: list[Container] = []

    def start(*flags: str, **options: Any) -> Container:
        containers.append(client.containers.run(image, list(flags), detach=True, **options))
        return containers[-1]

    yield start
    for container in containers:
        container.remove(force=True)


def finish(container: Container) -> tuple[int, str, str]:
    """Wait for the container; return its exit code, stdout and stderr."""
    code = container.wait(timeout=PATIENCE_SECONDS)["StatusCode"]
    return code, container.logs(stderr=False).decode(), container.logs(stdout=False).decode()


def as_in_vertex(bucket: Path) -> dict[str, Any]:
    """Options of a container that sees what a trial sees: a bucket at /gcs, a model directory, a metric file."""
    return {
        "volumes": {str(bucket): {"bind": "/gcs", "mode": "rw"}},
        "user": f"{os.getuid()}:{os.getgid()}",
        "environment": {
            "AIP_MODEL_DIR": "gs://bucket/x/",
            "CLOUD_ML_HP_METRIC_FILE": METRIC_FILE,
            "CLOUD_ML_TRIAL_ID": "3",
        },
    }


def reports(bucket: Path) -> list[dict[str, str]]:
    lines = (bucket / Path(METRIC_FILE).relative_to("/gcs")).read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_every_run_prints_and_learns_the_same(start: Start) -> None:
    """Also where whole numbers are written as floats, as a tuning job writes them."""
    both = [start("--epochs", "2", "--batch-size=64"), start("--epochs=2.0", "--batch-size=64.0")]
    (code, first, errors), (_, second, _) = map(finish, both)

    assert (code, errors) == (0, "")
    assert first == second
    epoch_1, epoch_2, saved = first.splitlines()
    assert epoch_1.startswith("epoch 1/2 loss ")
    assert epoch_2.startswith("epoch 2/2 loss ")
    assert saved == "saved model.joblib and metrics.json in model"
    assert float(epoch_2.split()[-1]) > float(epoch_1.split()[-1]) > 0.5


def test_the_page_shows_what_the_image_prints(start: Start) -> None:
    (commands,) = taken("examples/digits/README.md", "sh", "docker build -t digits examples/digits\ndocker run --rm ")
    (shown,) = taken("examples/digits/README.md", "output")
    assert finish(start(*commands.split(" digits ")[-1].split())) == (0, shown, "")


def test_the_model_in_the_bucket_reads_digits(start: Start, tmp_path: Path) -> None:
    code, _, errors = finish(start("--epochs=4", **as_in_vertex(tmp_path)))
    assert (code, errors) == (0, "")

    metrics = json.loads((tmp_path / "bucket/x/metrics.json").read_text())
    reported = reports(tmp_path)
    assert [report["global_step"] for report in reported] == ["1", "2", "3", "4"]
    assert {report["trial"] for report in reported} == {"3"}
    assert float(reported[-1]["accuracy"]) == metrics["accuracy"] > 0.9

    reader = (
        "import joblib; from sklearn.datasets import load_digits as load; digits = load();"
        "print(joblib.load('/gcs/bucket/x/model.joblib').score(digits.data / 16, digits.target))"
    )
    code, output, errors = finish(start(reader, entrypoint=["python", "-c"], **as_in_vertex(tmp_path)))
    assert (code, errors) == (0, "")
    assert float(output) > 0.9


@pytest.mark.parametrize("end", [0, -1], ids=["lowest", "highest"])
def test_the_search_matches_the_trainer(start: Start, tmp_path: Path, end: int) -> None:
    declared = yaml.safe_load((ROOT / "training/digits.yaml").read_text())
    study = declared["hyperparameterTuningJobs"]["digits-search"]["studySpec"]
    flags = []
    for parameter in study["parameters"]:  # written as Vertex writes them: an INTEGER as 8, a DISCRETE value as 16.0
        match parameter:
            case {"doubleValueSpec": {"minValue": low, "maxValue": high}}:
                value = str(float([low, high][end]))
            case {"integerValueSpec": {"minValue": low, "maxValue": high}}:
                value = str([low, high][end])
            case {"discreteValueSpec": {"values": values}}:
                value = str(float(values[end]))
            case {"categoricalValueSpec": {"values": values}}:
                value = values[end]
        flags.append(f"--{parameter['parameterId']}={value}")

    code, _, errors = finish(start("--epochs=1", *flags, **as_in_vertex(tmp_path)))

    assert (code, errors) == (0, "")
    assert [metric["metricId"] in reports(tmp_path)[0] for metric in study["metrics"]] == [True]


BAD_FLAGS = {
    "--epochs=0": "argument --epochs: 0 is not a whole number from 1 to 1000",
    "--batch-size=64.5": "argument --batch-size: 64.5 is not a whole number from 1 to 1000",
    "--learning-rate=nan": "argument --learning-rate: nan is not a number above 0 and not above 1",
    "--epoch=1": "unrecognized arguments: --epoch=1",
    "--model-dir=/proc/x": "argument --model-dir: cannot write to /proc/x: No such file or directory",
}


def test_a_bad_flag_is_named_in_one_line(start: Start, image: Image) -> None:
    program = " ".join(image.attrs["Config"]["Entrypoint"])
    script = f'for flag; do {program} "$flag" 2>&1; echo "exit code $?"; done'
    printed = finish(start("sh", *BAD_FLAGS, entrypoint=["sh", "-c", script]))[1]
    assert printed == "".join(f"trainer.py: error: {message}\nexit code 2\n" for message in BAD_FLAGS.values())


def test_sigterm_stops_it_at_once(start: Start) -> None:
    container = start("--epochs=1000", "--batch-size=1")
    until(lambda: b"epoch 1/1000" in container.logs(), "the first epoch")

    container.kill("SIGTERM")

    assert container.wait(timeout=PATIENCE_SECONDS)["StatusCode"] == 143  # a thousand epochs take far longer


def test_a_code_edit_reuses_the_requirements_layer(client: docker.DockerClient, image: Image, tmp_path: Path) -> None:
    context = tmp_path / "digits"
    shutil.copytree(CONTEXT, context)
    with (context / "trainer.py").open("a") as trainer:
        trainer.write(f"# edited in {tmp_path}\n")

    tag = f"{TAG}:{uuid.uuid4().hex}"
    edited = build_image(client, context, tag)

    layers, edited_layers = (each.attrs["RootFS"]["Layers"] for each in (image, edited))
    client.images.remove(tag)
    assert edited_layers[:-1] == layers[:-1]
    assert edited_layers[-1] != layers[-1]
