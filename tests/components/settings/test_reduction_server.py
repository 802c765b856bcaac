"""One word for the image of Reduction Server, which a preview shows in full, and the rules of its pool."""

from pathlib import Path

from tests.components.projects import CLOUD_INCLUDING, INCLUDING, load, problems

JOBS = """\
customJobs:
  train:
    jobSpec:
      workerPoolSpecs:
        - machineSpec: {machineType: a2-highgpu-1g, acceleratorType: NVIDIA_TESLA_A100, acceleratorCount: 1}
          containerSpec: {imageUri: trainer}
        - machineSpec: {machineType: a2-highgpu-1g, acceleratorType: NVIDIA_TESLA_A100, acceleratorCount: 1}
          replicaCount: 3
          containerSpec: {imageUri: trainer}
        - machineSpec: {machineType: n1-highcpu-16}
          replicaCount: 4
          containerSpec: {imageUri: "${images.reductionServer}"}
"""
IMAGE = "docker.pkg.dev/vertex-ai-restricted/training/reductionserver:latest"


def image(root: Path, stack: str) -> str:
    (job,) = load(root, stack, jobs=JOBS).jobs
    return str(job.job.fields["jobSpec"]["workerPoolSpecs"][2]["containerSpec"]["imageUri"])


def test_the_reference_resolves_to_the_nearest_image(tmp_path: Path) -> None:
    assert image(tmp_path, CLOUD_INCLUDING) == f"us-{IMAGE}"
    assert image(tmp_path, CLOUD_INCLUDING.replace("us-central1", "europe-west4")) == f"europe-{IMAGE}"


def test_the_same_declaration_is_right_for_this_machine(tmp_path: Path) -> None:
    assert image(tmp_path, INCLUDING) == f"us-{IMAGE}"


def test_the_reference_is_valid_only_in_its_pool(tmp_path: Path) -> None:
    reducers = "        - machineSpec: {machineType: n1-highcpu-16}"
    second = JOBS.replace(reducers, f"        - {{}}\n{reducers}")
    assert problems(tmp_path, CLOUD_INCLUDING, jobs=second) == [
        "jobs.yaml:13: customJobs.train.jobSpec.workerPoolSpecs[3].containerSpec.imageUri: Reduction Server runs in "
        "workerPoolSpecs[2], with {} for a pool left out"
    ]


def test_a_misspelled_reference_suggests_the_right_one(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, CLOUD_INCLUDING, jobs=JOBS.replace("reductionServer", "reductionserver"))
    assert problem.endswith("${images.reductionserver} is not declared; did you mean reductionServer?")


def test_no_image_can_be_declared_under_the_word(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, INCLUDING, jobs='images: {reductionServer: {uri: "x:1"}}\n')
    assert '"reductionServer" must be lower-case letters' in problem
