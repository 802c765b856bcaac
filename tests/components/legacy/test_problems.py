"""What is wrong with a legacy job is said in one line each, all at once, and nothing is written."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from vertex_training.cli import main

from tests.blocks import taken
from tests.components.schema.test_source import COLON
from vertex_api.errors import MAX_PROBLEMS, MORE_PROBLEMS

CUSTOM = "scaleTier: CUSTOM\nmasterType: n1-standard-4\n"
IMAGE = "masterConfig: {imageUri: x}\n"
UNITS = "{parameterName: a, type: INTEGER, maxValue: 3}"


def problems(folder: Path, text: str | bytes, capsys: pytest.CaptureFixture[str]) -> list[str]:
    file = folder / "job.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert main(["convert-legacy", str(file)]) == 1
    written = capsys.readouterr()
    assert written.out == ""
    return [line.removeprefix(f"{folder}/") for line in written.err.splitlines()]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "trainingInput:\n  masterTyp: standard\n",
            "job.yaml:2: trainingInput.masterTyp: unknown field; did you mean masterType?",
        ),
        ("trainingInputs: {}\n", "job.yaml:1: trainingInputs: unknown field; did you mean trainingInput?"),
        ("master_typ: standard\nregion: x\n", "job.yaml:1: master_typ: unknown field; did you mean masterType?"),
        (
            f"{CUSTOM}masterConfig: {{imageURL: x}}\n",
            "job.yaml:3: masterConfig.imageURL: unknown field; did you mean imageUri?",
        ),
        (
            "scaleTier: BASIC_GPUS\n",
            'job.yaml:1: scaleTier: "BASIC_GPUS" is not one of BASIC, STANDARD_1, PREMIUM_1, BASIC_GPU, BASIC_TPU '
            "or CUSTOM",
        ),
        ("runtimeVersion: 2.1\n", 'job.yaml:1: runtimeVersion: 2.1 is not a string; write "2.1" in quotes'),
        ("scaleTier: CUSTOM\n", "job.yaml: masterType: is required with scaleTier CUSTOM"),
        ("scaleTier: BASIC\nworkerCount: 2\n", "job.yaml:2: workerCount: is for scaleTier CUSTOM only, not for BASIC"),
        (f"{CUSTOM}workerCount: 2\n", "job.yaml: workerType: is required with workerCount"),
        (f"{CUSTOM}workerType: standard\nworkerCount: -1\n", "job.yaml:4: workerCount: -1 must not be negative"),
        (
            f"{CUSTOM}args: [a]\nmasterConfig: {{imageUri: x, containerArgs: [b]}}\n",
            "job.yaml:4: masterConfig.containerArgs: and args exclude one another; keep one of them",
        ),
        (
            f"{CUSTOM}masterConfig: {{containerCommand: [b]}}\n",
            "job.yaml:3: masterConfig.containerCommand: needs an image: set masterConfig.imageUri",
        ),
        (
            "scaleTier: CUSTOM\nmasterType: standard\nmasterConfig: {acceleratorConfig: {type: NVIDIA_TESLA_T4}}\n",
            "job.yaml:3: masterConfig.acceleratorConfig: goes with a machine type of Compute Engine: name one as "
            "masterType",
        ),
        (
            f"{CUSTOM}masterConfig: {{acceleratorConfig: {{count: 1}}}}\n",
            "job.yaml:3: masterConfig.acceleratorConfig.type: is required",
        ),
        (
            "hyperparameters: {params: [{parameterName: a, type: INTEGER, minValue: 1.5, maxValue: 3}]}\n",
            "job.yaml:1: hyperparameters.params[0].minValue: 1.5 is not a whole number, and type is INTEGER",
        ),
        (
            "hyperparameters: {params: [{parameterName: a, type: DISCRETE}]}\n",
            "job.yaml:1: hyperparameters.params[0].discreteValues: is required with type DISCRETE",
        ),
        (
            "hyperparameters: {params: [{parameterName: a, type: CATEGORICAL, minValue: 1}]}\n",
            "job.yaml:1: hyperparameters.params[0].categoricalValues: is required with type CATEGORICAL",
        ),
        (
            "hyperparameters: {params: [{parameterName: a}]}\n",
            "job.yaml:1: hyperparameters.params[0].type: is required",
        ),
        (
            "predictionInput: {}\njobId: x\n",
            "job.yaml:1: predictionInput: is a prediction job's; only training jobs can be converted",
        ),
        ("jobId: x\nlabels: {a: b}\n", "job.yaml: trainingInput: is required"),
        ("- a\n", "job.yaml: must be an object with named fields"),
        ("", "job.yaml: trainingInput: is required"),
        ("region: a\nregion: b\n", 'job.yaml:2: "region" is there twice, lines 1 and 2'),
        (f"{IMAGE}region: no\n", 'job.yaml:2: region: no is read as false; write "no" in quotes'),
        (
            "a: b: c\n",
            f"job.yaml:1: {COLON}",
        ),
        (
            f"{IMAGE}network: my-vpc\n",
            'job.yaml:2: network: Vertex AI would refuse it: "my-vpc" must have the form '
            "projects/{number}/global/networks/{network}",
        ),
        (
            f"trainingInput:\n  {IMAGE}  serviceAccount: trainer\n",
            'job.yaml:3: trainingInput.serviceAccount: Vertex AI would refuse it: "trainer" must have the form '
            "{account}@{project}.iam.gserviceaccount.com",
        ),
        (
            f"{IMAGE}hyperparameters: {{hyperparameterMetricTag: a b, params: [{UNITS}]}}\n",
            'job.yaml:2: hyperparameters.hyperparameterMetricTag: Vertex AI would refuse it: "a b" must not contain '
            "white space",
        ),
        (
            f"{IMAGE}job_dir: /tmp/out\n",
            'job.yaml:2: jobDir: Vertex AI would refuse it: "/tmp/out" must have the form gs://{bucket}/{object}',
        ),
        (
            f"{IMAGE}encryptionConfig:\n  kmsKeyName: k\n",
            'job.yaml:3: encryptionConfig.kmsKeyName: Vertex AI would refuse it: "k" must have the form '
            "projects/{project}/locations/{region}/keyRings/{key_ring}/cryptoKeys/{crypto_key}",
        ),
        (
            f"{IMAGE}hyperparameters:\n  params:\n    - {UNITS}\n    - {UNITS}\n",
            'job.yaml:5: hyperparameters.params[1].parameterName: Vertex AI would refuse it: "a" is there twice; only '
            "children with disjoint conditions may share an id",
        ),
        (
            f"{IMAGE}hyperparameters:\n  params:\n    - {UNITS.replace('maxV', 'minV')}\n",
            "job.yaml:4: hyperparameters.params[0]: Vertex AI would refuse it: minValue 3 is greater than maxValue 0",
        ),
        (
            f"{CUSTOM}masterConfig:\n  acceleratorConfig:\n    count: 3\n    type: NVIDIA_TESLA_T4\n",
            'job.yaml:5: masterConfig.acceleratorConfig.count: Vertex AI would refuse it: The accelerator count "3" is '
            'not allowed. The allowed numbers of accelerator "NVIDIA_TESLA_T4" to use with machine type '
            '"n1-standard-4" are: [1, 2, 4].',
        ),
        (
            f"{CUSTOM}workerType: standard\nworkerCount: 1\nworkerConfig:\n  diskConfig: {{bootDiskSizeGb: 5}}\n",
            "job.yaml:6: workerConfig.diskConfig.bootDiskSizeGb: Vertex AI would refuse it: 5 is not within 100 to "
            "64000",
        ),
        (
            "jobId: x\nlabels: {Team: a}\ntrainingInput: {}\n",
            'job.yaml:2: labels: Vertex AI would refuse it: the key "Team" may hold lower-case letters, digits, '
            "underscores and dashes only",
        ),
        (
            "scaleTier: BASIC_TPU\nhyperparameters: {params: [{parameterName: a, type: INTEGER, maxValue: 3}]}\n",
            "job.yaml:1: scaleTier: Vertex AI would refuse it: cloud-tpu has TPUs, which hyperparameter tuning does "
            "not take",
        ),
    ],
)
def test_a_problem_names_line_field_and_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, problem: str
) -> None:
    assert problems(tmp_path, text, capsys) == [problem]


def test_all_slips_are_reported_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "labls: {}\ntrainingInput:\n  regin: x\n  scaleTier: HUGE\n  masterConfig: {image: x}\n"
    found = problems(tmp_path, text, capsys)
    assert sorted(line.split(": ")[1] for line in found) == [
        "labls",
        "trainingInput.masterConfig.image",
        "trainingInput.regin",
        "trainingInput.scaleTier",
    ]


def test_conversion_stops_at_a_hundred_problems(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = problems(tmp_path, CUSTOM + "".join(f"key{i}: 1\n" for i in range(1000)), capsys)
    assert len(lines) == MAX_PROBLEMS + 1
    assert lines[-1] == MORE_PROBLEMS


def test_problems_of_all_parts_are_reported_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    params = f"    - {UNITS.replace('}', ', minValue: 1.5}')}\n    - {{parameterName: b, type: DISCRETE}}\n"
    text = f"masterTyp: standard\nworkerCount: 1\nhyperparameters:\n  goals: MAXIMIZE\n  params:\n{params}"
    found = problems(tmp_path, text, capsys)
    assert [line.split(": ")[1] for line in found] == [
        "hyperparameters.goals",
        "masterTyp",
        "hyperparameters.params[0].minValue",
        "hyperparameters.params[1].discreteValues",
    ]


@pytest.mark.parametrize(
    "content", [b"\x80\x81", b"a: \x01\n", b"a: *nowhere\n", b"? [a]\n: 1\n", b"1: 2\n", b"&a [*a]\n"]
)
def test_a_file_without_a_job_is_one_problem(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    (line,) = problems(tmp_path, content, capsys)
    assert line.startswith("job.yaml")


def test_a_missing_file_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert-legacy", str(tmp_path / "none.yaml")]) == 1
    assert capsys.readouterr().err == f"{tmp_path}/none.yaml: cannot be read: No such file or directory\n"


@pytest.mark.parametrize(("arguments", "code"), [(["--help"], 0), ([], 2), (["--nonsense"], 2)])
def test_usage_has_its_exit_code(arguments: list[str], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exited:
        main(["convert-legacy", *arguments])
    assert exited.value.code == code
    if code == 0:
        assert "vertex-training convert-legacy job.yaml > training/census.yaml" in capsys.readouterr().out


def test_the_command_accepts_a_closed_pipe() -> None:
    file = Path(__file__).parent / "corpus" / "premium.yaml"
    command = [sys.executable, "-m", "vertex_training.cli", "convert-legacy", str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout and process.stderr
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0


def test_the_page_shows_the_printed_problems(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for page, job in {
        "job.yaml:3": "jobId: census\ntrainingInput:\n  masterTyp: standard\n",
        "job.yaml:4": "jobId: census\ntrainingInput:\n  runtimeVersion: '2.1'\n  jobDir: /tmp/out\n",
    }.items():
        shown = taken("docs/legacy.md", "output", "job.yaml:")
        assert [f"{line}\n" for line in problems(tmp_path, job, capsys)] == [
            each for each in shown if each.startswith(page)
        ]


def test_the_command_of_the_page_writes_a_declaration(tmp_path: Path) -> None:
    (tmp_path / "training").mkdir()
    (tmp_path / "job.yaml").write_text(f"jobId: census\ntrainingInput: {{scaleTier: BASIC, {IMAGE.strip()}}}\n")
    (command,) = taken("docs/legacy.md", "sh")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    subprocess.run(["sh", "-euc", command], cwd=tmp_path, env={**os.environ, "PATH": path}, check=True)
    assert yaml.safe_load((tmp_path / "training" / "census.yaml").read_text())["customJobs"].keys() == {"census"}


CANARY = "canaryLegacyQ7e8xT4wZ"
OTHERS = {
    "credentials": f'{{"client_secret": "{CANARY}", "refresh_token": "{CANARY}", "type": "authorized_user"}}',
    "an ini file": f"[default]\nkey={CANARY}\n",
    "a netrc": f"machine a.test\n login: [{CANARY}\n",
    "an environment": f"HF_TOKEN={CANARY}\0HOME=/root\0",
    "a private key": f"-----BEGIN PRIVATE KEY-----\n{CANARY}: {CANARY}: x\n",
}


@pytest.mark.parametrize("name", OTHERS)
def test_no_content_of_another_file_is_shown(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (file := tmp_path / "job.yaml").write_text(OTHERS[name])
    assert main(["convert-legacy", str(file)]) == 1
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err.startswith(str(file))
    assert CANARY not in shown.err


def test_a_converted_job_has_nothing_of_who_converts_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for variable in ("HF_TOKEN", "GOOGLE_OAUTH_ACCESS_TOKEN", "PULUMI_CONFIG_PASSPHRASE"):
        monkeypatch.setenv(variable, CANARY)
    (tmp_path / "Pulumi.yaml").write_text("name: a\n")
    (tmp_path / "Pulumi.dev.yaml").write_text(f"config: {{vertex-training:secrets: {{token: {CANARY}}}}}\n")
    monkeypatch.chdir(tmp_path)
    texts = ["${HF_TOKEN}", "$HF_TOKEN", "${secrets.token}", "{{HF_TOKEN}}", "@Pulumi.dev.yaml", "%(HF_TOKEN)s"]
    training_input = {"args": texts, "scaleTier": "BASIC", "region": "us-central1", "masterConfig": {"imageUri": "i:1"}}
    Path("job.json").write_text(json.dumps({"jobId": "a", "trainingInput": training_input}))
    assert main(["convert-legacy", "job.json"]) == 0
    shown = capsys.readouterr()
    assert "$${HF_TOKEN}" in shown.out and "$${secrets.token}" in shown.out
    assert CANARY not in shown.out + shown.err
