"""Python packages: their archives, their uploads, and the rules of their declarations."""

import io
import os
import random
import tarfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

import docker
import pytest
from vertex_training.errors import UploadFailed
from vertex_training.packages import PythonPackageProvider, SourceDistribution
from vertex_training.runtime.storage import CloudStorage, StoredObject
from vertex_training.runtime.target import CLOUD_PREFIX, LOCAL_PREFIX
from vertex_training.schema import shapes

from tests.components.projects import INCLUDING, load, problems, write
from tests.standins.cloud_storage import cloud_storage

BASE = "python:3.11-slim-bookworm"
SETUP = "from setuptools import setup\nsetup(name='team-trainer', version='1', packages=['trainer'])\n"
FILES = {
    "t/setup.py": SETUP,
    "t/README.md": "x",
    "t/trainer/__init__.py": "",
    "t/trainer/task.py": "import sys\nfrom trainer import data\nprint(__name__, data.VALUE, sys.argv[1:])\n",
    "t/trainer/data.py": "VALUE = 7\n",
}
FOLDER = {"path": "t"}
SCRIPT = {"script": "train.py", "requirements": ["setuptools>=1"]}


def distribution(root: Path, package: dict[str, Any], name: str = "trainer") -> SourceDistribution:
    return SourceDistribution.of(root, name, cast(shapes.PythonPackage, package))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write(tmp_path, {**FILES, "train.py": "import sys\nprint(__name__, sys.argv[1:])\n"})
    return tmp_path


def members(archive: bytes) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return {member.name: member for member in tar.getmembers()}


def test_a_folder_is_archived_without_metadata(project: Path) -> None:
    found = members(distribution(project, FOLDER).to_bytes())
    assert list(found) == [f"trainer/{path.removeprefix('t/')}" for path in sorted(FILES)]
    for member in found.values():
        assert (member.mtime, member.uid, member.gid, member.uname, member.gname) == (0, 0, 0, "", "")


def test_a_script_is_packaged_as_by_the_sdk(project: Path) -> None:
    archive = distribution(project, SCRIPT).to_bytes()
    top = "aiplatform_custom_trainer_script-0.1"
    inner = f"{top}/aiplatform_custom_trainer_script"
    assert list(members(archive)) == [f"{top}/PKG-INFO", f"{inner}/__init__.py", f"{inner}/task.py", f"{top}/setup.py"]
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        stream = tar.extractfile(f"{inner}/task.py")
        assert stream and stream.read() == (project / "train.py").read_bytes()


@pytest.mark.parametrize("package", [FOLDER, SCRIPT], ids=["a folder", "a script"])
def test_the_archive_is_reproducible(project: Path, tmp_path: Path, package: dict[str, Any]) -> None:
    one = distribution(project, package)
    names = [*FILES, "train.py"]
    random.Random(7).shuffle(names)
    other = tmp_path / "far" / "other"
    previous = os.umask(0o077)
    try:
        write(other, {name: (project / name).read_text() for name in names})
    finally:
        os.umask(previous)
    os.utime(other / "train.py", (1, 1))
    assert distribution(other, package).tag == one.tag
    assert distribution(other, package).to_bytes() == one.to_bytes()
    assert one.to_bytes()[4:8] == b"\0\0\0\0"  # when it was compressed, as gzip notes it


EDITS: dict[str, Callable[[Path], object]] = {
    "bytes": lambda path: (path / "trainer/data.py").write_text("VALUE = 8\n"),
    "a new file": lambda path: (path / "trainer/new.py").touch(),
    "a file less": lambda path: (path / "README.md").unlink(),
    "a file's name": lambda path: (path / "README.md").rename(path / "README.rst"),
    "an executable bit": lambda path: (path / "setup.py").chmod(0o755),
}


@pytest.mark.parametrize("edit", EDITS)
def test_the_digest_changes_with(project: Path, edit: str) -> None:
    before = distribution(project, FOLDER).tag
    EDITS[edit](project / "t")
    assert distribution(project, FOLDER).tag != before


def test_a_script_digest_covers_bytes_and_requirements(project: Path) -> None:
    before = distribution(project, SCRIPT).tag
    assert distribution(project, {**SCRIPT, "requirements": ["rich"]}).tag != before
    (project / "train.py").write_text("edited")
    assert distribution(project, SCRIPT).tag != before


LEFT_BEHIND = [
    "trainer/__pycache__/task.cpython-311.pyc",
    "trainer/task.pyc",
    "team_trainer.egg-info/PKG-INFO",
    "build/lib/trainer/task.py",
    "dist/team-trainer-1.tar.gz",
    ".git/HEAD",
    ".venv/bin/python",
]


def test_files_of_development_tools_are_excluded(project: Path) -> None:
    before = distribution(project, FOLDER)
    archive = before.to_bytes()
    write(project / "t", dict.fromkeys(LEFT_BEHIND, "x"))
    assert distribution(project, FOLDER).to_bytes() == archive
    write(project / "t", {"trainer/build/data.txt": "x"})  # a folder of that name within the package is its own
    assert distribution(project, FOLDER).to_bytes() != archive


def test_the_digests_are_stable_across_versions(project: Path) -> None:
    # Another digest would run every job of every user again.
    assert (distribution(project, FOLDER).tag, distribution(project, SCRIPT).tag) == (
        "f7b4c4b5fd757567",
        "0ee343a57717803d",
    )


@pytest.mark.parametrize(
    ("package", "module", "said"),
    [
        (FOLDER, "trainer.task", "__main__ 7 ['--epochs=3']\n"),
        (SCRIPT, "aiplatform_custom_trainer_script.task", "__main__ ['--epochs=3']\n"),
    ],
    ids=["a folder", "a script"],
)
def test_pip_installs_it_and_its_module_runs(project: Path, package: dict[str, Any], module: str, said: str) -> None:
    (project / "package.tar.gz").write_bytes(distribution(project, package).to_bytes())
    # The image's own setuptools: a build in isolation would ask a package index for one.
    install = "pip install --quiet --no-build-isolation --root-user-action=ignore /in/package.tar.gz"
    client = docker.from_env()
    try:
        output = client.containers.run(
            BASE,
            ["sh", "-c", f"{install} && python -m {module} --epochs=3"],
            volumes={str(project): {"bind": "/in", "mode": "ro"}},
            network_mode="none",
            remove=True,
        )
    finally:
        client.close()
    assert output.decode() == said


PARENT = "projects/p/locations/us-central1"
PROVIDER = PythonPackageProvider()


@pytest.fixture
def team_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write(tmp_path, {"t/pyproject.toml": "", "t/trainer.py": "print(1)\n"})
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VERTEX_EMULATOR_DATA", raising=False)
    return tmp_path


def props(team_project: Path, parent: str) -> dict[str, Any]:
    """What the package `trainer` of the folder `t` has as inputs."""
    tag = SourceDistribution.of(team_project, "trainer", {"path": "t"}).tag
    uri = f"gs://team-dev/staging/packages/trainer-{tag}.tar.gz"
    return {"uri": uri, "parent": parent + PARENT, "package": {"path": "t"}, "files": {}}


def test_a_local_package_is_readable(team_project: Path) -> None:
    given = props(team_project, LOCAL_PREFIX)
    created = PROVIDER.create(given)
    assert (created.id, created.outs) == ("gs://team-dev/staging/packages/trainer", given)
    file = team_project / ".emulator/gcs" / given["uri"].removeprefix("gs://")
    with tarfile.open(file) as tar:
        assert tar.getnames() == ["trainer/pyproject.toml", "trainer/trainer.py"]
    assert [file.name] == [each.name for each in file.parent.iterdir()]
    assert oct(file.stat().st_mode & 0o777) == "0o644"
    assert oct(file.parent.stat().st_mode & 0o777) == "0o777"


def test_package_is_written_through_no_link(team_project: Path) -> None:
    (team_project / ".emulator/gcs/team-dev").mkdir(parents=True)
    (team_project / "outside").mkdir()
    (team_project / ".emulator/gcs/team-dev/staging").symlink_to(team_project / "outside")
    with pytest.raises(UploadFailed, match="cannot be written"):
        PROVIDER.create(props(team_project, LOCAL_PREFIX))
    assert list((team_project / "outside").iterdir()) == []


def test_new_data_folder_is_closed_to_others(team_project: Path) -> None:
    PROVIDER.create(props(team_project, LOCAL_PREFIX))
    assert oct((team_project / ".emulator").stat().st_mode & 0o777) == "0o700"


def test_in_the_cloud_a_package_is_uploaded_once(
    team_project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = props(team_project, CLOUD_PREFIX)
    with cloud_storage() as storage:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", storage.url)
        PROVIDER.create(given)
        PROVIDER.update("", {}, given)
    name = given["uri"].removeprefix("gs://team-dev/")
    content = SourceDistribution.of(team_project, "trainer", {"path": "t"}).to_bytes()
    assert storage.objects == {("team-dev", name): content}
    assert storage.uploads == 1
    assert capsys.readouterr().out == f"trainer: uploaded {name.rpartition('/')[2]}\n"


@pytest.mark.parametrize("is_meanwhile", [False, True])
def test_what_others_wrote_is_replaced(
    team_project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], is_meanwhile: bool
) -> None:
    given = props(team_project, CLOUD_PREFIX)
    content = SourceDistribution.of(team_project, "trainer", {"path": "t"}).to_bytes()
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


def test_an_equal_upload_of_others_counts(team_project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with cloud_storage() as storage:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", storage.url)
        storage.before_upload = partial(storage.objects.__setitem__, ("team-dev", "a"), b"ours")
        stored = CloudStorage().put("gs://team-dev/a", io.BytesIO(b"ours"))
    assert stored == StoredObject("1", is_new=False)


def test_a_composed_object_is_replaced(team_project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with cloud_storage() as storage:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", storage.url)
        storage.objects["team-dev", "a"], storage.has_md5 = b"ours", False
        stored = CloudStorage().put("gs://team-dev/a", io.BytesIO(b"ours"))
    assert stored == StoredObject("2", is_new=True)


def test_an_object_that_others_write_on_is_named(team_project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write_on() -> None:
        storage.objects["team-dev", "a"] = b"theirs"

    with cloud_storage() as storage, pytest.raises(UploadFailed, match=r"^gs://team-dev/a: somebody else writes it"):
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", storage.url)
        storage.before_upload = write_on
        CloudStorage().put("gs://team-dev/a", io.BytesIO(b"ours"))


def test_a_changed_local_package_is_replaced(team_project: Path) -> None:
    given = props(team_project, LOCAL_PREFIX)
    PROVIDER.create(given)
    file = team_project / ".emulator/gcs" / given["uri"].removeprefix("gs://")
    content = file.read_bytes()
    file.write_bytes(b"theirs")
    PROVIDER.create(given)
    assert file.read_bytes() == content
    time = file.stat().st_mtime_ns
    PROVIDER.create(given)
    assert file.stat().st_mtime_ns == time


def test_a_storage_error_names_the_remedy(team_project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = props(team_project, CLOUD_PREFIX)
    with cloud_storage() as storage, pytest.raises(UploadFailed) as failure:
        storage.refusal = "x@y.z does not have storage.objects.get access"
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", storage.url)
        PROVIDER.create(given)
    assert str(failure.value).startswith(f"{given['uri']}: Cloud Storage refuses: ")
    assert "x@y.z does not have storage.objects.get access" in str(failure.value)
    assert str(failure.value).endswith("your account needs roles/storage.objectUser on the bucket")
    assert "\n" not in str(failure.value)


def test_missing_credentials_name_the_login_command(team_project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STORAGE_EMULATOR_HOST", raising=False)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(team_project / "none.json"))
    with pytest.raises(UploadFailed, match="run `gcloud auth application-default login`"):
        PROVIDER.create(props(team_project, CLOUD_PREFIX))


def test_an_unwritable_folder_is_one_line(team_project: Path) -> None:
    (team_project / ".emulator").touch()
    with pytest.raises(UploadFailed, match=r"^gs://team-dev/\S+ cannot be written to .+: Not a directory$"):
        PROVIDER.create(props(team_project, LOCAL_PREFIX))


def test_files_changed_since_the_preview_are_not_uploaded(team_project: Path) -> None:
    given = props(team_project, LOCAL_PREFIX)
    (team_project / "t/trainer.py").write_text("edited")
    with pytest.raises(UploadFailed) as failure:
        PROVIDER.create(given)
    assert str(failure.value) == f"{given['uri']}: its files changed since the preview; run `pulumi up` again"
    assert not (team_project / ".emulator").exists()


def test_reading_a_package_returns_its_inputs(team_project: Path) -> None:
    given = props(team_project, LOCAL_PREFIX)
    gone = PROVIDER.read("x", given)
    assert (gone.id, gone.outs) == (None, {})
    PROVIDER.create(given)
    found = PROVIDER.read("x", {**given, "__provider": "y"})
    assert (found.id, found.outs, found.inputs) == ("x", given, given)


def test_deleting_keeps_the_package_for_waiting_jobs(team_project: Path) -> None:
    given = props(team_project, LOCAL_PREFIX)
    PROVIDER.create(given)
    PROVIDER.delete("x", given)
    assert PROVIDER.read("x", given).id == "x"


EITHER = "needs either the path of a folder with a pyproject.toml or setup.py, or a script"


@pytest.mark.parametrize(
    ("declared", "problem"),
    [
        ("{}", f"2: packages.trainer: {EITHER}"),
        ("{path: t, script: train.py}", f"2: packages.trainer: {EITHER}"),
        ("{path: /t}", '2: packages.trainer.path: "/t" must be relative to the project\'s folder'),
        (
            "{path: t/trainer}",
            '2: packages.trainer.path: "t/trainer" is not a folder with a pyproject.toml or setup.py in {root}/; write '
            "one for pip",
        ),
        ("{script: run.sh}", '2: packages.trainer.script: "run.sh" is not a Python file in {root}/'),
        ("{script: t/task.py}", '2: packages.trainer.script: "t/task.py" is not a Python file in {root}/'),
        (
            "{path: t, requirements: [rich]}",
            "2: packages.trainer.requirements: is for a script; declare those of a folder in its pyproject.toml or "
            "setup.py",
        ),
        ("{paths: t}", "2: packages.trainer.paths: unknown field; did you mean path?"),
    ],
)
def test_an_invalid_python_package_is_rejected(project: Path, declared: str, problem: str) -> None:
    write(project, {"run.sh": ""})
    (found,) = problems(project, INCLUDING, jobs=f"packages:\n  trainer: {declared}\n")
    assert found == "jobs.yaml:" + problem.replace("{root}", project.name)


JOB = """\
packages: {trainer: {path: t}}
customJobs:
  train:
    jobSpec:
      workerPoolSpecs:
        - machineSpec: {machineType: n1-standard-4}
          pythonPackageSpec: {executorImageUri: x, pythonModule: trainer.task, packageUris: ["${packages.NAME}"]}
"""


def test_a_job_refers_to_its_package(project: Path) -> None:
    settings = load(project, INCLUDING, jobs=JOB.replace("NAME", "trainer"))
    assert settings.packages == {"trainer": FOLDER}
    (job,) = settings.jobs
    assert job.job.job_spec["workerPoolSpecs"][0]["pythonPackageSpec"]["packageUris"] == ["${packages.trainer}"]


def test_an_undeclared_package_is_reported(project: Path) -> None:
    (problem,) = problems(project, INCLUDING, jobs=JOB.replace("NAME", "trainr"))
    assert problem.endswith("packageUris[0]: ${packages.trainr} is not declared; did you mean trainer?")
