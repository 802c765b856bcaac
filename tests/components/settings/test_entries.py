"""What a stack file and the files that it includes declare, and fields of jobs in files of their own."""

from pathlib import Path

import pytest
from vertex_training.schema.source import SourceFile
from vertex_training.settings.entries import included

from tests.components.projects import INCLUDING, LOCAL, load, problems
from tests.components.settings.test_declarations import JOB, SPEC

STACK = SourceFile("stacks/Pulumi.dev.yaml")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    for name in ("training/b.yaml", "training/a.yml", "training/c.json", "training/notes.md", "training/deep/d.yaml"):
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("{}")
    return root


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        (["training/b.yaml"], ["training/b.yaml"]),
        (["training"], ["training/a.yml", "training/b.yaml", "training/c.json"]),
        (["training/*.yaml"], ["training/b.yaml"]),
        (["training/**/*"], ["training/a.yml", "training/b.yaml", "training/c.json", "training/deep/d.yaml"]),
        (["training/notes.md"], ["training/notes.md"]),
        (["training/b.yaml", "training", "training/b.yaml"], ["training/b.yaml", "training/a.yml", "training/c.json"]),
        ([], []),
    ],
)
def test_include_takes_files_folders_and_globs(project: Path, patterns: list[str], names: list[str]) -> None:
    files, problems = included(project, STACK, patterns)
    assert (list(files), problems) == (names, [])
    assert all(file == project / name for name, file in files.items())


@pytest.mark.parametrize("pattern", ["training/x.yaml", "training/*.md", "nowhere"])
def test_a_pattern_that_matches_no_file_is_told(project: Path, pattern: str) -> None:
    files, (problem,) = included(project, STACK, ["training/b.yaml", pattern])
    assert list(files) == ["training/b.yaml"]
    assert str(problem) == f'stacks/Pulumi.dev.yaml: include[1]: "{pattern}" matches no file in project/'


def test_paths_of_the_project_are_shown_relative(project: Path) -> None:
    files, _ = included(project, STACK, [str(project / "training/b.yaml")])
    assert files == {"training/b.yaml": project / "training/b.yaml"}


DECLARED = """\
vars: {epochs: 5}
images:
  digits: {uri: "trainer:1"}
customJobs:
  digits:
    spec: {file: config/digits.yaml}
    lifecycle: {wait: true}
"""
CONFIG = """\
# As for gcloud ai custom-jobs create --config
workerPoolSpecs:
  - machineSpec:
      machineType: n1-standard-4
    replicaCount: 1
    containerSpec:
      imageUri: ${images.digits}
      args: ["--epochs=${vars.epochs}"]
scheduling:
  timeout: 3600s
"""
SNAKE = """\
worker_pool_specs:
  - machine_spec:
      machine_type: n1-standard-4
    replica_count: "1"
    container_spec:
      image_uri: ${images.digits}
      args: ["--epochs=${vars.epochs}"]
scheduling: {timeout: 3600s}
"""
BODY = """\
{
  "jobSpec": {
    "workerPoolSpecs": [{
      "machineSpec": {"machineType": "n1-standard-4"},
      "replicaCount": "1",
      "containerSpec": {"imageUri": "${images.digits}", "args": ["--epochs=${vars.epochs}"]}
    }],
    "scheduling": {"timeout": "3600s"}
  }
}
"""
TUNING = """\
studySpec:
  metrics: [{metricId: accuracy}]
  parameters:
    - {parameterId: rate, doubleValueSpec: {maxValue: 1}}
trialJobSpec:
  workerPoolSpecs:
    - machineSpec: {machineType: n1-standard-4}
      containerSpec: {imageUri: trainer}
"""
SEARCH = """\
hyperparameterTuningJobs:
  search:
    spec: {file: search.yaml}
    maxTrialCount: 4
    parallelTrialCount: 2
"""
FILE = "config/digits.yaml"


@pytest.mark.parametrize("config", [CONFIG, SNAKE, BODY], ids=["gcloud", "snake_case", "REST body"])
def test_a_file_job_equals_the_inline_job(tmp_path: Path, config: str) -> None:
    (job,) = load(tmp_path, INCLUDING, jobs=DECLARED, **{FILE: config}).jobs
    (declared,) = load(tmp_path, INCLUDING, jobs=JOB).jobs
    assert job == declared
    assert job.job.fields == SPEC


def test_a_tuning_declaration_completes_the_gcloud_file(tmp_path: Path) -> None:
    (job,) = load(tmp_path, INCLUDING, jobs=SEARCH, **{"search.yaml": TUNING}).jobs
    assert (job.job.fields["displayName"], job.job.fields["maxTrialCount"]) == (
        "search",
        4,
    )
    assert job.job.fields["studySpec"]["metrics"] == [{"metricId": "accuracy"}]


def test_a_stack_file_may_name_one_too(tmp_path: Path) -> None:
    stack = f"{LOCAL}  vertex-training:customJobs: {{digits: {{spec: {{file: {FILE}}}}}}}\n"
    config = CONFIG.replace("${images.digits}", "trainer").replace("${vars.epochs}", "5")
    (job,) = load(tmp_path, stack, **{FILE: config}).jobs
    assert job.job.fields["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["imageUri"] == "trainer"


@pytest.mark.parametrize(
    ("right", "wrong", "problem"),
    [
        ("machineType:", "machineTyp:", "4: workerPoolSpecs[0].machineSpec.machineTyp: unknown field; did you mean"),
        ("n1-standard-4", "n1-standard-5", "4: workerPoolSpecs[0].machineSpec.machineType: Machine type n1-standard-5"),
        ("replicaCount: 1", "replicaCount: 2", "5: workerPoolSpecs[0].replicaCount: 2 must be 1"),
        ("images.digits", "images.digit", "7: workerPoolSpecs[0].containerSpec.imageUri: ${images.digit} is not decla"),
        ("3600s", "1h", '10: scheduling.timeout: "1h" is not a duration'),
        ("workerPoolSpecs", "workerPools", "2: workerPools: unknown field; did you mean workerPoolSpecs?"),
    ],
)
def test_a_problem_names_the_file_and_its_line(tmp_path: Path, right: str, wrong: str, problem: str) -> None:
    found = problems(tmp_path, INCLUDING, jobs=DECLARED, **{FILE: CONFIG.replace(right, wrong)})
    assert any(line.startswith(f"{FILE}:{problem}") for line in found)
    assert all(line.startswith(FILE) for line in found)


def test_snake_case_and_rest_problems_have_lines(tmp_path: Path) -> None:
    (snake,) = problems(tmp_path, INCLUDING, jobs=DECLARED, **{FILE: SNAKE.replace('"1"', '"2"')})
    assert snake.startswith(f"{FILE}:4: workerPoolSpecs[0].replicaCount: ")
    (body,) = problems(tmp_path, INCLUDING, jobs=DECLARED, **{FILE: BODY.replace('"1"', '"2"')})
    assert body.startswith(f"{FILE}:5: jobSpec.workerPoolSpecs[0].replicaCount: ")


def test_a_problem_beside_the_file_names_its_line(tmp_path: Path) -> None:
    declared = DECLARED.replace("wait", "waits")
    (problem,) = problems(tmp_path, INCLUDING, jobs=declared, **{FILE: CONFIG})
    assert problem.startswith("jobs.yaml:7: customJobs.digits.lifecycle.waits: unknown field")


@pytest.mark.parametrize("config", [CONFIG, SNAKE, BODY], ids=["gcloud", "snake_case", "REST body"])
def test_the_declaration_adds_the_flags_of_gcloud(tmp_path: Path, config: str) -> None:
    beside = "job_spec: {service_account: '1234', scheduling: {strategy: SPOT}}\n    labels: {team: vision}"
    declared = DECLARED.replace("lifecycle: {wait: true}", beside)
    (job,) = load(tmp_path, INCLUDING, jobs=declared, **{FILE: config}).jobs
    assert job.job.fields["labels"] == {"team": "vision"}
    expected = SPEC["jobSpec"] | {"serviceAccount": "1234", "scheduling": {"timeout": "3600s", "strategy": "SPOT"}}
    assert job.job.fields["jobSpec"] == expected


def test_file_and_declaration_problems_are_reported_together(tmp_path: Path) -> None:
    beside = "jobSpec: {serviceAccount: trainer, schedulin: {}, scheduling: {strategy: SLOW}}"
    declared = DECLARED.replace("lifecycle: {wait: true}", beside)
    found = problems(tmp_path, INCLUDING, jobs=declared, **{FILE: CONFIG.replace("3600s", "1h")})
    assert [": ".join(each.split(": ")[:2]) for each in found] == [
        f"{FILE}:10: scheduling.timeout",
        "jobs.yaml:7: customJobs.digits.jobSpec.schedulin",
        "jobs.yaml:7: customJobs.digits.jobSpec.scheduling.strategy",
        "jobs.yaml:7: customJobs.digits.jobSpec.serviceAccount",
    ]


@pytest.mark.parametrize(
    ("beside", "field"),
    [
        ("job_spec: {scheduling: {timeout: 60s}}", "job_spec.scheduling.timeout"),
        ("jobSpec: {worker_pool_specs: []}", "jobSpec.worker_pool_specs"),
        ("jobSpec: text", "jobSpec"),
    ],
)
def test_a_duplicate_field_names_its_whole_path(tmp_path: Path, beside: str, field: str) -> None:
    declared = DECLARED.replace("lifecycle: {wait: true}", beside)
    (problem,) = problems(tmp_path, INCLUDING, jobs=declared, **{FILE: CONFIG})
    assert problem == f"jobs.yaml:7: customJobs.digits.{field}: is set in {FILE} too; keep one of the two"


@pytest.mark.parametrize("config", [CONFIG, SNAKE], ids=["camelCase", "snake_case"])
def test_a_lone_pool_becomes_a_list(tmp_path: Path, config: str) -> None:
    one = config.replace("  - machine", "    machine")
    assert one != config
    (job,) = load(tmp_path, INCLUDING, jobs=DECLARED, **{FILE: one}).jobs
    assert job.job.fields == SPEC
    wrong = one.replace("images.digits", "images.digit").replace("n1-standard-4", "n1-standard-5")
    lines = problems(tmp_path, INCLUDING, jobs=DECLARED, **{FILE: wrong})
    fields = [line.split(": ")[1].replace("_", "").lower() for line in lines]
    assert fields == ["workerpoolspecs.machinespec.machinetype", "workerpoolspecs.containerspec.imageuri"]


def test_a_rest_body_takes_a_lone_pool_too(tmp_path: Path) -> None:
    body = BODY.replace("[{", "{", 1).replace('}],\n    "scheduling', '},\n    "scheduling')
    assert body != BODY
    (job,) = load(tmp_path, INCLUDING, jobs=DECLARED, **{FILE: body}).jobs
    assert job.job.fields["jobSpec"] == SPEC["jobSpec"]


LONE = """\
studySpec:
  metrics: {metricId: loss, goal: MINIMIZE}
  parameters: {parameterId: lr, discreteValueSpec: {values: 0.1}}
trialJobSpec:
  workerPoolSpecs:
    machineSpec: {machineType: n1-standard-4}
    containerSpec: {imageUri: "i:1", command: python, args: -m, env: {name: A, value: b}}
"""


def test_one_value_stands_for_a_list_of_one(tmp_path: Path) -> None:
    declared = "hyperparameterTuningJobs:\n  search:\n    maxTrialCount: 1\n    parallelTrialCount: 1\n"
    declared += "    spec: {file: tuning.yaml}\n"
    (job,) = load(tmp_path, INCLUDING, jobs=declared, **{"tuning.yaml": LONE}).jobs
    study, (pool,) = job.job.fields["studySpec"], job.job.fields["trialJobSpec"]["workerPoolSpecs"]
    container = pool["containerSpec"]
    assert study["metrics"] == [{"metricId": "loss", "goal": "MINIMIZE"}]
    assert study["parameters"] == [{"parameterId": "lr", "discreteValueSpec": {"values": [0.1]}}]
    assert (container["command"], container["args"]) == (["python"], ["-m"])
    assert container["env"] == [{"name": "A", "value": "b"}]
    wrong = LONE.replace("value: b", "value: [b]").replace("values: 0.1", "values: low")
    assert problems(tmp_path, INCLUDING, jobs=declared, **{"tuning.yaml": wrong}) == [
        'tuning.yaml:3: studySpec.parameters.discreteValueSpec.values: "low" is not a number',
        'tuning.yaml:7: trialJobSpec.workerPoolSpecs.containerSpec.env.value: ["b"] is not a string',
    ]


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("{file: gone.yaml}", 'spec.file: "gone.yaml" is not a file in'),
        ("{file: config}", 'spec.file: "config" is not a file in'),
        ("{file: /etc/hostname}", 'spec.file: "/etc/hostname" leads out of'),
        ("{fil: a}", "spec.fil: unknown field; did you mean file?"),
        ("config.yaml", "spec: must be an object with named fields"),
        ("{file: 1}", 'spec.file: 1 is not a string; write "1" in quotes'),
    ],
)
def test_an_invalid_file_name_is_reported(tmp_path: Path, spec: str, problem: str) -> None:
    declared = DECLARED.replace("{file: config/digits.yaml}", spec)
    found = problems(tmp_path, INCLUDING, jobs=declared, **{FILE: CONFIG})
    assert all(line.startswith("jobs.yaml:6: customJobs.digits.spec") for line in found)
    assert any(line.startswith(f"jobs.yaml:6: customJobs.digits.{problem}") for line in found)


@pytest.mark.parametrize("content", ["a: b: c\n", "- a\n", "a: 1\na: 2\n"])
def test_an_unreadable_file_is_reported(tmp_path: Path, content: str) -> None:
    (problem,) = problems(tmp_path, INCLUDING, jobs=DECLARED, **{FILE: content})
    assert problem.startswith(FILE)
