"""Inputs of a rehearsal: objects from a folder of this machine, and what is said of those that are not in it."""

import json
import os
from pathlib import Path
from shlex import quote
from typing import Any

import pytest
from vertex_training.cli import main
from vertex_training.rehearsal import inputs
from vertex_training.rehearsal.rehearse import Options, rehearse
from vertex_training.rehearsal.runner import RunRefused

from tests.blocks import taken
from vertex_api.job import Job
from vertex_api.names import CUSTOM_JOB

from .declared import Write, everything, job, left

READ = "import sys; p = sys.argv[1].replace('gs://', '/gcs/'); print(open(p).read(), open(p, 'a').write('changed'))"


def test_objects_come_from_the_folder(project: Write, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    project(f"  has: {job(READ, 'gs://acme-data/a/x.csv')}  lacks: {job(READ, 'gs://acme-data/${vars.code}/y.csv')}")
    (tmp_path / "data" / "acme-data" / "a").mkdir(parents=True)
    (object_ := tmp_path / "data" / "acme-data" / "a" / "x.csv").write_text("1,2")
    object_.chmod(0o400)
    assert rehearse(Options(stack="dev", inputs=tmp_path / "data", save=tmp_path / "saved.json")) == 1
    shown = capfd.readouterr().out
    has, lacks = json.loads((tmp_path / "saved.json").read_text())["jobs"]
    assert (has["outcome"], lacks["outcome"]) == ("succeeded", "failed")
    assert "missingInputs" not in has and lacks["missingInputs"] == ["gs://acme-data/5/y.csv"]
    assert "found no gs://acme-data/5/y.csv; if it is an input:" in shown
    folder = f"{tmp_path}/data/acme-data/5"
    into, content = quote(folder), quote(f"{folder}/")
    assert f"mkdir -p {into} && gcloud storage cp --recursive gs://acme-data/5/y.csv {content}\n" in shown
    assert object_.read_text() == "1,2" and left(tmp_path) == []


CHANGE = """
import json, os, sys, urllib.request
data, own = "/gcs/acme-data/", os.environ["AIP_MODEL_DIR"].replace("gs://", "/gcs/")
read = open(data + "x.csv").read()
open(data + "x.csv", "r+").write("9")
os.remove(data + "gone.csv")
os.makedirs(own, exist_ok=True)
open(own + "new", "w").close()
storage = os.environ["STORAGE_EMULATOR_HOST"]
put = f"{storage}/upload/storage/v1/b/acme-data/o?uploadType=media&name=kept.csv"
urllib.request.urlopen(urllib.request.Request(put, b"other", {"Content-Type": "text/plain"}))
listed = json.load(urllib.request.urlopen(f"{storage}/storage/v1/b/acme-data/o"))["items"]
files = [name for _, _, names in os.walk("/gcs") for name in names]
print(read, open(data + "kept.csv").read(), [each["name"] for each in listed], "secrets.json" in files)
"""


def test_a_run_sees_the_buckets_of_its_stack(project: Write, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    project(f"  train: {job(CHANGE, 'gs://acme-data/x.csv')}")
    held = Path.cwd() / ".emulator" / "gcs"
    names = ("acme-data/x.csv", "acme-data/gone.csv", "acme-data/kept.csv", "one-off-local/train/1a2b3c4d/model/old")
    for name in names:
        (held / name).parent.mkdir(parents=True, exist_ok=True)
        (held / name).write_text("1,2")
    (held.parent / "secrets.json").write_text("canary")
    before = everything(held)
    output = str(tmp_path / "out")
    assert main(["run", "train", "--output", output]) == 0
    assert "workerpool0-0  1,2 other ['kept.csv', 'x.csv'] False\n" in capfd.readouterr().out
    assert [*everything(tmp_path / "out")] == [f"{output}/model/new"]
    assert everything(held) == before

    assert main(["run", "train", "--no-inputs"]) == 1
    said = capfd.readouterr().err
    assert "train: found no gs://acme-data/x.csv; if it is an input:\n" in said
    assert "mkdir -p inputs/acme-data && gcloud storage cp --recursive gs://acme-data/x.csv inputs/acme-data/\n" in said
    assert rehearse(Options(only=["train"], save=tmp_path / "saved.json")) == 0
    (told,) = json.loads((tmp_path / "saved.json").read_text())["jobs"]
    assert (told["buckets"], told["files"]["names"]) == (["acme-data"], ["model/new"])
    needed = [each for each in told["permissions"] if each.endswith("gs://acme-data")]
    assert needed == [f"storage.objects.{verb} on gs://acme-data" for verb in ("create", "delete", "list")]
    assert everything(held) == before and left(tmp_path) == []


def test_a_run_takes_inputs_in_place_of_the_stack_s(
    project: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    project("  train: " + job("pass"))
    (tmp_path / "data" / "acme-data").mkdir(parents=True)
    (Path.cwd() / ".emulator" / "gcs" / "acme-held").mkdir(parents=True)
    seen: list[str] = []

    def stop(runner: Any, *_: object, **__: object) -> None:
        seen.extend(each.name for each in runner.buckets.glob("*"))
        raise RunRefused("enough")

    monkeypatch.setattr("vertex_training.rehearsal.runner.Runner.run", stop)
    for options in ([], ["--inputs", "../data"], ["--no-inputs"]):
        assert main(["run", "train", *options]) == 2
    assert seen == ["acme-held", "acme-data"]
    assert main(["run", "train", "--inputs", "none"]) == 2
    assert f"vertex-training: --inputs: {Path.cwd()}/none: No such file or directory" in capfd.readouterr().err


def named(*args: str, **env: str) -> Job:
    """A job that gives these arguments and variables to its replica."""
    variables = [{"name": name, "value": value} for name, value in env.items()]
    pool = {"containerSpec": {"imageUri": "x", "args": [*args], "env": variables}}
    return Job(CUSTOM_JOB, {"jobSpec": {"workerPoolSpecs": [pool]}})


def test_what_a_job_names_is_looked_for(tmp_path: Path) -> None:
    (tmp_path / "acme-data" / "a").mkdir(parents=True)
    (tmp_path / "acme-data" / "a" / "part-0.csv").touch()
    there = ("gs://acme-data", "--data=gs://acme-data/a/", "/gcs/acme-data/a/part-0.csv", "gs://acme-data/a/part-*")
    assert inputs.missing(named(*there, A="gs://acme-data/a/part-{shard}.csv"), (), tmp_path) == []
    found = inputs.missing(
        named("--in=gs://acme-data/b,gs://other-data/", "cat '/gcs/acme-data/c' gs://acme-data/d/*.csv", "x/gcs/no/a"),
        (),
        tmp_path,
    )
    absent = ["gs://acme-data/b", "gs://other-data", "gs://acme-data/c", "gs://acme-data/d/*.csv"]
    assert found == absent
    assert inputs.missing(named("gs://out/run/model/x", "gs://out/runs"), ["gs://out/run/"], tmp_path) == [
        "gs://out/runs"
    ]


@pytest.mark.parametrize(
    ("uri", "command"),
    [
        ("gs://acme/a/x.csv", "mkdir -p d/acme/a && gcloud storage cp --recursive gs://acme/a/x.csv d/acme/a/"),
        ("gs://acme/a/*.csv", "mkdir -p d/acme/a && gcloud storage cp --recursive 'gs://acme/a/*.csv' d/acme/a/"),
        ("gs://acme", "mkdir -p d/acme && gcloud storage cp --recursive 'gs://acme/*' d/acme/"),
    ],
)
def test_the_command_copies_to_its_folder(uri: str, command: str) -> None:
    assert inputs.advice(uri, "d/") == command
    assert inputs.advice(uri, "") == command.replace("d/acme", "inputs/acme")


def test_the_page_s_command_copies_public_data() -> None:
    (command,) = taken("docs/google.md", "sh", "mkdir -p .emulator/gcs")
    assert command.strip() == inputs.advice("gs://cloud-samples-data/ai-platform", ".emulator/gcs")


def broken(folder: Path, **links: Any) -> Path:
    """A folder with a folder of a bucket, and links to what they name."""
    (folder / "acme-data").mkdir(parents=True)
    for name, target in links.items():
        (folder / "acme-data" / name).symlink_to(target)
    return folder


def test_links_inside_are_followed_in_a_copy(tmp_path: Path) -> None:
    (tmp_path / "data" / "shared").mkdir(parents=True)
    (tmp_path / "data" / "shared" / "x").write_text("1")
    inputs.put(broken(tmp_path / "data", a="../shared"), tmp_path / "gcs")
    copy = tmp_path / "gcs" / "acme-data" / "a" / "x"
    assert copy.read_text() == "1" and not copy.parent.is_symlink()
    assert copy.stat().st_mode & 0o777 == 0o666 and copy.parent.stat().st_mode & 0o777 == 0o777


@pytest.mark.parametrize("target", ["/proc/self/environ", "/dev/zero", "../../data-of-mine/key", "../../data-of-mine"])
def test_links_lead_to_no_other_files(target: str, tmp_path: Path) -> None:
    (tmp_path / "data-of-mine").mkdir()
    (tmp_path / "data-of-mine" / "key").write_text("canary")
    folder = broken(tmp_path / "data", part=target)
    with pytest.raises(RunRefused, match=f"^--inputs: {folder}/acme-data/part: leads out of {folder} "):
        inputs.put(folder, tmp_path / "gcs")
    assert not (tmp_path / "gcs").exists()


def test_a_few_links_do_not_become_many_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "_MAX_LINKED", 1000)
    for level in range(12):
        broken(tmp_path / "data" / f"acme-{level}", a=f"../../acme-{level + 1}", b=f"../../acme-{level + 1}")
    (tmp_path / "data" / "acme-12").mkdir()
    with pytest.raises(RunRefused, match="links lead to more than 1,000 objects; remove "):
        inputs.put(tmp_path / "data", tmp_path / "gcs")


def test_inputs_larger_than_the_disk_are_refused(tmp_path: Path) -> None:
    with (broken(tmp_path / "data") / "acme-data" / "holes").open("wb") as file:
        file.truncate(1 << 42)
    with pytest.raises(RunRefused, match=r"has room for [0-9,]+ bytes, and 4,398,046,511,104 are to be copied"):
        inputs.put(tmp_path / "data", tmp_path / "gcs")


def test_a_folder_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    def refusal(folder: Path) -> str:
        with pytest.raises(RunRefused) as error:
            inputs.put(folder, tmp_path / "gcs")
        return str(error.value)

    assert refusal(tmp_path / "none") == f"--inputs: {tmp_path}/none: No such file or directory"
    circle = broken(tmp_path / "circle", a=".")
    assert "Too many levels of symbolic links" in refusal(circle)
    (circle / "acme-data" / "a").unlink()
    os.mkfifo(circle / "acme-data" / "pipe")
    assert refusal(circle) == f"--inputs: {circle}/acme-data/pipe: is no file; remove it"
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "train.csv").touch()
    assert "plain/train.csv must be a folder with the name of a bucket" in refusal(tmp_path / "plain")
