"""`--as`: whom jobs act as at Google by a stack's file, what is refused before anything runs, and a run with a job."""

import gzip
import json
import os
import threading
from contextlib import closing, suppress
from pathlib import Path

import docker
import pytest
from vertex_training.cli import main
from vertex_training.data.lock import Data
from vertex_training.errors import ComponentError, Problem
from vertex_training.rehearsal import target
from vertex_training.rehearsal.acting import Actor
from vertex_training.rehearsal.fetch import Cache
from vertex_training.rehearsal.inputs import missing
from vertex_training.rehearsal.runner import Ended, Runner
from vertex_training.settings.offline import read_stack

from tests.standins.google_apis import GoogleApisStandIn
from vertex_api.job import Job
from vertex_api.names import CUSTOM_JOB
from vertex_emulator.snapshots.export import export

from .declared import CLOUD, Write, job, left

DEVELOPER = "canary@acme.dev"
ACCOUNT = "one-off-dev@acme-dev.iam.gserviceaccount.com"


@pytest.fixture
def google(apis: GoogleApisStandIn, monkeypatch: pytest.MonkeyPatch) -> GoogleApisStandIn:
    """Google, where a developer is logged in, on a machine of their own."""
    for name in ("CI", "GITHUB_ACTIONS", "GITLAB_CI"):
        monkeypatch.delenv(name, raising=False)
    return apis.log_in(monkeypatch, DEVELOPER)


def actor(kind: str, stack: str) -> Actor:
    found = Actor.of(kind, [], read_stack(Path.cwd(), stack, "local"))
    assert found
    return found


def with_account(account: str | None) -> Job:
    spec = {"workerPoolSpecs": [], **({"serviceAccount": account} if account else {})}
    return Job(CUSTOM_JOB, {"jobSpec": spec})


@pytest.mark.usefixtures("google")
def test_the_account_is_that_of_the_stack_s_jobs(project: Write) -> None:
    project("  train: " + job("pass"))
    assert actor("account", "dev").job_spec == {"serviceAccount": ACCOUNT}
    own = "own@acme-dev.iam.gserviceaccount.com"
    assert actor("account", "dev").account_of(with_account(own)) == own
    assert actor("user", "dev").account_of(with_account(own)) == ""
    file = Path("stacks/Pulumi.dev.yaml")
    existing = "trainer@acme-shared.iam.gserviceaccount.com"
    file.write_text(f"{CLOUD}  vertex-training:identity: {{existing: {existing}}}\n")
    assert actor("account", "dev").account == existing


@pytest.mark.parametrize("command", [["run", "train"], ["rehearse"]])
def test_what_is_refused_is_so_before_anything_runs(
    command: list[str],
    project: Write,
    google: GoogleApisStandIn,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def start(*_: object, **__: object) -> None:
        raise AssertionError("Docker is asked, or an emulator started")

    monkeypatch.setattr("vertex_training.images.builders.connect", start)
    project("  train: " + job("pass"))

    def said(*options: str) -> str:
        assert main([*command, *options]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        return line.removeprefix("vertex-training: ")

    assert said("--as", "account") == (
        "--as account: train has no serviceAccount, and the stack local no account for jobs; give --stack with one of "
        "target gcp"
    )
    assert said("--write", "gs://acme").startswith("--write: needs --as account or user")
    for uri in ("gs://acme/x", "acme", "gs://"):
        assert said("--as", "user", "--write", uri).startswith(f"--write: {uri} must be gs://BUCKET")
    google.refusal = "Permission 'iam.serviceAccounts.getAccessToken' denied on resource (or it may not exist)."
    line = said("--as", "account", "--stack", "dev")
    assert line.startswith(f"--as account: Google gives no token of {ACCOUNT} (Permission ")
    assert f"gcloud iam service-accounts add-iam-policy-binding {ACCOUNT} --member=" in line
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere")
    assert "gcloud auth application-default login" in said("--as", "user")
    monkeypatch.setenv("CI", "true")
    assert said("--as", "user").startswith("--as: this CI does not say whether the code is a fork's")


@pytest.mark.usefixtures("google")
def test_where_names_lead_nowhere_nothing_is_built(project: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    project("  train: " + job("pass"))
    asked: list[str] = []

    def answer(method: str, path: str, body: object, prefix: str) -> dict[str, object]:
        asked.append(f"{prefix}: {method} {path}")
        return {"obstacle": "the emulator does not run as root" if len(asked) == 1 else None}

    monkeypatch.setattr("vertex_training.runtime.emulator.request", answer)
    with pytest.raises(ComponentError, match=r"^--as cannot work here, because .*: the emulator does not run as root"):
        actor("user", "dev").require_door()
    actor("user", "dev").require_door()
    assert asked == ["--as: GET status"] * 2


def test_buckets_are_google_s_if_it_says_so(
    project: Write, google: GoogleApisStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    project("  train: " + job("pass"))
    answers = {"there": 200, "gone": 404, "closed": 403}
    answer = google.answer

    def answered(
        host: str, path: str, token: str, body: bytes, quota_project: str = ""
    ) -> tuple[int, dict[str, object]]:
        if host.startswith("storage."):
            assert token == f"token-of-{DEVELOPER}-as-{ACCOUNT}"
            status = answers.get(path.split("/")[4], 500)
            return status, {"error": {"code": status, "message": "said\nso"}}
        return answer(host, path, token, body, quota_project)

    monkeypatch.setattr(google, "answer", answered)
    said: list[str] = []
    found = actor("account", "dev")
    assert found.real(answers, with_account(None), said.append) == {"there", "closed"}
    assert said == [
        "gs://gone: Google has no such bucket; it is made at home",
        "gs://closed: is Google's, and may not be listed (said so)",
    ]
    with pytest.raises(ComponentError, match=r"^--as: gs://odd: Google answers 500 \(said so\)$"):
        found.real(["odd"], with_account(None), said.append)


def test_data_is_fetched_where_home_lacks_it(project: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project("  train: " + job("pass"))
    fetched: list[str] = []
    monkeypatch.setattr(Cache, "fetch", lambda _self, data, _google: fetched.append(data.name))
    found = Actor("user", fetched=tmp_path, fetch_bytes=1)
    monkeypatch.setattr(Actor, "_ask", lambda _self, bucket, _account: (404 if bucket == "gone" else 200, ""))
    (tmp_path / "stacks-own" / "seed").mkdir(parents=True)
    (tmp_path / "stacks-own" / "seed" / "part-0.csv").touch()
    uris = {
        "of-google": "gs://real/a/",
        "there": "gs://stacks-own/seed/part-*.csv",
        "whole": "gs://stacks-own/seed/",
        "lacking": "gs://stacks-own/seed/test-*.csv",
        "gone": "gs://gone/a/",
        "files": "data/",
    }
    data = [Data(name, uri, "error", lambda _, message: Problem("", "", message)) for name, uri in uris.items()]
    found.fetch(data, {"real"}, tmp_path, with_account(None), print)
    assert fetched == ["of-google", "lacking"]


TRAINER = """
import json, os, sys, time, urllib.error, urllib.request

def ask(url, data=None, **headers):
    try:
        request = urllib.request.Request(url, data, {name.replace("_", "-"): value for name, value in headers.items()})
        return 200, urllib.request.urlopen(request).read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()

account = "http://metadata.google.internal/computeMetadata/v1/instance/service-accounts/default/"
token = json.loads(ask(account + "token", Metadata_Flavor="Google")[1])["access_token"]
bearer = {"Authorization": "Bearer " + token}
bigquery = "https://bigquery.googleapis.com/bigquery/v2/projects/" + os.environ["CLOUD_ML_PROJECT_ID"]
storage, of_mine = "https://storage.googleapis.com", "?uploadType=media&name=x"
steal = "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/a:generateAccessToken"
found = {
    "email": ask(account + "email", Metadata_Flavor="Google")[1],
    "bigquery": ask(bigquery + "/datasets", **bearer),
    "object": ask(storage + "/download/storage/v1/b/acme-real/o/x?alt=media", **bearer),
    "write": ask(storage + "/upload/storage/v1/b/acme-real/o" + of_mine, b"1", **bearer)[0],
    "written": ask(storage + "/upload/storage/v1/b/acme-mine/o" + of_mine, b"1", **bearer)[0],
    "stolen": ask(steal, b"{}", **bearer)[0],
    "fetched": open("/gcs/acme-real/train/a.csv").read(),
    "token": token, "environment": dict(os.environ), "argv": sys.argv,
}
with open("/gcs/one-off-dev/found.json", "w") as file:
    json.dump(found, file)
print(json.dumps(found), flush=True)
while not os.path.exists("/gcs/one-off-dev/seen"):
    time.sleep(0.05)
"""


OBJECT: dict[str, object] = {"content": "of"}


class Watch(threading.Thread):
    """Reads what a run shows while it lives: its containers, its folder, and all command lines."""

    def __init__(self, temporary: Path) -> None:
        super().__init__(daemon=True)
        self.temporary, self.ended, self.shown = temporary, threading.Event(), set[str]()
        self.is_seen = False

    def run(self) -> None:
        while not self.ended.wait(0.2):
            for process in Path("/proc").glob("[0-9]*/cmdline"):
                with suppress(OSError):
                    self.shown.add(process.read_bytes().decode("latin-1"))
            for found in self.temporary.glob("vertex-training-run-*/gcs/one-off-dev/found.json"):
                if not self.is_seen:
                    self._look(found)

    def _look(self, found: Path) -> None:
        folder = found.parents[2]
        with closing(docker.from_env()) as client:
            ours = [each.attrs for each in client.containers.list() if str(folder) in str(each.attrs["Mounts"])]
        files = [file for file in folder.rglob("*") if file.is_file()]
        assert ours and folder / "identity.json" in files
        self.shown |= {json.dumps(ours), *(file.read_bytes().decode("latin-1") for file in files)}
        self.is_seen = True
        (found.parent / "seen").touch()


@pytest.fixture
def exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The archive that `vertex-emulator export` makes of a run's folder before that is removed."""
    archive, remove = tmp_path / "run.tar.gz", target._remove

    def export_first(folder: Path) -> None:
        assert target._command("stop", folder) == ""
        assert list(export(folder, archive, redacts_env=False))
        remove(folder)

    monkeypatch.setattr(target, "_remove", export_first)
    return archive


def test_a_job_acts_and_holds_no_token(
    project: Write,
    google: GoogleApisStandIn,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    exported: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    calls: dict[str, str] = {}
    answer = google.answer

    def answered(
        host: str, path: str, token: str, body: bytes, quota_project: str = ""
    ) -> tuple[int, dict[str, object]]:
        calls[f"{host}{path.partition('?')[0]}"] = token
        if "/acme-real/o?" in path and "prefix=train" in path:
            return 200, {"items": [{"name": "train/a.csv", "size": len(json.dumps(OBJECT)), "generation": "7"}]}
        if "/acme-real/o/train%2Fa.csv" in path:
            assert "generation=7" in path
            return 200, OBJECT
        return (404, {}) if "/acme-gone/" in path else answer(host, path, token, body, quota_project)

    monkeypatch.setattr(google, "answer", answered)
    declared = job(TRAINER, "${data.train}", "gs://acme-mine/x", "gs://acme-gone/x")
    project(f"  train: {declared}data: {{train: {{uri: gs://acme-real/train/}}}}\n")
    watch, ended, end = Watch(tmp_path / "temporary"), list[Ended](), Runner._ended
    monkeypatch.setattr(Runner, "_ended", lambda *given: ended.append(end(*given)) or ended[-1])
    watch.start()
    code = main(["run", "train", "--stack", "dev", "--as", "account", "--write", "gs://acme-mine"])
    watch.ended.set()
    watch.join()
    shown = "".join(capfd.readouterr())
    if os.geteuid() != 0:
        assert code == 2 and "--as cannot work here, because" in shown
        return
    assert code == 0, shown
    (found,) = (json.loads(line[line.index("{") :]) for line in shown.splitlines() if '"bigquery"' in line)
    assert (found["email"], json.loads(found["fetched"])) == (ACCOUNT, OBJECT)
    assert "data.train: fetching 1 of 1 objects, 17 B" in shown
    lacking = missing(ended[0].submitted, ended[0].written, tmp_path)
    assert [uri for uri in lacking if "one-off-dev" not in uri] == ["gs://acme-gone/x"]
    assert (found["bigquery"][0], found["object"][0]) == (200, 200)
    assert (found["write"], found["written"], found["stolen"]) == (403, 200, 403)
    acts = f"token-of-{DEVELOPER}-as-{ACCOUNT}"
    storage = "storage.googleapis.com"
    assert {place: token for place, token in calls.items() if not place.startswith(("oauth2.", "iamcredentials."))} == {
        f"{storage}/storage/v1/b/acme-real/o": acts,
        f"{storage}/storage/v1/b/acme-mine/o": acts,
        f"{storage}/storage/v1/b/acme-gone/o": acts,
        "bigquery.googleapis.com/bigquery/v2/projects/acme-dev/datasets": acts,
        f"{storage}/download/storage/v1/b/acme-real/o/x": acts,
        f"{storage}/upload/storage/v1/b/acme-mine/o": acts,
        f"{storage}/storage/v1/b/acme-real/o/train%2Fa.csv": acts,
    }
    assert "gs://acme-gone: Google has no such bucket; it is made at home" in shown
    assert watch.is_seen and len(watch.shown) > 10
    archived = gzip.decompress(exported.read_bytes()).decode("latin-1")
    assert "gcs/one-off-dev/found.json" in archived
    for canary in ("token-of-", DEVELOPER):
        assert [text[:500] for text in (*watch.shown, archived, shown) if canary in text] == []
    assert left(tmp_path) == []
