"""Declarations: images, jobs and schedules, with their vars filled in, and every problem at once."""

import json
from pathlib import Path

import pytest
from vertex_training.plan.training import Timetable

from tests.components.projects import CLOUD_INCLUDING, INCLUDING, LOCAL, load, problems
from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB

JOB = """\
vars: {epochs: 5}
images:
  digits: {uri: "trainer:1"}
customJobs:
  digits:
    jobSpec:
      workerPoolSpecs:
        - machineSpec: {machineType: n1-standard-4}
          replicaCount: 1
          containerSpec:
            imageUri: ${images.digits}
            args: ["--epochs=${vars.epochs}"]
      scheduling: {timeout: 3600s}
    lifecycle: {wait: true}
"""
SPEC = {
    "displayName": "digits",
    "jobSpec": {
        "workerPoolSpecs": [
            {
                "machineSpec": {"machineType": "n1-standard-4"},
                "replicaCount": 1,
                "containerSpec": {"imageUri": "${images.digits}", "args": ["--epochs=5"]},
            }
        ],
        "scheduling": {"timeout": "3600s"},
    },
}
IN_POOL = "customJobs.digits.jobSpec.workerPoolSpecs[0]"
LIFECYCLE = "jobs.yaml:14: customJobs.digits.lifecycle"
EITHER = (
    "needs exactly one of: a context folder to build, a package, the uri of an image built elsewhere, or the stack "
    "that builds it"
)
ARG = f"jobs.yaml:12: {IN_POOL}.containerSpec.args[0]"


def small_job(args: str) -> str:
    """A job in one line, with these arguments."""
    pool = f"{{machineSpec: {{machineType: n1-standard-4}}, containerSpec: {{imageUri: trainer, args: {args}}}}}"
    return f"customJobs: {{digits: {{jobSpec: {{workerPoolSpecs: [{pool}]}}}}}}\n"


def args_of(root: Path, stack: str, jobs: str) -> list[str] | None:
    (job,) = load(root, stack, jobs=jobs).jobs
    arguments: list[str] | None = job.job.fields["jobSpec"]["workerPoolSpecs"][0]["containerSpec"].get("args")
    return arguments


def test_a_job_is_canonical_with_vars_filled_in(tmp_path: Path) -> None:
    settings = load(tmp_path, INCLUDING, jobs=JOB)
    (job,) = settings.jobs
    assert (job.kind, job.name, job.job.fields, job.lifecycle) == (
        CUSTOM_JOB,
        "digits",
        SPEC,
        {"wait": True},
    )
    assert settings.images == {"digits": {"uri": "trainer:1"}}


@pytest.mark.parametrize(
    ("right", "wrong", "problem"),
    [
        ("customJobs:", "customJob:", "jobs.yaml:4: customJob: unknown field; did you mean customJobs?"),
        (
            "machineType:",
            "machineTyp:",
            f"jobs.yaml:8: {IN_POOL}.machineSpec.machineTyp: unknown field; did you mean machineType?",
        ),
        (
            "replicaCount: 1",
            "replicaCount: one",
            f'jobs.yaml:9: {IN_POOL}.replicaCount: "one" is not a whole number',
        ),
        (
            "replicaCount: 1",
            "replicaCount: 2",
            f"jobs.yaml:9: {IN_POOL}.replicaCount: 2 must be 1: the first pool is the primary replica",
        ),
        (
            "3600s",
            "1h",
            'jobs.yaml:13: customJobs.digits.jobSpec.scheduling.timeout: "1h" is not a duration; write seconds '
            'followed by s, such as "3600s"',
        ),
        (
            "${images.digits}",
            "${images.digit}",
            f"jobs.yaml:11: {IN_POOL}.containerSpec.imageUri: ${{images.digit}} is not declared; did you mean digits?",
        ),
        ("${vars.epochs}", "${vars.epoch}", f"{ARG}: ${{vars.epoch}} is not declared; did you mean epochs?"),
        ("${vars.epochs}", "${vars.x} ${vars.epochs}", f"{ARG}: ${{vars.x}} is not declared; known: epochs"),
        ("${vars.epochs}", "${secrets.token}", f"{ARG}: ${{secrets.token}} is not declared"),
        (
            "${vars.epochs}",
            "${var.epochs}",
            f"{ARG}: ${{var.epochs}} is not a reference that is allowed here; write ${{vars.NAME}} or ${{images.NAME}} "
            "or ${packages.NAME} or ${data.NAME} or ${secrets.NAME} or ${jobs.NAME.RESULT}. For a literal ${ write $${",
        ),
        (
            '["--epochs=${vars.epochs}"]',
            "[--epochs, 5]",
            f'jobs.yaml:12: {IN_POOL}.containerSpec.args[1]: 5 is not a string; write "5" in quotes',
        ),
        (
            '["--epochs=${vars.epochs}"]',
            "[--python, 3.10]",
            f'jobs.yaml:12: {IN_POOL}.containerSpec.args[1]: 3.10 is read as the number 3.1; write "3.10" in quotes',
        ),
        (
            "lifecycle: {wait: true}",
            "labels: {debug: no}",
            'jobs.yaml:14: customJobs.digits.labels.debug: no is read as false; write "no" in quotes',
        ),
        (
            "replicaCount: 1",
            "replicaCount: {n: ${vars.epochs}}",
            'jobs.yaml:9: in brackets a reference needs quotes; write "${vars.epochs}"',
        ),
        ('["--epochs=${vars.epochs}"]', "--epochs=5", f"jobs.yaml:12: {IN_POOL}.containerSpec.args: must be a list"),
        ("wait: true", "wait: maybe", f'{LIFECYCLE}.wait: "maybe" is not true or false'),
        ("wait: true", "waits: true", f"{LIFECYCLE}.waits: unknown field; did you mean wait?"),
        (
            "wait: true",
            "onDelete: drop",
            f'{LIFECYCLE}.onDelete: "drop" is not one of delete, cancel or keep',
        ),
        ("wait: true", "rerun: [1]", f"{LIFECYCLE}.rerun: [1] is not a string"),
        ("{wait: true}", "true", f"{LIFECYCLE}: must be an object with named fields"),
        (
            "lifecycle: {wait: true}",
            "state: JOB_STATE_RUNNING",
            "jobs.yaml:14: customJobs.digits.state: is set by the service; remove it",
        ),
        ('{uri: "trainer:1"}', "{}", f"jobs.yaml:3: images.digits: {EITHER}"),
        ('{uri: "trainer:1"}', "{url: x}", "jobs.yaml:3: images.digits.url: unknown field; did you mean uri?"),
        ('{uri: "trainer:1"}', "{uri: 1}", 'jobs.yaml:3: images.digits.uri: 1 is not a string; write "1" in quotes'),
        ('{uri: "trainer:1"}', "trainer:1", "jobs.yaml:3: images.digits: must be an object with named fields"),
        (
            '{uri: "trainer:1"}',
            '{uri: "${images.other}"}',
            "jobs.yaml:3: images.digits.uri: ${images.other} is not a reference that is allowed here; "
            "write ${vars.NAME}",
        ),
    ],
)
def test_a_mistake_is_one_problem_with_its_place(tmp_path: Path, right: str, wrong: str, problem: str) -> None:
    assert JOB.count(right) == 1
    assert problems(tmp_path, INCLUDING, jobs=JOB.replace(right, wrong)) == [problem]


SHELL = 'for f in ${BUCKET}/x; do echo "${f%.csv}" ${#f} ${HOME:-/root}; done'


@pytest.mark.parametrize("text", [SHELL, "${HOME}", "$${HOME} ${HOME}"])
def test_a_shell_s_variables_pass_in_a_command_line(tmp_path: Path, text: str) -> None:
    jobs = JOB.replace('["--epochs=${vars.epochs}"]', f"[{json.dumps(text)}, '${{vars.epochs}}']")
    (job,) = load(tmp_path, INCLUDING, jobs=jobs).jobs
    assert job.job.pools[0]["containerSpec"]["args"] == [text, "5"]


def test_a_declared_name_without_its_table_is_asked_about(tmp_path: Path) -> None:
    jobs = JOB.replace("${vars.epochs}", "${epochs}")
    assert problems(tmp_path, INCLUDING, jobs=jobs) == [
        f"{ARG}: ${{epochs}} is left to the shell; did you mean ${{vars.epochs}}? For a literal ${{ write $${{"
    ]


def test_outside_of_command_lines_a_name_needs_its_table(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, INCLUDING, jobs=JOB.replace("lifecycle: {wait: true}", "labels: {a: '${HOME}'}"))
    assert "labels.a: ${HOME} is not a reference that is allowed here; write ${vars.NAME}" in found


def test_shared_fields_can_have_their_own_key(tmp_path: Path) -> None:
    pool = "machineSpec: {machineType: n1-standard-4}, containerSpec: {imageUri: trainer}"
    jobs = f"x-pool: &pool {{{pool}}}\nx-odd: '${{what.ever}}'\ncustomJobs:\n  digits:\n"
    jobs += "    jobSpec: {workerPoolSpecs: [{<<: *pool, replicaCount: 1}]}\n"
    (job,) = load(tmp_path, INCLUDING, jobs=jobs).jobs
    (found,) = job.job.fields["jobSpec"]["workerPoolSpecs"]
    assert found == {
        "machineSpec": {"machineType": "n1-standard-4"},
        "replicaCount": 1,
        "containerSpec": {"imageUri": "trainer"},
    }


@pytest.mark.parametrize("nothing", ["lifecycle:", "lifecycle: ~", "spec:", "labels:"])
def test_an_empty_key_of_a_job_is_unset(tmp_path: Path, nothing: str) -> None:
    (job,) = load(tmp_path, INCLUDING, jobs=JOB.replace("lifecycle: {wait: true}", nothing)).jobs
    assert (job.job.fields, job.lifecycle) == (SPEC, {})


def test_a_misspelled_required_key_is_one_problem(tmp_path: Path) -> None:
    assert problems(tmp_path, INCLUDING, jobs=JOB.replace("jobSpec", "jobSpecs")) == [
        "jobs.yaml:6: customJobs.digits.jobSpecs: unknown field; did you mean jobSpec?",
    ]


@pytest.mark.parametrize("name", ["Digits", "digits_", "-digits", "a b", "a/b", "x" * 64, "größe"])
@pytest.mark.parametrize("section", ["images", "customJobs", "hyperparameterTuningJobs"])
def test_an_invalid_name_is_rejected(tmp_path: Path, section: str, name: str) -> None:
    message = f'"{name}" must be lower-case letters, digits, "-", "_" and ".", at most 63'
    jobs = f"{section}:\n  '{name}': {{}}\n"
    assert problems(tmp_path, INCLUDING, jobs=jobs) == [f"jobs.yaml:2: {section}.{name}: {message}"]


@pytest.mark.parametrize("name", ["a", "9", "digits-2.v_1", "x" * 63])
def test_a_name_within_the_rules_is_taken(tmp_path: Path, name: str) -> None:
    assert load(tmp_path, INCLUDING, jobs=f"images: {{'{name}': {{uri: u}}}}\n").images == {name: {"uri": "u"}}


def test_a_var_can_have_any_name(tmp_path: Path) -> None:
    assert args_of(tmp_path, INCLUDING, small_job("['${vars.Epochs MAX}']") + 'vars: {"Epochs MAX": "5"}\n') == ["5"]


def test_a_name_that_needs_quotes_is_rejected(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, INCLUDING, jobs="images:\n  2026: {uri: x}\n")
    assert problem.startswith("jobs.yaml:2: ")
    assert '"2026" in quotes' in problem


@pytest.mark.parametrize("section", ["images", "customJobs", "hyperparameterTuningJobs"])
def test_an_empty_declaration_is_reported(tmp_path: Path, section: str) -> None:
    (problem,) = problems(tmp_path, INCLUDING, jobs=f"{section}:\n  digits:\n")
    assert problem.startswith(f"jobs.yaml:2: {section}.digits: ")


def test_a_name_declared_twice_names_both_places(tmp_path: Path) -> None:
    stack = f"{LOCAL}  vertex-training:include: [jobs.yaml, more.yaml]\n"
    more = "vars: {epochs: 6}\nimages:\n  digits: {uri: other}\n"
    assert problems(tmp_path, stack, jobs=JOB, **{"more.yaml": more}) == [
        'more.yaml:1: vars.epochs: "epochs" is declared already, at jobs.yaml:1',
        'more.yaml:3: images.digits: "digits" is declared already, at jobs.yaml:3',
    ]


def test_jobs_of_different_kinds_cannot_share_a_name(tmp_path: Path) -> None:
    jobs = JOB + "hyperparameterTuningJobs:\n  digits: {}\n"
    message = '"digits" is declared already, at jobs.yaml:5'
    assert problems(tmp_path, INCLUDING, jobs=jobs) == [f"jobs.yaml:16: hyperparameterTuningJobs.digits: {message}"]


def test_image_and_job_can_have_one_name(tmp_path: Path) -> None:
    settings = load(tmp_path, INCLUDING, jobs=JOB)
    assert list(settings.images) == [job.name for job in settings.jobs] == ["digits"]


def test_problems_are_sorted_by_file_and_line(tmp_path: Path) -> None:
    stack = f"{LOCAL}  vertex-training:include: [jobs.yaml, a.yaml, gone]\n  vertex-training:vars: {{epoch: 3}}\n"
    a = "hyperparameterTuningJobs:\n  search:\n    trialJobSpec: {}\n"
    jobs = JOB.replace("${images.digits}", "${images.digit}").replace("replicaCount: 1", "replicas: 1")
    jobs = jobs.replace("wait: true", "waits: true").replace('{uri: "trainer:1"}', "{context: nowhere}")
    assert problems(tmp_path, stack, jobs=jobs, **{"a.yaml": a}) == [
        "a.yaml:2: hyperparameterTuningJobs.search.studySpec: is required",
        "a.yaml:2: hyperparameterTuningJobs.search.maxTrialCount: is required, and at least 1",
        "a.yaml:2: hyperparameterTuningJobs.search.parallelTrialCount: is required, and at least 1",
        "a.yaml:3: hyperparameterTuningJobs.search.trialJobSpec.workerPoolSpecs: is required",
        f'jobs.yaml:3: images.digits.context: "nowhere" is not a folder in {tmp_path.name}/',
        f"jobs.yaml:9: {IN_POOL}.replicas: unknown field; did you mean replicaCount?",
        f"jobs.yaml:11: {IN_POOL}.containerSpec.imageUri: ${{images.digit}} is not declared; did you mean digits?",
        "jobs.yaml:14: customJobs.digits.lifecycle.waits: unknown field; did you mean wait?",
        f'stacks/Pulumi.dev.yaml:3: vertex-training:include[2]: "gone" matches no file in {tmp_path.name}/',
        "stacks/Pulumi.dev.yaml:4: vertex-training:vars.epoch: nothing uses it; did you mean epochs?",
    ]


def test_a_misspelled_section_is_reported_with_the_nearest(tmp_path: Path) -> None:
    first, *_ = problems(tmp_path, INCLUDING, jobs=JOB.replace("images:", "image:"))
    assert first == "jobs.yaml:2: image: unknown field; did you mean images?"


def test_problems_of_all_sections_are_reported_together(tmp_path: Path) -> None:
    jobs = JOB.replace("vars:", "vers:").replace("replicaCount: 1", "replicas: 1")
    found = problems(tmp_path, INCLUDING, jobs=jobs)
    assert "jobs.yaml:1: vers: unknown field; did you mean vars?" in found
    assert f"jobs.yaml:9: {IN_POOL}.replicas: unknown field; did you mean replicaCount?" in found


def test_an_invalid_image_counts_as_declared(tmp_path: Path) -> None:
    stack = f"{LOCAL}  vertex-training:include: [images.yaml, jobs.yaml]\n"
    images = "images:\n  digits: {ury: trainer}\n"
    jobs = small_job("['${images.digits}']")
    assert problems(tmp_path, stack, jobs=jobs, **{"images.yaml": images}) == [
        "images.yaml:2: images.digits.ury: unknown field; did you mean uri?"
    ]


def test_an_unreadable_include_hides_no_other_problem(tmp_path: Path) -> None:
    stack = f"{LOCAL}  vertex-training:include: [jobs.yaml, broken.yaml]\n"
    found = problems(tmp_path, stack, jobs=small_job("[1]"), **{"broken.yaml": "images:\n  a: b: c\n"})
    assert [line.partition(": ")[0] for line in found] == ["broken.yaml:2", "jobs.yaml:1"]


def test_stack_vars_override_defaults_and_keep_their_type(tmp_path: Path) -> None:
    tuning = """\
    vars: {trials: 4}
    hyperparameterTuningJobs:
      search:
        maxTrialCount: ${vars.trials}
        parallelTrialCount: 1
        studySpec:
          metrics: [{metricId: a}]
          parameters: [{parameterId: p, integerValueSpec: {maxValue: 3}}]
        trialJobSpec: {workerPoolSpecs: [{machineSpec: {machineType: n1-standard-4}, containerSpec: {imageUri: x}}]}
    """
    (job,) = load(tmp_path, INCLUDING, jobs=tuning).jobs
    assert (job.kind, job.job.fields["maxTrialCount"]) == (HYPERPARAMETER_TUNING_JOB, 4)
    (job,) = load(tmp_path, f"{INCLUDING}  vertex-training:vars: {{trials: 9}}\n", jobs=tuning).jobs
    assert job.job.fields["maxTrialCount"] == 9


@pytest.mark.parametrize(("value", "argument"), [("5", "5"), ("0.25", "0.25"), ("true", "true"), ("relu", "relu")])
def test_a_lone_var_becomes_text_where_required(tmp_path: Path, value: str, argument: str) -> None:
    declared = f"""\
    vars: {{v: {value}}}
    customJobs:
      j:
        jobSpec:
          workerPoolSpecs:
            - machineSpec: {{machineType: n1-standard-4}}
              containerSpec: {{imageUri: x, args: [--v, "${{vars.v}}"]}}
    """
    (job,) = load(tmp_path, INCLUDING, jobs=declared).jobs
    assert job.job.fields["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["args"] == ["--v", argument]


def test_a_var_may_be_empty_or_null(tmp_path: Path) -> None:
    jobs = small_job('"${vars.flags}"') + "vars: {flags: [--fast]}\n"
    assert args_of(tmp_path, INCLUDING, jobs) == ["--fast"]
    assert args_of(tmp_path, INCLUDING, jobs.replace("[--fast]", "[]")) is None
    assert args_of(tmp_path, INCLUDING, jobs.replace("[--fast]", "null")) is None


def test_a_date_var_can_be_part_of_text(tmp_path: Path) -> None:
    jobs = small_job("['--day=${vars.day}']") + "vars: {day: 2026-01-31}\n"
    assert args_of(tmp_path, INCLUDING, jobs) == ["--day=2026-01-31"]


@pytest.mark.parametrize("value", ["${images.nothing}", "${vars.nothing}", "${secrets.nothing}", "x ${vars.day}"])
def test_a_reference_in_a_var_is_rejected(tmp_path: Path, value: str) -> None:
    jobs = small_job("['--a=${vars.a}']") + f"vars: {{day: 1, a: '{value}'}}\n"
    (problem,) = problems(tmp_path, INCLUDING, jobs=jobs)
    assert problem.startswith("jobs.yaml:2: vars.a: ")


def test_an_unused_stack_var_is_reported(tmp_path: Path) -> None:
    stack = f"{INCLUDING}  vertex-training:vars: {{epochs: 3, batch: 4}}\n"
    assert problems(tmp_path, stack, jobs=JOB) == [
        "stacks/Pulumi.dev.yaml:4: vertex-training:vars.batch: nothing uses it; known: epochs"
    ]


def test_a_var_needs_no_default(tmp_path: Path) -> None:
    stack = f"{INCLUDING}  vertex-training:vars: {{mode: fast}}\n"
    assert args_of(tmp_path, stack, small_job("['${vars.mode}']")) == ["fast"]


def test_a_secret_that_is_declared_stays_a_reference(tmp_path: Path) -> None:
    stack = f"{INCLUDING}  vertex-training:secrets: {{token: hidden}}\n"
    settings = load(tmp_path, stack, jobs=small_job("['${secrets.token}']"))
    assert settings.secrets == {"token": "hidden"}
    assert "${secrets.token}" in str(settings.jobs)
    assert "hidden" not in str(settings.jobs)


PLAIN_PLACES = {
    "displayName": ("displayName: '${secrets.token}'", "displayName"),
    "labels": ("labels: {team: '${secrets.token}'}", "labels.team"),
    "output": (
        "jobSpec: {baseOutputDirectory: {outputUriPrefix: 'gs://b/${secrets.token}'}}",
        "jobSpec.baseOutputDirectory.outputUriPrefix",
    ),
    "environment of nothing": ("jobSpec: {env: '${secrets.token}'}", "jobSpec.env"),
}


@pytest.mark.parametrize(("declared", "path"), PLAIN_PLACES.values(), ids=list(PLAIN_PLACES))
def test_a_secret_ends_in_no_plain_place(tmp_path: Path, declared: str, path: str) -> None:
    stack = f"{INCLUDING}  vertex-training:secrets: {{token: hidden}}\n"
    found = problems(tmp_path, stack, jobs=f"customJobs: {{train: {{{declared}}}}}")
    refused = [line for line in found if "${secrets.token} is not a reference that is allowed here" in line]
    assert [line.split(": ")[1] for line in refused] == [f"customJobs.train.{path}"]


def test_an_undeclared_secret_suggests_the_nearest(tmp_path: Path) -> None:
    stack = f"{INCLUDING}  vertex-training:secrets: {{hfToken: hidden}}\n"
    (problem,) = problems(tmp_path, stack, jobs=small_job("['${secrets.hftoken}']"))
    assert problem.endswith("args[0]: ${secrets.hftoken} is not declared; did you mean hfToken?")


def test_an_escaped_reference_is_no_reference(tmp_path: Path) -> None:
    assert args_of(tmp_path, INCLUDING, small_job("['$${vars.x} $(HOME)']")) == ["$${vars.x} $(HOME)"]


def test_the_stack_file_can_declare_jobs_and_images(tmp_path: Path) -> None:
    stack = f"""{LOCAL}\
  vertex-training:images:
    digits: {{uri: "trainer:1"}}
  vertex-training:customJobs:
    digits:
      jobSpec:
        workerPoolSpecs:
          - machineSpec: {{machineType: n1-standard-4}}
            containerSpec:
              imageUri: ${{images.digits}}
              arg: [x]
"""
    field = "vertex-training:customJobs.digits.jobSpec.workerPoolSpecs[0].containerSpec.arg"
    assert problems(tmp_path, stack) == [f"stacks/Pulumi.dev.yaml:12: {field}: unknown field; did you mean args?"]
    settings = load(tmp_path, stack.replace("arg:", "args:"))
    assert [job.name for job in settings.jobs] == ["digits"]
    assert settings.images == {"digits": {"uri": "trainer:1"}}


def test_a_duplicate_in_the_stack_names_both_places(tmp_path: Path) -> None:
    stack = f"{INCLUDING}  vertex-training:images:\n    digits: {{uri: x}}\n"
    assert problems(tmp_path, stack, jobs=JOB) == [
        'jobs.yaml:3: images.digits: "digits" is declared already, at stacks/Pulumi.dev.yaml:5'
    ]


@pytest.mark.parametrize("key", ["displayName", "display_name"])
def test_the_display_name_defaults_to_the_name(tmp_path: Path, key: str) -> None:
    jobs = JOB.replace("    lifecycle", f"    {key}: Digits by hand\n    lifecycle")
    (job,) = load(tmp_path, INCLUDING, jobs=jobs).jobs
    assert job.job.fields["displayName"] == "Digits by hand"


IMAGE = "images:\n  digits:\n    context: trainer\n"


@pytest.mark.parametrize(
    ("jobs", "problem"),
    [
        (
            IMAGE.replace("trainer", "nowhere"),
            'jobs.yaml:3: images.digits.context: "nowhere" is not a folder in {root}/',
        ),
        (
            IMAGE.replace("trainer", "/srv/trainer"),
            'jobs.yaml:3: images.digits.context: "/srv/trainer" must be relative to the project\'s folder',
        ),
        (
            IMAGE + "    uri: trainer:1\n",
            f"jobs.yaml:2: images.digits: {EITHER}",
        ),
        (
            "images:\n  digits:\n    uri: trainer:1\n    target: slim\n",
            "jobs.yaml:4: images.digits.target: says how to build an image, but uri names one that is built elsewhere",
        ),
        (
            IMAGE + "    dockerfile: Dockerfile.gpu\n",
            "jobs.yaml:4: images.digits.dockerfile: there is no trainer/Dockerfile.gpu; write one, or name another "
            "with dockerfile",
        ),
        (
            IMAGE + "    dockerfile: Dockerfile.wrong\n",
            "jobs.yaml:4: images.digits.dockerfile: trainer/Dockerfile.wrong:1: FORM is no instruction; did you mean "
            "FROM?",
        ),
        (
            IMAGE.replace("trainer", "empty"),
            "jobs.yaml:2: images.digits.dockerfile: there is no empty/Dockerfile; write one, or name another with "
            "dockerfile",
        ),
        (
            IMAGE + "    buildArgs: {WITH_GPU: 1}\n",
            'jobs.yaml:4: images.digits.buildArgs.WITH_GPU: 1 is not a string; write "1" in quotes',
        ),
    ],
)
def test_an_unbuildable_image_is_rejected_before_any_build(tmp_path: Path, jobs: str, problem: str) -> None:
    files = {"trainer/Dockerfile": "FROM scratch", "trainer/Dockerfile.wrong": "FORM a", "empty/notes.md": ""}
    assert problems(tmp_path, INCLUDING, jobs=jobs, **files) == [problem.replace("{root}", tmp_path.name)]


@pytest.mark.parametrize("dockerfile", ["../Dockerfile", "{root}/Dockerfile"])
def test_a_dockerfile_outside_of_its_context_is_refused(tmp_path: Path, dockerfile: str) -> None:
    files = {"trainer/x": "", "Dockerfile": "FROM scratch"}
    jobs = IMAGE + f"    dockerfile: {dockerfile.replace('{root}', str(tmp_path))}\n"
    (problem,) = problems(tmp_path, INCLUDING, jobs=jobs, **files)
    assert problem.startswith("jobs.yaml:4: images.digits.dockerfile: ")


def test_vars_of_an_image_are_filled_in(tmp_path: Path) -> None:
    jobs = (
        IMAGE.replace("trainer", "${vars.folder}/gpu") + "    buildArgs: {A: 'x-${vars.n}'}\nvars: {folder: t, n: 2}\n"
    )
    settings = load(tmp_path, INCLUDING, jobs=jobs, **{"t/gpu/Dockerfile": "FROM scratch"})
    assert settings.images == {"digits": {"context": "t/gpu", "buildArgs": {"A": "x-2"}}}


@pytest.mark.parametrize("field", ["context: '${vars.n}'", "buildArgs: {A: '${vars.n}'}", "target: '${vars.n}'"])
def test_a_wrongly_typed_image_var_is_reported(tmp_path: Path, field: str) -> None:
    jobs = f"images:\n  digits:\n    {field}\n" + ("" if "context" in field else "    context: t\n") + "vars: {n: 2}\n"
    (problem,) = problems(tmp_path, INCLUDING, jobs=jobs, **{"t/Dockerfile": "FROM scratch"})
    assert problem.startswith("jobs.yaml:3: images.digits.")
    assert "2 is not a string" in problem


def test_an_escaped_reference_in_an_image_is_unescaped(tmp_path: Path) -> None:
    jobs = IMAGE + "    buildArgs: {A: '$${HOME}'}\n"
    settings = load(tmp_path, INCLUDING, jobs=jobs, **{"trainer/Dockerfile": "FROM scratch"})
    assert settings.images["digits"]["buildArgs"] == {"A": "${HOME}"}


def test_shell_braces_and_escaped_ones_are_text(tmp_path: Path) -> None:
    assert args_of(tmp_path, INCLUDING, small_job("['${HOME', '$${vars.a']")) == ["${HOME", "$${vars.a"]


POOL = "machineSpec: {machineType: n1-standard-4}, containerSpec: {imageUri: example.com/a}"
TEMPLATE = "lifecycle: {run: scheduled}"


def job(args: str = "[]", *more: str) -> str:
    """A custom job in YAML's flow style."""
    pool = POOL.replace("}, containerSpec: {", f"}}, containerSpec: {{args: {args}, ")
    return "{" + ", ".join([f"jobSpec: {{workerPoolSpecs: [{{{pool}}}]}}", *more]) + "}"


NIGHTLY = f"""
customJobs:
  digits: {job("[]", TEMPLATE)}
schedules:
  nightly: {{cron: "0 2 * * *", job: digits}}
"""


def test_a_schedule_has_its_defaults(tmp_path: Path) -> None:
    settings = load(tmp_path, INCLUDING, jobs=NIGHTLY)
    assert settings.schedules == (
        Timetable("nightly", "0 2 * * *", ("digits",), time_zone="UTC", paused=False, overlap="skip"),
    )
    assert settings.jobs == ()
    assert [job.name for job in settings.scheduled.values()] == ["digits"]


def test_vars_fill_in_a_schedule(tmp_path: Path) -> None:
    stack = INCLUDING + "  vertex-training:vars: {cron: 0 3 * * MON, isPaused: true}\n"
    text = "vars: {cron: 0 2 * * *, isPaused: false}\n" + NIGHTLY.replace(
        '"0 2 * * *"', '"${vars.cron}", timeZone: Europe/Berlin, overlap: allow, paused: "${vars.isPaused}"'
    )
    (schedule,) = load(tmp_path, stack, jobs=text).schedules
    assert schedule == Timetable("nightly", "0 3 * * MON", ("digits",), "Europe/Berlin", True, "allow")


def test_a_stack_file_may_declare_schedules(tmp_path: Path) -> None:
    stack = INCLUDING + '  vertex-training:schedules: {nightly: {cron: "0 2 * * *", job: digits}}\n'
    settings = load(tmp_path, stack, jobs=NIGHTLY.partition("schedules:")[0])
    assert [schedule.name for schedule in settings.schedules] == ["nightly"]


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        ("{job: digits}", "jobs.yaml:5: schedules.nightly.cron: is required"),
        (
            "{cron: 0 25 * * *, job: digits}",
            'schedules.nightly.cron: "0 25 * * *": the hour is "25", and must be 0 to 23',
        ),
        ("{cron: 0 2 30 2 *, job: digits}", 'schedules.nightly.cron: "0 2 30 2 *": no month 2 has a day 30'),
        (
            "{cron: 0 2 * * *, timeZone: Berlin, job: digits}",
            '"Berlin" is not a time zone; did you mean Europe/Berlin?',
        ),
        ("{cron: 0 2 * * *, overlap: wait, job: digits}", "schedules.nightly.overlap: "),
        ("{cron: 0 2 * * *, pause: true, job: digits}", "schedules.nightly.pause: unknown field; did you mean paused?"),
        ("{cron: 0 2 * * *, job: digit}", 'schedules.nightly.job: "digit" is not a declared job; did you mean digits?'),
        ("{cron: 0 2 * * *, job: digits, jobs: [digits]}", "schedules.nightly.jobs: is given beside job"),
        ("{cron: 0 2 * * *, jobs: [digits, digits]}", 'schedules.nightly.jobs[1]: "digits" is in the list already'),
        ("nightly", "schedules.nightly: must be an object with named fields"),
    ],
)
def test_a_schedule_that_cannot_be_is_refused(schedule: str, message: str, tmp_path: Path) -> None:
    jobs = f"customJobs:\n  digits: {job('[]', TEMPLATE)}\nschedules:\n\n"
    text = f"{jobs}  nightly: {schedule}\n  other: {{cron: 0 2 * * *, job: digits}}\n"
    found = problems(tmp_path, INCLUDING, jobs=text)
    assert any(message in line for line in found), found
    assert all("jobs.yaml:5: schedules.nightly" in line for line in found)


def test_a_schedule_needs_a_job(tmp_path: Path) -> None:
    assert problems(tmp_path, INCLUDING, jobs='schedules:\n  nightly: {cron: "0 2 * * *", jobs: []}\n') == [
        "jobs.yaml:2: schedules.nightly: needs a job: write job: NAME, "
        "or jobs: [NAME, …] for several, one after another"
    ]


def test_all_problems_are_reported_at_once(tmp_path: Path) -> None:
    text = f"""\
        customJobs:
          digits: {job()}
          unnamed: {job("[]", TEMPLATE)}
        schedules:
          every night: {{cron: "0 2 * * *", job: digits}}
          nightly: {{cron: "61 2 * * *", timeZone: Mars, job: digits}}
          weekly: {{cron: "0 2 * * 0", jobs: [digits, unknown]}}
        """
    assert problems(tmp_path, INCLUDING, jobs=text) == [
        "jobs.yaml:3: customJobs.unnamed.lifecycle.run: no schedule names this job; add it to one under schedules",
        'jobs.yaml:5: schedules.every night: "every night" must be '
        'lower-case letters, digits, "-", "_" and ".", at most 63',
        'jobs.yaml:6: schedules.nightly.cron: "61 2 * * *": the minute is "61", and must be 0 to 59',
        'jobs.yaml:6: schedules.nightly.timeZone: "Mars" is not a time zone; '
        "write a name of the tz database, such as Europe/Berlin or UTC",
        'jobs.yaml:6: schedules.nightly.job: "digits" is a job that `pulumi up` submits; '
        "give it lifecycle: {run: scheduled}",
        'jobs.yaml:7: schedules.weekly.jobs[0]: "digits" is a job that `pulumi up` submits; '
        "give it lifecycle: {run: scheduled}",
        'jobs.yaml:7: schedules.weekly.jobs[1]: "unknown" is not a declared job; known: digits, unnamed',
    ]


def test_a_name_is_declared_once(tmp_path: Path) -> None:
    stack = INCLUDING + '  vertex-training:schedules: {nightly: {cron: "0 2 * * *", job: digits}}\n'
    (problem,) = problems(tmp_path, stack, jobs=NIGHTLY)
    assert 'schedules.nightly: "nightly" is declared already, at stacks/Pulumi.dev.yaml:4' in problem


def test_templates_refuse_what_up_does(tmp_path: Path) -> None:
    others = "wait: true, deadline: 60s, after: [other], onDelete: keep, rerun: 1, adopt: 1"
    lifecycle = TEMPLATE.replace("}", f", {others}}}")
    text = NIGHTLY.replace(TEMPLATE, lifecycle).replace("schedules:", f"  other: {job()}\nschedules:")
    found = problems(tmp_path, INCLUDING, jobs=text)
    places = [line.partition(": is not for a job with lifecycle.run: scheduled: ")[0] for line in found]
    keys = ("wait", "deadline", "after", "onDelete", "rerun", "adopt")
    assert places == [f"jobs.yaml:3: customJobs.digits.lifecycle.{key}" for key in keys]


def test_a_rerun_holds_a_literal_reference(tmp_path: Path) -> None:
    own = TEMPLATE.replace("run: scheduled", 'rerun: "$${x} of ${vars.day}"')
    text = f"vars: {{day: monday}}\n{NIGHTLY.partition('schedules:')[0].replace(TEMPLATE, own)}"
    (training,) = load(tmp_path, INCLUDING, jobs=text).jobs
    assert training.lifecycle == {"rerun": "${x} of monday"}


def test_a_misspelt_run_is_reported_once(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, INCLUDING, jobs=NIGHTLY.replace("run: scheduled", "run: nightly"))
    assert "customJobs.digits.lifecycle.run: " in problem


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            '["$${HOME}"]',
            'a literal "${" is not for a job with lifecycle.run: scheduled: Cloud Workflows would evaluate it',
        ),
        ('["$${run.id}"]', 'a literal "${" is not for a job'),
        ('["a ${HOME"]', 'a literal "${" is not for a job'),
        ('["${run.id}"]', "${run.id} is not a reference that is allowed here"),
        ('["${secrets.token}"]', "${secrets.token} is not for a job with lifecycle.run: scheduled: it would stand in"),
    ],
)
@pytest.mark.parametrize("stack", [INCLUDING, CLOUD_INCLUDING])
def test_texts_that_workflows_would_evaluate_are_refused(stack: str, args: str, message: str, tmp_path: Path) -> None:
    secrets = "  vertex-training:secrets: {token: hidden}\n"
    (problem,) = problems(tmp_path, stack + secrets, jobs=NIGHTLY.replace("args: []", f"args: {args}"))
    assert problem.startswith("jobs.yaml:3: customJobs.digits.jobSpec.workerPoolSpecs[0].containerSpec.args[0]: ")
    assert message in problem


def test_a_long_name_leaves_room_for_the_run(tmp_path: Path) -> None:
    name = f"displayName: {'d' * 100}, {TEMPLATE}"
    (problem,) = problems(tmp_path, INCLUDING, jobs=NIGHTLY.replace(TEMPLATE, name))
    assert problem.endswith("displayName: has 100 characters; at most 99 leave room for the id of a run")
    load(tmp_path, INCLUDING, jobs=NIGHTLY.replace(TEMPLATE, name.replace("dd", "d", 1)))


def test_labels_of_schedules_are_reserved(tmp_path: Path) -> None:
    labels = f"labels: {{pulumi_schedule: x}}, {TEMPLATE}"
    (problem,) = problems(tmp_path, INCLUDING, jobs=NIGHTLY.replace(TEMPLATE, labels))
    assert "labels.pulumi_schedule: is a label that a schedule gives its jobs itself" in problem


def two_jobs(schedules: str, first: str = TEMPLATE) -> str:
    """A job that uses the name of another one, `first.one`."""
    return f"""
customJobs:
  first.one: {job("[]", first)}
  second: {job('["--from=${jobs.first.one.name}"]', TEMPLATE)}
schedules:
  {schedules}
"""


def test_later_jobs_use_results_of_earlier_ones(tmp_path: Path) -> None:
    both = two_jobs('nightly: {cron: "0 2 * * *", jobs: [first.one, second]}')
    (schedule,) = load(tmp_path, INCLUDING, jobs=both).schedules
    assert schedule.jobs == ("first.one", "second")


@pytest.mark.parametrize(
    ("schedules", "message"),
    [
        (
            'nightly: {cron: "0 2 * * *", jobs: [second, first.one]}',
            "schedule nightly has not run first.one before second; write jobs: [first.one, second]",
        ),
        (
            'nightly: {cron: "0 2 * * *", job: second}\n  other: {cron: "0 3 * * *", job: first.one}',
            "schedule nightly has not run first.one before second; write jobs: [first.one, second]",
        ),
    ],
)
def test_results_of_other_runs_are_refused(schedules: str, message: str, tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, INCLUDING, jobs=two_jobs(schedules))
    path = "jobSpec.workerPoolSpecs[0].containerSpec.args[0]: ${jobs.first.one.name}: "
    assert problem == f"jobs.yaml:4: customJobs.second.{path}{message}"


def test_results_between_up_and_schedules_are_refused(tmp_path: Path) -> None:
    of_up = two_jobs('nightly: {cron: "0 2 * * *", job: second}', first="lifecycle: {}")
    (problem,) = problems(tmp_path, INCLUDING, jobs=of_up)
    assert "schedule nightly has not run first.one before second" in problem
    text = two_jobs('nightly: {cron: "0 2 * * *", job: first.one}').replace(
        f", {TEMPLATE}}}\nschedules", ", lifecycle: {after: [first.one]}}\nschedules"
    )
    assert [line.partition("customJobs.second.")[2] for line in problems(tmp_path, INCLUDING, jobs=text)] == [
        "jobSpec.workerPoolSpecs[0].containerSpec.args[0]: ${jobs.first.one.name}: "
        "first.one runs by a schedule only, so `pulumi up` does not know its results",
        'lifecycle.after[0]: "first.one" runs by a schedule only',
    ]
