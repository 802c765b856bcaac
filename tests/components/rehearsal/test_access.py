"""What jobs need of IAM, beside what the stack of a run grants: lines, keys of YAML, and refusals at home."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from vertex_training.cli import main
from vertex_training.rehearsal import report
from vertex_training.rehearsal.access import Access, Needs
from vertex_training.rehearsal_file import JobReport, Rehearsal
from vertex_training.settings.offline import read_stack

from tests.blocks import taken
from tests.vertex_emulator.running import IMAGE
from vertex_api.job import Job
from vertex_api.names import CUSTOM_JOB

from .declared import Write, job

ASK = """
import json, os, urllib.error, urllib.request
def ask(path, data=None):
    request = urllib.request.Request(os.environ["STORAGE_EMULATOR_HOST"] + path, data)
    request.add_header("Content-Type", "text/plain")
    try:
        return urllib.request.urlopen(request).status
    except urllib.error.HTTPError as error:
        print(error.code, json.load(error)["error"]["message"])
        return error.code
bucket, _, folder = os.environ["AIP_MODEL_DIR"].removeprefix("gs://").partition("/")
upload = f"/upload/storage/v1/b/{bucket}/o?uploadType=media&name="
assert ask(f"{upload}{folder}a", b"1") == 200
codes = [ask("/storage/v1/b/raw/o"), ask(f"{upload}checkpoints/a", b"1")]
codes += [ask(f"/v1/projects/{os.environ['CLOUD_ML_PROJECT_ID']}/secrets/hf-token/versions/latest:access")]
raise SystemExit(max(codes) - 200)
"""
TRAINER = "one-off-dev@acme-dev.iam.gserviceaccount.com"


def stack(keys: Mapping[str, Any]) -> None:
    """Add keys to stack dev."""
    file = Path("stacks/Pulumi.dev.yaml")
    content = yaml.safe_load(file.read_text())
    content["config"] |= keys
    file.write_text(yaml.safe_dump(content))


def test_a_run_tells_what_a_stack_does_not_grant(
    project: Write, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (documented,) = taken("docs/google.md", "output", "train: uses:")
    (refused,) = taken("docs/google.md", "output", "403 ")
    documented, refused = (each.replace("team", "one-off") for each in (documented, refused))
    project("  train: " + job(ASK, "gs://raw/x"))
    (tmp_path / "token").write_text("t")
    command = ["run", "train", "--stack", "dev", "--no-inputs", f"--secret=hf-token=@{tmp_path / 'token'}"]

    assert main(command) == 0
    assert capfd.readouterr().out.endswith(f"\n{documented}")

    assert main([*command, "--enforce"]) == 203
    said = capfd.readouterr()
    assert refused in said.out and said.err.endswith(f"\n{documented}")
    assert "Permission 'secretmanager.versions.access' denied for resource 'projects/" in said.out

    for line in documented.splitlines()[2:]:
        stack(yaml.safe_load(line.removeprefix("train:")))
    assert main([*command, "--enforce"]) == 0
    assert capfd.readouterr().out.splitlines()[-1] == documented.splitlines()[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "--enforce: stack local has target local, which grants nothing; give --stack with one of target gcp"),
        (["--stack", "local"], "--enforce: stack local has target local, which grants nothing; give --stack with one"),
        (["--stack", "gone"], 'there is no stack file of "gone"'),
        (["--stack", "typo"], "--enforce: stack typo: target gpc is not known; did you mean gcp?"),
        (["--stack", "unset"], "--enforce: what stack unset grants is not known: stacks/Pulumi.unset.yaml"),
    ],
)
@pytest.mark.parametrize("command", [["run", "train"], ["rehearse"]])
def test_what_cannot_be_enforced_is_one_line(
    project: Write,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: Sequence[str],
    options: Sequence[str],
    message: str,
) -> None:
    def start() -> None:
        raise AssertionError("an emulator is started")

    project("  train: " + job("pass"))
    if "unset" in options:
        text = Path("stacks/Pulumi.dev.yaml").read_text().replace("acme-dev", "A")
        Path("stacks/Pulumi.unset.yaml").write_text(text)
    typo = Path("stacks/Pulumi.dev.yaml").read_text().replace("target: gcp", "target: gpc")
    Path("stacks/Pulumi.typo.yaml").write_text(typo)
    for name in ("run", "rehearse"):
        monkeypatch.setattr(f"vertex_training.rehearsal.{name}.throw_away", start)
    assert main([*command, *options, "--enforce"]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.startswith(f"vertex-training: {message}") and said.err.count("\n") == 1


def spec(**fields: Any) -> Job:
    outputs = {"baseOutputDirectory": {"outputUriPrefix": "gs://home/train"}}
    pool = {"machineSpec": {"machineType": "e2-standard-4"}, "containerSpec": {"imageUri": IMAGE}}
    return Job(CUSTOM_JOB, {"jobSpec": {"workerPoolSpecs": [pool], **outputs, **fields}})


TOLD = [
    {"permission": "storage.objects.create", "resource": "gs://home", "lacking": "gs://home/shared/"},
    {"permission": "storage.objects.create", "resource": "gs://home"},
    {"permission": "logging.logEntries.create", "resource": "project"},
]


def test_the_bucket_at_home_stands_for_the_stack_s(project: Write) -> None:
    project("  train: " + job("pass"))
    needs = Access.of(read_stack(Path.cwd(), "dev")).needs(TOLD, spec(), "home")
    assert needs == Needs(
        ("storage.objects.create on gs://acme-dev-one-off-dev", "logging.logEntries.create on the project"),
        ("storage.objects.create on gs://acme-dev-one-off-dev/shared/",),
        ("vertex-training:bucket: {writableFolders: [shared/]}",),
        "dev",
    )
    local = Access.of(read_stack(Path.cwd(), "local")).needs(TOLD[1:], spec(), "home")
    assert local.lines == ["uses: storage.objects.create on gs://home, logging.logEntries.create on the project"]


def test_another_account_s_grants_are_not_known(project: Write) -> None:
    project("  train: " + job("pass"))
    access = Access.of(read_stack(Path.cwd(), "dev"))
    note = (
        "what is granted to t@x.iam.gserviceaccount.com, the job's own account, is not compared: stack dev grants "
        "nothing to it; --as account shows what Google lets it do"
    )
    assert access.needs(TOLD, spec(serviceAccount="t@x.iam.gserviceaccount.com"), "home").lines[1:] == [note]
    assert access.needs(TOLD, spec(serviceAccount=TRAINER), "home").lacking


def test_a_stack_that_cannot_be_read_is_said(project: Write) -> None:
    project("  train: " + job("pass"))
    stack({"vertex-training:region": "nowhere"})
    (note,) = Access.of(read_stack(Path.cwd(), "dev")).needs(TOLD, spec(), "home").lines[1:]
    assert note.startswith("what stack dev grants is not known: stacks/Pulumi.dev.yaml")


def test_many_permissions_are_one_line() -> None:
    (line,) = Needs(tuple(f"a.b.c on gs://{number}" for number in range(30))).lines
    assert line.endswith("a.b.c on gs://19 and 10 more")
    assert Needs(note="not known").lines == []


def test_a_report_tells_permissions_beside_a_base() -> None:
    used, other = "storage.objects.get on gs://acme", "storage.objects.list on gs://raw"
    key = "vertex-training:data: {raw: {uri: 'gs://raw/', grant: true}}"
    base: JobReport = {"name": "train", "outcome": "succeeded", "permissions": [used]}
    job: JobReport = {**base, "permissions": [used, other], "notGranted": [other], "remedies": [key]}
    both: list[Rehearsal] = [{"version": 1, "stack": "dev", "jobs": [each]} for each in (job, base)]
    shown = report.RENDERERS["table"](report.compare(*both, "main"))
    assert shown.endswith(
        f"train: new permissions: {other}\n  uses: {used}, {other}\n  not granted by stack dev: {other}\n    {key}\n"
    )
    both[1]["jobs"][0]["outcome"] = "failed"  # which may have made no call
    assert "new permissions" not in report.RENDERERS["table"](report.compare(*both, "main"))
