"""An archive of a data folder, and a data folder from an archive, also from a stranger's."""

import io
import json
import os
import sqlite3
import stat
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.vertex_api.futures import MACHINE, future_job
from tests.vertex_emulator.fakes import Clock, Emulator, Machine, use_clock
from tests.vertex_emulator.jobs import LOCATION, custom_job_spec, pool
from tests.vertex_emulator.running import command
from tests.vertex_emulator.scheduling.steps import log_texts, reports, submit, submit_study, trials
from tests.vertex_emulator.test_removal import nest_folders
from vertex_api.names import HYPERPARAMETER_TUNING_JOB, KINDS, TRAINING_PIPELINE
from vertex_api.pipelines import CUSTOM_TASK
from vertex_emulator.data_folder import DataFolder, acquire_lock
from vertex_emulator.database.records import SUCCEEDED, Replica
from vertex_emulator.errors import EmulatorError, SnapshotInvalid, StartError
from vertex_emulator.gcs.metadata import Metadata, MetadataDatabase
from vertex_emulator.replicas.logs import SavedLog
from vertex_emulator.replicas.spec import ReplicaSpec
from vertex_emulator.snapshots.export import export
from vertex_emulator.snapshots.restore import restore

GENERATION = 1_700_000_000_123_456_789
SECRET = "token-of-a-stack"


def trains(spec: ReplicaSpec) -> int:
    """A trainer that writes a model, or reports its metric as a trial."""
    if any(mount.target == "/tmp/hypertune" for mount in spec.mounts):
        return reports(spec)
    if "AIP_MODEL_DIR" in spec.environment:
        folder = spec.mounts[0].source + spec.environment["AIP_MODEL_DIR"].removeprefix("gs:/")
        Path(folder).mkdir(parents=True, exist_ok=True)
        Path(folder, "weights").write_text("1")
    return 0


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Emulator]:
    def started(name: str = "data") -> Emulator:
        clock = Clock()
        use_clock(clock, monkeypatch)
        return Emulator(tmp_path / name, Machine(clock, program=trains))

    return started


@pytest.fixture
def archive(start: Callable[..., Emulator], tmp_path: Path) -> Path:
    """An archive of a job, a study, a pipeline with its model, and the buckets of the folder `data`."""
    emulator = start()
    submit(emulator, custom_job_spec(pool(env=[{"name": "TOKEN", "value": SECRET}])))
    submit_study(emulator, trials=2)
    inputs = {"workerPoolSpecs": [pool()], "baseOutputDirectory": {"outputUriPrefix": "gs://models/run"}}
    model = {
        "displayName": "a model",
        "containerSpec": {"imageUri": "serve:1", "env": [{"name": "A", "value": SECRET}]},
    }
    pipeline = {"displayName": "p", "trainingTaskDefinition": CUSTOM_TASK, "trainingTaskInputs": inputs}
    emulator.jobs.create(TRAINING_PIPELINE, LOCATION, {**pipeline, "modelToUpload": model})
    emulator.run()
    emulator.run_ready_steps()
    with emulator.database.write() as transaction:
        (version,) = transaction.models.iterate()
        copied = {**version.spec, "originalModelInfo": {"model": f"{version.model_name}@1"}}
        transaction.models.upload(LOCATION, {"modelId": "a-copy"}, copied, None)
    emulator.database.close()
    file = emulator.data.buckets / "models" / "run" / "model.txt"
    file.write_text("42")
    os.utime(file, ns=(GENERATION, GENERATION))
    (file.parent / "link").symlink_to("/etc/passwd")
    (emulator.data.buckets / "empty").mkdir()
    metadata = MetadataDatabase(emulator.data.object_metadata)
    metadata.set("models", "run/model.txt", GENERATION, Metadata({"contentType": "text/x-model"}))
    metadata.close()
    emulator.data.token.write_text("the token")
    emulator.data.secrets.write_text('{"p": {"s": "the secret"}}')
    path = tmp_path / "fixture.tar.gz"
    assert "exported 4 jobs and 2 objects" in " ".join(export(emulator.data.root, path, redacts_env=False))
    return path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def contents(archive: Path) -> dict[str, bytes]:
    with tarfile.open(archive) as tar:
        return {member.name: tar.extractfile(member).read() if member.isfile() else b"" for member in tar}  # type: ignore[union-attr]


def test_each_step_of_an_export_is_reported(archive: Path, tmp_path: Path) -> None:
    reports: dict[str, int] = {}
    again = export(
        tmp_path / "data", tmp_path / "again.tar.gz", True, lambda step, done, _: reports.update({step: done})
    )
    assert "exported 4 jobs" in " ".join(again)
    expected = {
        "checking jobs": 6,  # with those of the trials and of the pipeline
        "reading database/jobs.jsonl": 6,
        "reading database/trials.jsonl": 2,
        "reading objects.jsonl": 1,
        "listing logs": 4,
    }
    assert {step: reports.get(step) for step in expected} == expected
    assert [*reports][-1] == "writing the archive"


def test_jobs_logs_and_buckets_come_back(archive: Path, start: Callable[..., Emulator], tmp_path: Path) -> None:
    assert "imported 4 jobs and 2 objects" in restore(tmp_path / "other", archive, None)
    before, after = start(), start("other")
    with before.database.read() as transaction:
        ids = [row["id"] for row in transaction.rows.read("jobs")]
    assert [after.job(id_) for id_ in ids] == [before.job(id_) for id_ in ids]
    study = after.job(ids[1]).id
    assert trials(after, study) == [(1, "SUCCEEDED"), (2, "SUCCEEDED")]
    with before.database.read() as old, after.database.read() as new:
        models = [*new.models.iterate()]
        assert models == [*old.models.iterate()]
        assert [("originalModelInfo" in model.spec) for model in models] == [False, True]
    assert log_texts(after, ids[0]) == log_texts(before, ids[0])
    lines = SavedLog(after.data.logs, ids[0], Replica(0, 0)).read()
    assert lines is not None and [line.text for line in lines] == ["hello from workerpool0-0"]
    model = after.data.buckets / "models" / "run" / "model.txt"
    assert (model.read_text(), model.stat().st_mtime_ns) == ("42", GENERATION)
    assert names(model.parent) == ["model", "model.txt"]
    assert names(after.data.buckets) == ["empty", "models"]
    metadata = MetadataDatabase(after.data.object_metadata)
    assert metadata.get("models", "run/model.txt", GENERATION).fields == {"contentType": "text/x-model"}
    metadata.close()
    submit(after)
    after.run()


def test_lifted_jobs_run_and_are_taken_along(start: Callable[..., Emulator], tmp_path: Path) -> None:
    emulator = start()
    bodies = {kind: future_job(kind) for kind in KINDS.values()}
    bodies[HYPERPARAMETER_TUNING_JOB][0]["studySpec"]["metrics"][0]["metricId"] = "acc"
    names = {
        kind: emulator.jobs.create(kind, LOCATION, body, allowed=places)["name"]
        for kind, (body, places) in bodies.items()
    }
    emulator.run()
    emulator.database.close()
    list(export(emulator.data.root, tmp_path / "x.tar.gz", redacts_env=False))
    restore(tmp_path / "other", tmp_path / "x.tar.gz", None)
    after = start("other")
    for kind, (body, _) in bodies.items():
        job = after.jobs.get(kind, LOCATION, names[kind].rpartition("/")[2])
        assert str(job["state"]).endswith("SUCCEEDED")
        assert job[kind.spec_field]["pacing"] == body[kind.spec_field]["pacing"]
        assert job[kind.spec_field]["workerPoolSpecs"][0]["machineSpec"] == MACHINE
    after.database.close()


def test_imported_files_have_their_modes(archive: Path, tmp_path: Path) -> None:
    restore(tmp_path / "other", archive, None)
    data = DataFolder(tmp_path / "other")
    log = next(data.logs.glob("*/*.jsonl"))
    model = data.buckets / "models" / "run" / "model.txt"
    private, shared = (archive, data.database, data.object_metadata, log), (data.buckets, model.parent)
    assert {stat.S_IMODE(path.stat().st_mode) for path in private} == {0o600}
    assert {stat.S_IMODE(path.stat().st_mode) for path in shared} == {0o777}
    assert [stat.S_IMODE(path.stat().st_mode) for path in (data.root, data.logs, model)] == [0o700, 0o700, 0o666]
    assert not (data.root / "import.partial").exists()


def test_equal_folders_give_equal_archives_without_secrets(archive: Path, tmp_path: Path) -> None:
    restore(tmp_path / "other", archive, None)
    list(export(tmp_path / "other", tmp_path / "again.tar.gz", redacts_env=False))
    assert (tmp_path / "again.tar.gz").read_bytes() == archive.read_bytes()
    everything = b"".join(contents(archive).values())
    assert b"the token" not in everything and b"the secret" not in everything and b"root:" not in everything
    assert SECRET.encode() in everything
    list(export(tmp_path / "other", tmp_path / "redacted.tar.gz", redacts_env=True))
    assert SECRET.encode() not in b"".join(contents(tmp_path / "redacted.tar.gz").values())


def test_export_names_jobs_that_have_not_ended(start: Callable[..., Emulator], tmp_path: Path) -> None:
    emulator = start()
    job = submit(emulator)
    emulator.run_ready_steps()
    with pytest.raises(EmulatorError, match=f"have not ended: .*customJobs/{job}; start the emulator"):
        list(export(emulator.data.root, tmp_path / "x.tar.gz", redacts_env=False))
    assert not list(tmp_path.glob("x.tar*"))


def test_import_replaces_only_when_told(archive: Path, tmp_path: Path) -> None:
    other = DataFolder.open(tmp_path / "other")
    (other.buckets / "mine").mkdir()
    with pytest.raises(EmulatorError, match=r"has buckets; import into another .*--replace"):
        restore(other.root, archive, None)
    removed = []
    restore(other.root, archive, lambda: removed.append("jobs"))
    assert (removed, names(other.buckets)) == (["jobs"], ["empty", "models"])


def test_replacing_removes_buckets_that_nest_without_end(archive: Path, tmp_path: Path) -> None:
    other = DataFolder.open(tmp_path / "other")
    (other.buckets / "mine").mkdir()
    nest_folders(other.buckets / "mine")
    restore(other.root, archive, lambda: None)
    assert names(other.buckets) == ["empty", "models"]


def test_neither_works_while_an_emulator_runs(archive: Path, tmp_path: Path) -> None:
    data = DataFolder.open(tmp_path / "data")
    with acquire_lock(data.lock):
        for work in (
            lambda: list(export(data.root, tmp_path / "x.tar.gz", redacts_env=False)),
            lambda: restore(data.root, archive, None),
        ):
            with pytest.raises(StartError, match="stop it with: vertex-emulator stop") as caught:
                work()
            assert caught.value.exit_code == 3


def packed(path: Path, changed: dict[str, bytes | tarfile.TarInfo]) -> Path:
    """The archive with members added or replaced, and a manifest that fits."""
    members = contents(path)
    manifest = json.loads(members.pop("manifest.json"))
    own = json.loads(changed.pop("manifest.json", b"{}"))  # type: ignore[arg-type]
    everything = {**members, **changed}
    sizes = [len(content) for content in everything.values() if isinstance(content, bytes)]
    manifest = {**manifest, "files": len(everything), "size": sum(sizes), **own}
    hostile = path.with_name("hostile.tar.gz")
    with tarfile.open(hostile, "w:gz", format=tarfile.PAX_FORMAT) as tar:
        for name, content in {"manifest.json": json.dumps(manifest).encode(), **everything}.items():
            member = content if isinstance(content, tarfile.TarInfo) else tarfile.TarInfo(name)
            if content == b"" and name.startswith("gcs/"):
                member.type = tarfile.DIRTYPE
            member.size = len(content) if isinstance(content, bytes) else 0
            member.pax_headers = {"mtime": "1.000000000"}
            tar.addfile(member, io.BytesIO(content) if isinstance(content, bytes) else None)
    return hostile


def member(name: str, kind: bytes, link: str = "/etc/passwd") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


STORE = "projects/1/locations/r/metadataStores/default"


def resource(table: str, name: str, spec: dict[str, Any], **columns: Any) -> dict[str, bytes]:
    """A table of an archive with one resource."""
    times = {"created": 1, "updated": 1}
    fields = {"sequence": 1, "name": name, "collection": name.rpartition("/")[0], "spec": json.dumps(spec), **times}
    return {f"database/{table}.jsonl": json.dumps({**fields, **columns}).encode() + b"\n"}


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"gcs/models/../../../escaped": b"x"}, "which is not a valid folder name"),
        ({"/tmp/escaped": b"x"}, "no export writes"),
        ({"gcs/..": member("gcs/..", tarfile.DIRTYPE)}, "names no bucket"),
        ({"token": b"x"}, "no export writes"),
        ({"logs/../../escaped.jsonl": b"x"}, "no export writes"),
        ({"gcs/models/a/../b": member("gcs/models/a/../b", tarfile.DIRTYPE)}, "which is not a valid folder name"),
        ({"logs/1": member("logs/1", tarfile.DIRTYPE)}, "no export writes"),
        ({"gcs/models/link": member("gcs/models/link", tarfile.SYMTYPE)}, "a link out of its bucket: '/etc/passwd'"),
        ({"gcs/models/run/up": member("gcs/models/run/up", tarfile.SYMTYPE, "../../x")}, "a link out of its bucket"),
        ({"gcs/models/run/in": member("gcs/models/run/in", tarfile.SYMTYPE, "a/../..")}, "a link out of its bucket"),
        ({"gcs/link": member("gcs/link", tarfile.SYMTYPE, "models")}, "no export writes"),
        ({"logs/1/link": member("logs/1/link", tarfile.SYMTYPE, "x")}, "no export writes"),
        ({"gcs/models/to": member("gcs/models/to", tarfile.SYMTYPE, "run"), "gcs/models/to/x": b"x"}, "symbolic link"),
        ({"gcs/models/hard": member("gcs/models/hard", tarfile.LNKTYPE)}, "no file, folder or symbolic link"),
        ({"gcs/models/pipe": member("gcs/models/pipe", tarfile.FIFOTYPE)}, "no file, folder or symbolic link"),
        ({"gcs/models/null": member("gcs/models/null", tarfile.CHRTYPE)}, "no file, folder or symbolic link"),
        ({"manifest.json": b'{"size": 1}'}, "not the files that"),
        ({"manifest.json": b'{"files": 1000}'}, "not the files that"),
        ({"manifest.json": b'{"files": Infinity}'}, "manifest.json is not valid"),
        ({"database/jobs.jsonl": b'{"id": "../x; DROP TABLE jobs"}\n'}, "other columns"),
        ({"database/jobs.jsonl": b"no json"}, "JSONDecodeError"),
        ({"database/models.jsonl": b'{"x); DROP TABLE jobs": 1}\n'}, "other columns"),
        ({"objects.jsonl": b'{"bucket": "b", "name": "n"}\n'}, "KeyError"),
        (resource("tensorboards", "projects/1/tensorboards/1", {}), "no name of a resource"),
        (resource("tensorboards", "projects/1/locations/r/tensorboards/1", {"x": 1}), "displayName: is required"),
        (resource("lineage_nodes", "projects/1/locations/r/metadataStores/d/files/f", {}), "no name of a resource"),
        (resource("lineage_nodes", f"{STORE}/contexts/c", {"metadata": [1]}), "metadata: "),
        (resource("lineage_nodes", f"{STORE}/artifacts/a", {}, created="now"), "has no times"),
        (
            {
                **resource("lineage_nodes", STORE, {}),
                "database/lineage_edges.jsonl": b'{"source":1,"target":1,"type":"X","created":1,"labels":"{}"}\n',
            },
            "is not one",
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_hostile_archives_change_nothing(archive: Path, tmp_path: Path, changed: dict[str, Any], reason: str) -> None:
    hostile = packed(archive, dict(changed))
    with pytest.raises(SnapshotInvalid, match=reason):
        restore(tmp_path / "other", hostile, None)
    assert not list(tmp_path.rglob("escaped*")) and not Path("/tmp/escaped").exists()
    left = {path.name for path in (tmp_path / "other").iterdir()}
    assert left <= {"emulator.db", "objects.db", "lock", "gcs", "logs", "trials", "uploads"}
    assert not any((tmp_path / "other" / "gcs").iterdir())
    with sqlite3.connect(tmp_path / "other" / "emulator.db") as connection:
        assert connection.execute("SELECT count(*) FROM jobs").fetchone() == (0,)


@pytest.mark.parametrize(("header", "value"), [("GNU.sparse.map", "a,b"), ("GNU.sparse.size", "x")])
def test_a_bad_first_header_is_refused(tmp_path: Path, header: str, value: str) -> None:
    first = tarfile.TarInfo("manifest.json")
    first.pax_headers = {header: value}
    with tarfile.open(tmp_path / "bad.tar.gz", "w:gz", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(first)
    with pytest.raises(SnapshotInvalid, match="a header is not valid"):
        restore(tmp_path / "other", tmp_path / "bad.tar.gz", None)


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("id", "../../gcs", "not a number"),
        ("state", "JOB_STATE_QUEUED", "has not ended"),
        ("state", "JOB_STATE_RUNNING", "has not ended"),
        ("replica_outcomes", '[{"pool": "../..", "index": 0, "attempt": 0}]', "without numbers"),
        ("spec", "[", "damaged"),
        ("spec", '{"displayName": 5, "jobSpec": {"workerPoolSpecs": []}}', "displayName: "),
        ("spec", '{"displayName": "no jobSpec"}', "jobSpec"),
        ("created", "soon", "damaged"),
    ],
)
def test_records_that_no_emulator_writes_are_rejected(
    archive: Path, tmp_path: Path, column: str, value: str, reason: str
) -> None:
    rows = [json.loads(line) for line in contents(archive)["database/jobs.jsonl"].splitlines()]
    rows[0][column] = value
    lines = "".join(json.dumps(row) + "\n" for row in rows[:1]).encode()
    nothing = dict.fromkeys(
        (f"database/{table}.jsonl" for table in ("trials", "service_messages", "pipelines")), b"\n"[:0]
    )
    with pytest.raises(SnapshotInvalid, match=reason):
        restore(tmp_path / "other", packed(archive, {**nothing, "database/jobs.jsonl": lines}), None)


def test_other_versions_are_named_with_the_remedy(archive: Path, tmp_path: Path) -> None:
    newer = packed(archive, {"manifest.json": b'{"format": 4, "emulator_version": "9.1"}'})
    with pytest.raises(SnapshotInvalid, match=r"version '9\.1' \(format 4.*: import it with that version"):
        restore(tmp_path / "other", newer, None)
    cut = tmp_path / "cut.tar.gz"
    cut.write_bytes(archive.read_bytes()[:-200])
    text = tmp_path / "text.tar.gz"
    text.write_text("this is no archive")
    for path in (cut, text):
        with pytest.raises(SnapshotInvalid, match=path.name):
            restore(tmp_path / "other", path, None)


def test_the_commands_export_and_import(archive: Path, start: Callable[..., Emulator], tmp_path: Path) -> None:
    done = command("import", str(archive), data=tmp_path / "other")
    assert (done.returncode, done.stdout.startswith("imported 4 jobs")) == (0, True), done.stderr
    again = command("import", str(archive), data=tmp_path / "other")
    assert (again.returncode, again.stderr.count("\n")) == (1, 1)
    for _ in range(2):
        done = command("export", str(tmp_path / "x.tar.gz"), "--redact-env", data=tmp_path / "other")
    assert (done.returncode, "x.tar.gz exists" in done.stderr) == (1, True)
    assert command("import", str(tmp_path / "none.tar.gz"), data=tmp_path / "new").stderr.count("does not exist") == 1
    assert (
        start("other").job(str(json.loads(contents(archive)["database/jobs.jsonl"].splitlines()[0])["id"])).state
        == SUCCEEDED
    )
