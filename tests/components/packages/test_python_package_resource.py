"""Packages: uploaded once for a content, to the target's bucket, and never from other files than a preview showed."""

import io
import tarfile
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from vertex_training.errors import UploadFailed
from vertex_training.packages.python_package_resource import PythonPackageProvider
from vertex_training.packages.source_distribution import SourceDistribution
from vertex_training.runtime.storage import CloudStorage, StoredObject
from vertex_training.runtime.target import CLOUD_PREFIX, LOCAL_PREFIX

from tests.components.projects import write
from tests.standins.cloud_storage import cloud_storage

PARENT = "projects/p/locations/us-central1"
PROVIDER = PythonPackageProvider()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write(tmp_path, {"t/pyproject.toml": "", "t/trainer.py": "print(1)\n"})
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VERTEX_EMULATOR_DATA", raising=False)
    return tmp_path


def props(project: Path, parent: str) -> dict[str, Any]:
    """What the package `trainer` of the folder `t` has as inputs."""
    tag = SourceDistribution.from_declaration(project, "trainer", {"path": "t"}).tag
    uri = f"gs://team-dev/staging/packages/trainer-{tag}.tar.gz"
    return {"uri": uri, "parent": parent + PARENT, "package": {"path": "t"}, "files": {}}


def test_a_local_package_is_readable_by_any_container(project: Path) -> None:
    given = props(project, LOCAL_PREFIX)
    created = PROVIDER.create(given)
    assert (created.id, created.outs) == ("gs://team-dev/staging/packages/trainer", given)
    file = project / ".emulator/gcs" / given["uri"].removeprefix("gs://")
    with tarfile.open(file) as tar:
        assert tar.getnames() == ["trainer/pyproject.toml", "trainer/trainer.py"]
    assert [file.name] == [each.name for each in file.parent.iterdir()]
    assert oct(file.stat().st_mode & 0o777) == "0o644"
    assert oct(file.parent.stat().st_mode & 0o777) == "0o777"


def test_package_is_written_through_no_link(project: Path) -> None:
    (project / ".emulator/gcs/team-dev").mkdir(parents=True)
    (project / "outside").mkdir()
    (project / ".emulator/gcs/team-dev/staging").symlink_to(project / "outside")
    with pytest.raises(UploadFailed, match="cannot be written"):
        PROVIDER.create(props(project, LOCAL_PREFIX))
    assert list((project / "outside").iterdir()) == []


def test_new_data_folder_is_closed_to_others(project: Path) -> None:
    PROVIDER.create(props(project, LOCAL_PREFIX))
    assert oct((project / ".emulator").stat().st_mode & 0o777) == "0o700"


def test_in_the_cloud_a_package_is_uploaded_once(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = props(project, CLOUD_PREFIX)
    with cloud_storage() as storage:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", storage.url)
        PROVIDER.create(given)
        PROVIDER.update("", {}, given)
    name = given["uri"].removeprefix("gs://team-dev/")
    content = SourceDistribution.from_declaration(project, "trainer", {"path": "t"}).build_archive_bytes()
    assert storage.objects == {("team-dev", name): content}
    assert storage.uploads == 1
    assert capsys.readouterr().out == f"trainer: uploaded {name.rpartition('/')[2]}\n"


@pytest.mark.parametrize("is_meanwhile", [False, True])
def test_what_others_wrote_is_replaced(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], is_meanwhile: bool
) -> None:
    given = props(project, CLOUD_PREFIX)
    content = SourceDistribution.from_declaration(project, "trainer", {"path": "t"}).build_archive_bytes()
    key = ("team-dev", given["uri"].removeprefix("gs://team-dev/"))
    with cloud_storage() as storage:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", storage.url)

        def write_as_another() -> None:
            storage.objects[key] = b"theirs"
            storage.before_upload = lambda: None

        if is_meanwhile:
            storage.before_upload = write_as_another
        else:
            write_as_another()
        PROVIDER.create(given)
    assert storage.objects == {key: content}
    assert "trainer: uploaded trainer-" in capsys.readouterr().out


def test_an_equal_upload_of_others_counts(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with cloud_storage() as storage:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", storage.url)
        storage.before_upload = partial(storage.objects.__setitem__, ("team-dev", "a"), b"ours")
        stored = CloudStorage().put("gs://team-dev/a", io.BytesIO(b"ours"))
    assert stored == StoredObject("1", is_new=False)


def test_a_composed_object_is_replaced(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with cloud_storage() as storage:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", storage.url)
        storage.objects["team-dev", "a"], storage.has_md5 = b"ours", False
        stored = CloudStorage().put("gs://team-dev/a", io.BytesIO(b"ours"))
    assert stored == StoredObject("2", is_new=True)


def test_an_object_that_others_write_on_is_named(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write_on() -> None:
        storage.objects["team-dev", "a"] = b"theirs"

    with cloud_storage() as storage, pytest.raises(UploadFailed, match=r"^gs://team-dev/a: somebody else writes it"):
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", storage.url)
        storage.before_upload = write_on
        CloudStorage().put("gs://team-dev/a", io.BytesIO(b"ours"))


def test_a_local_package_that_a_job_changed_is_replaced(project: Path) -> None:
    given = props(project, LOCAL_PREFIX)
    PROVIDER.create(given)
    file = project / ".emulator/gcs" / given["uri"].removeprefix("gs://")
    content = file.read_bytes()
    file.write_bytes(b"theirs")
    PROVIDER.create(given)
    assert file.read_bytes() == content
    time = file.stat().st_mtime_ns
    PROVIDER.create(given)
    assert file.stat().st_mtime_ns == time


def test_an_error_of_cloud_storage_names_the_remedy(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = props(project, CLOUD_PREFIX)
    with cloud_storage() as storage, pytest.raises(UploadFailed) as failure:
        storage.refusal = "x@y.z does not have storage.objects.get access"
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", storage.url)
        PROVIDER.create(given)
    assert str(failure.value).startswith(f"{given['uri']}: Cloud Storage refuses: ")
    assert "x@y.z does not have storage.objects.get access" in str(failure.value)
    assert str(failure.value).endswith("your account needs roles/storage.objectUser on the bucket")
    assert "\n" not in str(failure.value)


def test_missing_credentials_name_the_login_command(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STORAGE_EMULATOR_HOST", raising=False)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(project / "none.json"))
    with pytest.raises(UploadFailed, match="run `gcloud auth application-default login`"):
        PROVIDER.create(props(project, CLOUD_PREFIX))


def test_an_unwritable_folder_is_one_line(project: Path) -> None:
    (project / ".emulator").touch()
    with pytest.raises(UploadFailed, match=r"^gs://team-dev/\S+ cannot be written to \S+: Not a directory$"):
        PROVIDER.create(props(project, LOCAL_PREFIX))


def test_files_changed_since_the_preview_are_not_uploaded(project: Path) -> None:
    given = props(project, LOCAL_PREFIX)
    (project / "t/trainer.py").write_text("edited")
    with pytest.raises(UploadFailed) as failure:
        PROVIDER.create(given)
    assert str(failure.value) == f"{given['uri']}: its files changed since the preview; run `pulumi up` again"
    assert not (project / ".emulator").exists()


def test_reading_a_package_returns_its_inputs_or_nothing(project: Path) -> None:
    given = props(project, LOCAL_PREFIX)
    gone = PROVIDER.read("x", given)
    assert (gone.id, gone.outs) == (None, {})
    PROVIDER.create(given)
    found = PROVIDER.read("x", {**given, "__provider": "y"})
    assert (found.id, found.outs, found.inputs) == ("x", given, given)


def test_deleting_keeps_the_package_for_waiting_jobs(project: Path) -> None:
    given = props(project, LOCAL_PREFIX)
    PROVIDER.create(given)
    PROVIDER.delete("x", given)
    assert PROVIDER.read("x", given).id == "x"
