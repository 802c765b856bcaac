"""What cannot be meant is refused with what was meant: names of declared images, variables twice, executors."""

from pathlib import Path

import pytest
from vertex_training.errors import KNOWN_HERE, DeclarationErrors

from tests.blocks import taken
from tests.components.projects import CLOUD_INCLUDING, INCLUDING, load, problems
from vertex_api.machines import AS_OF
from vertex_api.types import REVISION

JOB = """\
images: {digits: {uri: "trainer:1"}}
customJobs:
  digits:
    jobSpec:
      workerPoolSpecs:
        - machineSpec: {machineType: n1-standard-4}
          containerSpec: {imageUri: "${images.digits}", env: [{name: A, value: b}]}
    lifecycle: {wait: true}
"""
PACKAGE = """\
customJobs:
  digits:
    jobSpec:
      workerPoolSpecs:
        - machineSpec: {machineType: n1-standard-4}
          pythonPackageSpec: {executorImageUri: "python:3.11", packageUris: ["gs://b/p"], pythonModule: m}
"""
PIPELINE = """\
images: {serving: {uri: "serve:1"}}
trainingPipelines:
  digits:
    trainingTaskInputs:
      workerPoolSpecs:
        - machineSpec: {machineType: n1-standard-4}
          containerSpec: {imageUri: x, env: [{name: A, value: b}]}
    modelToUpload: {containerSpec: {imageUri: "${images.serving}"}}
"""
CONTAINER = "customJobs.digits.jobSpec.workerPoolSpecs[0].containerSpec"
TWICE = "{name: A, value: b}, {name: A, value: c}"


@pytest.mark.parametrize("name", ["digits", "images.digits"])
def test_a_declared_image_is_named_by_a_reference(tmp_path: Path, name: str) -> None:
    assert problems(tmp_path, INCLUDING, jobs=JOB.replace("${images.digits}", name)) == [
        f'jobs.yaml:7: {CONTAINER}.imageUri: "{name}" is a declared image: write ${{images.digits}}; for an image in '
        "a registry, write its tag, digits:latest"
    ]


def test_so_is_the_one_that_serves_a_model(tmp_path: Path) -> None:
    (said,) = problems(tmp_path, INCLUDING, jobs=PIPELINE.replace("${images.serving}", "serving"))
    path = "trainingPipelines.digits.modelToUpload.containerSpec.imageUri"
    assert said.startswith(f'jobs.yaml:8: {path}: "serving" is a declared image: write ${{images.serving}}')


@pytest.mark.parametrize("name", ["digit", "x", "python:3.11", "digits:latest"])
def test_short_names_of_other_images_are_names(tmp_path: Path, name: str) -> None:
    (job,) = load(tmp_path, INCLUDING, jobs=JOB.replace("${images.digits}", name)).jobs
    assert job.job.fields["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["imageUri"] == name


def warnings(tmp_path: Path, jobs: str) -> list[str]:
    return [*map(str, load(tmp_path, INCLUDING, jobs=jobs).plan.warnings())]


FUTURE = JOB.replace("n1-standard-4", "z9-giga-96").replace("{wait: true}", "{wait: true, allow: [PLACE]}")
MACHINE_TYPE = "jobSpec.workerPoolSpecs[0].machineSpec.machineType"


@pytest.mark.parametrize("prefix", ["", "customJobs.digits."])
def test_a_lifted_refusal_is_a_warning(tmp_path: Path, prefix: str) -> None:
    (line,) = warnings(tmp_path, FUTURE.replace("PLACE", f'"{prefix}{MACHINE_TYPE}"'))
    assert line.startswith("jobs.yaml:")
    assert f"{MACHINE_TYPE}: allowed by the job's lifecycle, although the rules on file refuse it: Machine type" in line


def test_a_lift_without_a_refusal_is_a_warning(tmp_path: Path) -> None:
    idle = FUTURE.replace("z9-giga-96", "n1-standard-4").replace("PLACE", f'"{MACHINE_TYPE}"')
    (line,) = warnings(tmp_path, idle)
    assert line.endswith(f'lifecycle.allow[0]: "{MACHINE_TYPE}" lifts nothing, as nothing refuses it; take it out')


IMAGE_URI = "jobSpec.workerPoolSpecs[0].containerSpec.imageUri"


@pytest.mark.parametrize(
    ("place", "said"),
    [
        (MACHINE_TYPE.replace("machineType", "machinetype"), f"lifts nothing; did you mean {MACHINE_TYPE}?"),
        (IMAGE_URI, "cannot be lifted: that is no rule of the service"),
    ],
)
def test_a_place_that_lifts_nothing_says_why(tmp_path: Path, place: str, said: str) -> None:
    wrong = FUTURE.replace("PLACE", f'"{place}"').replace('"${images.digits}"', '""')
    lines = problems(tmp_path, INCLUDING, jobs=wrong)
    assert any(line.endswith(f'lifecycle.allow[0]: "{place}" {said}') for line in lines), lines


def test_guardrails_hold_for_what_is_lifted(tmp_path: Path) -> None:
    guarded = INCLUDING + "  vertex-training:guardrails: {machineTypes: [n1-*]}\n"
    (line,) = problems(tmp_path, guarded, jobs=FUTURE.replace("PLACE", f'"{MACHINE_TYPE}"'))
    assert 'guardrails.machineTypes: "z9-giga-96" is not allowed here' in line


def test_an_own_key_is_not_lifted(tmp_path: Path) -> None:
    wrong = FUTURE.replace("z9-giga-96", "n1-standard-4").replace("PLACE", "lifecyle") + "    lifecyle: {wait: true}\n"
    lines = problems(tmp_path, INCLUDING, jobs=wrong)
    assert any("lifecyle: unknown field; did you mean lifecycle?" in line for line in lines), lines


def test_a_refusal_says_how_it_is_lifted(tmp_path: Path) -> None:
    (page,) = taken("docs/refusals.md", "output", "1 problem")
    with pytest.raises(DeclarationErrors) as failure:
        load(tmp_path, INCLUDING, jobs=JOB.replace("n1-standard-4", "z9-giga-96"))
    last = str(failure.value).splitlines()[-1]
    assert page.splitlines()[-1] == last
    assert last == (
        f"  known here: machines as of {AS_OF}, the API as of {REVISION[:4]}-{REVISION[4:6]}-{REVISION[6:]}; to submit "
        "a job all the same, lifecycle: {allow: [FIELD]}, as `vertex-training docs refusals` says"
    )
    with pytest.raises(DeclarationErrors) as failure:
        load(tmp_path, INCLUDING, jobs=JOB.replace("{wait: true}", "{wat: true}"))
    assert KNOWN_HERE not in str(failure.value)


def test_duplicate_variables_are_warned_of_unless_adopted(tmp_path: Path) -> None:
    twice = JOB.replace("{name: A, value: b}", TWICE)
    assert warnings(tmp_path, JOB) == []
    assert warnings(tmp_path, twice) == [f'jobs.yaml:7: {CONTAINER}.env[1].name: "A" is there twice']
    assert warnings(tmp_path, twice.replace("{wait: true}", '{adopt: "42"}')) == []


def test_advice_on_a_pipeline_s_job_is_found(tmp_path: Path) -> None:
    assert warnings(tmp_path, PIPELINE.replace("{name: A, value: b}", TWICE)) == [
        "jobs.yaml:7: trainingPipelines.digits.trainingTaskInputs.workerPoolSpecs[0].containerSpec.env[1].name: "
        '"A" is there twice'
    ]


def test_an_uploaded_model_requires_its_serving_container(tmp_path: Path) -> None:
    bare = PIPELINE.replace('{containerSpec: {imageUri: "${images.serving}"}}', "{}")
    assert problems(tmp_path, INCLUDING, jobs=bare) == [
        "jobs.yaml:8: trainingPipelines.digits.modelToUpload.containerSpec: is required: the container that serves the "
        "model"
    ]
    adopted = f'{bare}    lifecycle: {{adopt: "42"}}\n'
    assert load(tmp_path, INCLUDING, jobs=adopted).jobs


def test_a_cloud_executor_must_be_in_artifact_registry(tmp_path: Path) -> None:
    assert load(tmp_path, INCLUDING, jobs=PACKAGE).jobs
    (said,) = problems(tmp_path, CLOUD_INCLUDING, jobs=PACKAGE)
    assert said.endswith(
        'executorImageUri: "python:3.11" is not in Artifact Registry; use a prebuilt image for training of Google\'s'
    )


def test_a_reference_counts_as_a_value(tmp_path: Path) -> None:
    secret = JOB.replace("value: b", 'value: "${secrets.token}"')
    assert load(tmp_path, f"{INCLUDING}  vertex-training:secrets: {{token: hunter2}}\n", jobs=secret).jobs
    (said,) = problems(tmp_path, INCLUDING, jobs="vars: {v: ''}\n" + JOB.replace("value: b", 'value: "${vars.v}"'))
    assert said.startswith(f"jobs.yaml:8: {CONTAINER}.env[0].value: is required, and not empty")
