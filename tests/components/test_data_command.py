"""`vertex-training data`: what it writes, says, and exits with; and what a program makes of it."""

import json
from pathlib import Path

import pulumi
import pytest
from vertex_training import program
from vertex_training.cli import main
from vertex_training.data import lock
from vertex_training.errors import DeclarationErrors
from vertex_training.settings.settings import Settings

from tests.components.projects import CLOUD_INCLUDING, INCLUDING, load, problems, write
from tests.standins.cloud_storage import CloudStorageStandIn, cloud_storage

DATA = """\
vars: {folder: train}
data:
  train: {uri: "gs://acme/${vars.folder}/*.csv"%s}
  files: {uri: files/}
"""
JOBS = """\
customJobs:
  digits:
    jobSpec: &spec
      workerPoolSpecs:
        - machineSpec: {machineType: n1-standard-4}
          containerSpec: {imageUri: us-docker.pkg.dev/p/r/i:1, args: ["--data=${data.train}"]}
  other:
    jobSpec:
      workerPoolSpecs:
        - machineSpec: {machineType: n1-standard-4}
          containerSpec: {imageUri: us-docker.pkg.dev/p/r/i:1}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with data in a bucket and in a folder."""
    write(
        tmp_path,
        {
            "Pulumi.yaml": "{name: team, runtime: python, stackConfigDir: stacks}",
            "stacks/Pulumi.dev.yaml": CLOUD_INCLUDING,
            "jobs.yaml": DATA % "",
            "files/a.csv": "a",
        },
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def storage(monkeypatch: pytest.MonkeyPatch) -> "object":
    with cloud_storage() as standin:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", standin.url)
        standin.objects["acme", "train/a.csv"] = b"1,2"
        yield standin


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[str]]:
    """The exit code of the command, and all that it says."""
    code = main(["data", *arguments])
    said = capsys.readouterr()
    return code, (said.out + said.err).splitlines()


def test_data_is_locked_and_compared(
    project: Path, storage: CloudStorageStandIn, capsys: pytest.CaptureFixture[str]
) -> None:
    dev = ("--stack", "dev")
    code, lines = run(capsys, "status", *dev, "train")
    assert (code, lines) == (1, ["train: is not locked: 1 object, 3 bytes; run `vertex-training data lock train`"])
    assert run(capsys, "lock", *dev) == (0, ["train: locked: 1 object, 3 bytes", "files: locked: 1 file, 1 byte"])
    assert run(capsys, "status", *dev)[0] == 0
    storage.objects["acme", "train/b.csv"] = b"3,4"
    code, lines = run(capsys, "status", *dev)
    assert code == 1 and lines[0] == (
        "train: differs from data.lock: b.csv added; run `vertex-training data lock train`"
    )
    assert run(capsys, "lock", *dev, "train") == (0, ["train: 1 object added, 6 bytes"])
    assert run(capsys, "lock", *dev, "train") == (0, ["train: as before: 2 objects, 6 bytes"])
    assert run(capsys, "status", *dev)[0] == 0


def test_what_is_declared_no_more_is_forgotten(
    project: Path, storage: CloudStorageStandIn, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, "lock", "--stack", "dev")
    (project / "jobs.yaml").write_text("data: {files: {uri: files/}}\n")
    run(capsys, "lock", "--stack", "dev")
    assert [*lock.Lock(project).snapshots] == [("dev", "files")]


def test_names_and_stacks_are_checked(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "lock", "--stack", "dev", "trian") == (
        1,
        ["vertex-training: trian: is no data of the stack dev; did you mean train?"],
    )
    assert run(capsys, "status", "--stack", "nowhere")[0] == 2
    (project / "jobs.yaml").write_text("vars: {}\n")
    code, lines = run(capsys, "status", "--stack", "dev")
    assert code == 2 and lines[0].startswith("vertex-training: dev: declares no data; write `data:")


def test_data_is_checked_with_everything_else(tmp_path: Path) -> None:
    text = "data:\n  a: {uri: s3://x/y}\n  b: {verify: maybe}\n  c: {uri: ../c/}\n  D: {uri: d/}\n"
    text += "  e: {uri: d/, grant: true}\n"
    found = "\n".join(problems(tmp_path, INCLUDING, jobs=text + JOBS))
    assert 'jobs.yaml:2: data.a.uri: "s3://x/y" is not gs://BUCKET/OBJECTS' in found
    assert "jobs.yaml:3: data.b.uri" in found and "data.b.verify" in found
    assert 'jobs.yaml:4: data.c.uri: "../c/" leads out of' in found and '"D" must be lower-case' in found
    assert "${data.train} is not declared" in found
    assert "jobs.yaml:6: data.e.grant: has no effect on files of the project" in found


def settings_of(root: Path, stack: str, text: str = DATA % "" + JOBS) -> Settings:
    return load(root, stack, jobs=text)


def test_a_reference_is_the_uri_as_declared(tmp_path: Path) -> None:
    digits, other = settings_of(tmp_path, INCLUDING).jobs
    pool = digits.job.pools[0]
    assert pool["containerSpec"]["args"] == ["--data=gs://acme/train/*.csv"]
    assert (digits.data, other.data) == ({"train"}, frozenset())


@pytest.mark.parametrize(
    ("stack", "verify", "outcome"),
    [
        (CLOUD_INCLUDING, "", "refused"),
        (CLOUD_INCLUDING, ", verify: warn", "warning"),
        (CLOUD_INCLUDING, ", verify: off", "nothing"),
        (INCLUDING, "", "warning"),
    ],
)
def test_unlocked_data_is_told_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stack: str, verify: str, outcome: str
) -> None:
    settings = settings_of(tmp_path, stack, DATA % verify.replace("off", "'off'") + JOBS)
    data = lock.resolve(tmp_path, "dev", settings.data)
    warnings: list[str] = []
    monkeypatch.setattr(pulumi, "warn", warnings.append)
    monkeypatch.setattr(pulumi, "get_stack", lambda: "dev")
    monkeypatch.setattr(pulumi.runtime, "is_dry_run", lambda: True)
    line = (
        "jobs.yaml:3: data.train: is not locked, so no change of gs://acme/train/*.csv runs a job again; run "
        "`vertex-training data lock --stack dev train`"
    )
    if outcome == "refused":
        with pytest.raises(DeclarationErrors, match=r"data\.train: is not locked") as failure:
            program._require_locks(settings, data)
        assert [str(each) for each in failure.value.problems] == [line]
    else:
        program._require_locks(settings, data)
        assert warnings == [line] * (outcome == "warning")


@pytest.mark.parametrize("table", [{"numRows": "12", "numBytes": "3000"}, {"type": "VIEW"}])
def test_a_table_is_locked_by_its_last_change(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], table: dict[str, str]
) -> None:
    (project / "jobs.yaml").write_text("data: {orders: {uri: 'bq://acme.sales.orders'}}\n")
    answer = {**table, "lastModifiedTime": "1700000000000"}
    paths: list[str] = []

    def get(path: str, query: object) -> tuple[int, dict[str, str]]:
        paths.append(path)
        return 200, answer

    with cloud_storage() as standin:
        monkeypatch.setattr(standin, "get", get)
        monkeypatch.setenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_BIGQUERY", standin.url)
        code, lines = run(capsys, "lock", "--stack", "dev")
        assert paths == ["/bigquery/v2/projects/acme/datasets/sales/tables/orders"]
        if "type" in table:
            assert (code, lines) == (
                1,
                [
                    "vertex-training: bq://acme.sales.orders: has no rows of its own (view); lock the table that it "
                    "reads"
                ],
            )
            return
        assert lines == ["orders: locked: 12 rows, 3.0 kB"]
        assert json.loads((project / "data.lock").read_text().splitlines()[2])["modified"] == "1700000000000"
        answer["lastModifiedTime"] = "1700000000001"
        code, lines = run(capsys, "status", "--stack", "dev")
        assert code == 1 and "orders: differs from data.lock: changed: 12 rows, 3.0 kB" in lines[0]


CANARY = "canaryLockQ7e7xT4wZ"


@pytest.mark.parametrize("target", ["gcp", "local"])
def test_no_secret_is_in_a_lock(
    target: str,
    project: Path,
    storage: CloudStorageStandIn,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("vertex_api.credentials._config", {})
    for name in ("GOOGLE_OAUTH_ACCESS_TOKEN", "HF_TOKEN", "PULUMI_CONFIG_PASSPHRASE"):
        monkeypatch.setenv(name, CANARY)
    own = "" if target == "gcp" else f"  vertex-training:emulator: {{secrets: {{hf: {CANARY}}}}}\n"
    secrets = f"  vertex-training:secrets: {{token: {{secure: {CANARY}}}}}\n  gcp:accessToken: {CANARY}\n{own}"
    (project / "stacks/Pulumi.dev.yaml").write_text((CLOUD_INCLUDING if target == "gcp" else INCLUDING) + secrets)
    (project / "files/a.csv").write_text(CANARY)
    storage.objects["acme", "train/a.csv"] = CANARY.encode()
    uris = "train: {uri: gs://acme/train/}, files: {uri: files/}" if target == "gcp" else "files: {uri: files/}"
    (project / "jobs.yaml").write_text(f"data: {{{uris}}}\n")
    shown = [run(capsys, verb, "--stack", "dev") for verb in ("lock", "status")]
    assert [code for code, _ in shown] == [0, 0]
    (project / "jobs.yaml").write_text('data: {files: {uri: "files/${secrets.token}"}}\n')
    shown.append(run(capsys, "lock", "--stack", "dev"))
    assert "${secrets.token} is not a reference that is allowed here" in str(shown[-1])
    assert CANARY not in str(shown) + (project / "data.lock").read_text()
