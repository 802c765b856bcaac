"""`vertex-training run`: a declared job with other values, in a target that is gone afterwards."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path

import pytest
from vertex_training import TrainingStack
from vertex_training.cli import main
from vertex_training.errors import DeclarationErrors
from vertex_training.rehearsal.rehearse import Options, rehearse
from vertex_training.rehearsal.run import _report, run
from vertex_training.rehearsal.runner import Ended, RunRefused
from vertex_training.schema import source

from tests.components.images.test_dockerfile import BROKEN, context
from tests.components.targets.gcp.graph import forget_loops, graph
from tests.vertex_emulator.running import IMAGE, until
from vertex_api.job import Job
from vertex_api.names import CUSTOM_JOB

from .declared import WRITE, Write, job, left, lifted

PAGE = Path(__file__).parents[3] / "docs" / "run.md"


RECORD = """
import json, urllib.request
place = os.environ["STORAGE_EMULATOR_HOST"] + "/v1/projects/" + os.environ["CLOUD_ML_PROJECT_ID"]
run = place + "/locations/" + os.environ["CLOUD_ML_REGION"] + "/metadataStores/default/contexts/rates-first"
body = json.dumps({"metadata": {"_params": {"rate": chr(27)}, "_metrics": {"accuracy": 0.9}}}).encode()
headers = {"Content-Type": "application/json"}
urllib.request.urlopen(urllib.request.Request(run, body, headers, method="PATCH"))
"""


def test_values_of_a_run_change_nothing_else(project: Write, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    script = (
        f"{WRITE}; open(p + '/said', 'w').write(' '.join(sys.argv[1:])); print('here', *sys.argv[1:]); "
        """open(p + '/metrics.json', 'w').write('{"accuracy": 0.91234, "train": {"loss": 2}, "by": "me"}')"""
    )
    script += RECORD
    declared = json.loads(lifted(job(script, "${vars.code}", "b")))
    experiment = "projects/acme-dev/locations/us-central1/metadataStores/default/contexts/rates"
    declared["jobSpec"] |= {"experiment": experiment, "experimentRun": f"{experiment}-first"}
    project(f"  train: {json.dumps(declared)}\n")
    before = sorted(path.name for path in Path.cwd().rglob("*"))
    field = "jobSpec.workerPoolSpecs[0].containerSpec.args[1]=other"
    assert run("train", None, ["vars.code=7", field], [], tmp_path / "out") == 0
    shown = capfd.readouterr().out
    assert "workerpool0-0  here 7 other" in shown
    assert "Machine type z9-giga-96 is not supported" in shown and "as the request lifts it" in shown
    assert "train: the experiment rates is made for this run, and goes with it; on Vertex AI it has to be" in shown
    assert "in no experiment" not in shown
    assert "train: in rates-first of its experiment: accuracy 0.9, rate \\u001b\n" in shown, shown
    assert "train: accuracy 0.9123, train.loss 2\n" in shown
    assert f"train: succeeded; its outputs are in {tmp_path / 'out'}" in shown
    assert (tmp_path / "out" / "model" / "said").read_text() == "7 other"
    assert sorted(path.name for path in Path.cwd().rglob("*")) == before
    assert left(tmp_path) == []


@pytest.fixture
def _no_loops() -> Iterator[None]:
    """Nothing of the event loops of Pulumi's mocks is left for a later test."""
    yield
    forget_loops()


NO_DOCKERFILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "nothing there": (lambda file: None, "there is no {0}; write one, or name another with dockerfile"),
    "a folder": (Path.mkdir, "{0} is a folder; rename it, or name a file in it with dockerfile"),
    "a link to nowhere": (lambda file: file.symlink_to("nowhere"), "{0} is a link to nowhere, which is not there"),
    "a pipe": (os.mkfifo, "{0} is no file that can be read, but a socket, a pipe or a device"),
}
"""What stands in the place of a Dockerfile, and what is said of it."""


def write_broken() -> dict[str, str]:
    """Make a folder for each Dockerfile that no builder accepts; return what is to be said of it, by image."""
    said = {}
    for number, (content, message) in enumerate(BROKEN.values(), 1):
        folder = context(Path(f"d{number}"))
        (folder / "Dockerfile").write_bytes(content if isinstance(content, bytes) else content.encode())
        said[folder.name] = f"{folder}/Dockerfile" + message.replace("d1/", f"{folder}/")
    for number, (make, message) in enumerate(NO_DOCKERFILES.values(), len(said) + 1):
        folder = context(Path(f"d{number}"))
        make(folder / "Dockerfile")
        said[folder.name] = message.format(folder / "Dockerfile")
    (foreign := context(Path("foreign"))).joinpath("Dockerfile").write_text(f"FROM {IMAGE}\nCOPY . /app\n")
    Path(os.fsdecode(bytes(foreign) + b"/caf\xe9.txt")).touch()
    said["foreign"] = r"foreign/caf\xe9.txt: its name is no UTF-8; rename the file, or exclude it in .dockerignore"
    Path("flat").touch()
    return {**said, "flat": '"flat" is not a folder in', "gone": '"gone" is not a folder in'}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.usefixtures("_no_loops")
def test_each_broken_dockerfile_is_one_line_in_every_command(
    project: Write, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def start(*_: object, **__: object) -> None:
        raise AssertionError("Docker is asked, or an emulator started")

    monkeypatch.setattr("vertex_training.images.builders.connect", start)
    monkeypatch.setattr("vertex_training.rehearsal.target.throw_away", start)
    said = write_broken()
    images = {name: {"context": name} for name in said}
    project("  train: " + job("pass").replace(IMAGE, "${images.d1}") + f"images: {json.dumps(images)}\n")
    shown = {}
    for command in (["run", "train"], ["rehearse", "--stack", "local"]):
        assert main(command) in (1, 2)
        shown[command[0]] = "".join(capfd.readouterr())
    own = {"vertex-training:target": "local", "vertex-training:include": '["jobs.yaml"]'}
    monkeypatch.setattr("pulumi.runtime.get_config_env", lambda: own)
    monkeypatch.setattr("pulumi.runtime.config.CONFIG", ContextVar("config", default=own))
    for command, is_preview in (("preview", True), ("up", False)):
        with pytest.raises(DeclarationErrors) as refused:
            graph(lambda: TrainingStack("training"), preview=is_preview)
        shown[command] = str(refused.value)
    for text in shown.values():
        for name, message in said.items():
            (line,) = [line for line in text.splitlines() if f"images.{name}." in line or f"images.{name}:" in line]
            assert message in line, (name, line)
        assert "None" not in text and "Traceback" not in text


def ended(outputs: Path) -> Ended:
    """A job that has succeeded and left what is in a folder."""
    return Ended({"state": "JOB_STATE_SUCCEEDED", "jobSpec": {}}, Job(CUSTOM_JOB, {}), outputs, "")


def test_only_files_of_a_job_are_copied(tmp_path: Path) -> None:
    (outputs := tmp_path / "gcs" / "train").mkdir(parents=True)
    (tmp_path / "key").write_text("canary")
    (outputs / "weights.bin").write_text("w")
    (outputs / "run").touch()
    (outputs / "run").chmod(0o4755)
    os.mkfifo(outputs / "pipe")
    for name, target in {"env": "/proc/self/environ", "z": "/dev/zero", "cfg": "/etc", "key": "../../key"}.items():
        (outputs / name).symlink_to(target)
    left_out, said = _report("train", found := ended(outputs), tmp_path / "out")
    assert left_out == (
        "train: not copied, because only files are, and those that can be read: 'cfg', 'env', 'key' and 2 more"
    )
    assert said == f"train: succeeded; its outputs are in {tmp_path / 'out'}"
    copied = {path.name: path.stat().st_mode & 0o7100 for path in (tmp_path / "out").iterdir()}
    assert copied == {"weights.bin": 0, "run": 0o100}
    assert [file.name for file in found.tree.files] == ["run", "weights.bin"]


def test_outputs_and_reports_stay_in_the_checkout(
    project: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project("  train: " + job("pass"))
    (mine := tmp_path / "mine").mkdir()
    Path("runs").symlink_to(mine)
    Path("base.json").symlink_to(mine / "key")
    assert run("train", None, [], [], None) == 2
    assert f"--output: {Path.cwd() / 'runs'} leads out of project/ by a link ({mine}); " in capsys.readouterr().err
    assert rehearse(Options(save=Path("runs/x.json"))) == rehearse(Options(save=Path("base.json"))) == 2
    assert f"--save: {Path.cwd() / 'base.json'} leads out of project/ by a link " in capsys.readouterr().err
    assert source.explain_written(Path.cwd(), tmp_path / "outside" / "x") is None
    assert source.explain_written(Path.cwd(), Path("made/x")) is None


def test_outputs_larger_than_the_disk_are_refused(tmp_path: Path) -> None:
    (outputs := tmp_path / "gcs").mkdir()
    with (outputs / "holes").open("wb") as file:
        file.truncate(1 << 42)
    with pytest.raises(RunRefused, match=r"^train: succeeded, and its outputs cannot be copied: .* has room for "):
        [*_report("train", ended(outputs), tmp_path / "out")]
    assert [*(tmp_path / "out").iterdir()] == []


def test_a_model_lost_in_its_container_is_told(
    project: Write, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    script = "import os; p = os.environ['AIP_MODEL_DIR']; os.makedirs(p); open(p + 'weights', 'w').write('1')"
    project("  train: " + job(script))
    assert run("train", None, [], [], tmp_path / "out") == 0
    lines = capfd.readouterr().out.splitlines()
    lost = "workerpool0-0 has written to the folder /gs: of its container, where all is lost, here and on Vertex AI: "
    assert any(line.startswith(f"train: {lost}AIP_MODEL_DIR is a URI, no path; write to ") for line in lines)
    assert any(f"On this machine: {lost}" in line for line in lines)
    assert lines[-1].startswith("train: succeeded; it wrote no outputs: ")


def test_the_page_sets_an_item_of_a_list(project: Write, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (shown,) = re.findall(r"vertex-training (run .*args\[0\].*)", PAGE.read_text())
    project("  digits: " + job("import sys; print('args', *sys.argv[1:])", "--epochs=9", "b"))
    assert main([*shlex.split(shown), "--output", str(tmp_path / "out")]) == 0
    assert "workerpool0-0  args --epochs=1 b" in capfd.readouterr().out
    field = "jobSpec.workerPoolSpecs[0].containerSpec"
    project("  digits: " + job("import os, sys; print('args', *sys.argv[1:], os.environ['E'])"))
    assert (
        run(
            "digits",
            None,
            [f"{field}.args[0]=a", f"{field}.args[1]=b", f"{field}.env[0]={{name: E, value: x}}"],
            [],
            None,
        )
        == 0
    )
    assert "workerpool0-0  args a b x" in capfd.readouterr().out


def test_metrics_are_printed_when_a_job_ends(project: Write, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    first = job(f"{WRITE}; open(p + '/metrics.json', 'w').write('{{\"loss\": {{\"test\": 0.25}}}}')")
    second = job(f"{WRITE}; open(p + '/metrics.json', 'w')", "${jobs.first.modelDir}")
    project(f"  second: {second}  first: {first}")
    assert run("second", None, [], [], tmp_path / "out") == 0
    lines = capfd.readouterr().out.splitlines()
    assert "first: loss.test 0.25" in lines
    broken = next(line for line in lines if line.startswith("second: its metrics are not read: gs://"))
    assert broken.endswith("/second/model/metrics.json: it is not JSON")


def test_the_exit_code_is_that_of_the_container(
    project: Write, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    script = "import sys; print('/bin/sh: 1: gsutil: not found'); sys.exit(int(sys.argv[1]))"
    project("  train: " + job(script, "${vars.code}"))
    # The vars of a stack for Google Cloud hold, and neither its guardrails nor its secrets are needed.
    assert run("train", "dev", [], [], None) == 5
    shown, said = capfd.readouterr()
    failed, cause = said.splitlines()[-2:]
    assert failed == "train: FAILED: The replica workerpool0-0 exited with a non-zero status of 5."
    assert cause.startswith("train: likely cause: the image has no gsutil: build upon one that has it")
    # The service's text ends with a link to the console, which has no log of this job.
    assert "service  The replica workerpool0-0 exited" in shown and "console.cloud" not in shown
    assert left(tmp_path) == []


def test_jobs_whose_results_are_used_run_before(
    project: Write, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    first = job(f"{WRITE}; open(p + '/x', 'w').write('made')")
    read = "import sys; print(open(sys.argv[1].replace('gs://', '/gcs/') + '/x').read())"
    second = job(read, "${jobs.first.modelDir}")
    project(f"  second: {second}  first: {first}  third: {job('raise SystemExit(9)')}")
    assert run("second", None, [], [], tmp_path / "out") == 0
    shown = capfd.readouterr().out
    assert "workerpool0-0  made" in shown and "third" not in shown


READS_SECRET = """
import base64, json, os, sys
from urllib.request import Request, urlopen

name = f"projects/{os.environ['CLOUD_ML_PROJECT_ID']}/secrets/token/versions/latest"
headers = {"x-goog-api-key": os.environ["SECRET_MANAGER_API_KEY"]}
request = Request(f"{os.environ['SECRET_MANAGER_API_ENDPOINT']}/v1/{name}:access", headers=headers)
data = json.load(urlopen(request))["payload"]["data"]
sys.exit([os.environ["T"], base64.b64decode(data)] != ["canary", b"canary"])
"""


def test_secrets_come_from_variables_and_files(
    project: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The job has them as its declaration says, and as Secret Manager's."""
    project("  train: " + job(READS_SECRET, env="${secrets.token}"))
    assert run("train", "dev", [], [], None) == 2
    reason = "train uses secrets, which only Pulumi can decrypt; export each as a variable, and give --secret token"
    assert reason in capfd.readouterr().err
    (tmp_path / "token").write_text("canary\n")
    assert run("train", "dev", [], [f"token=@{tmp_path / 'token'}"], None) == 0
    shown = "".join(capfd.readouterr())
    assert "canary" not in shown


def test_no_image_is_built_without_its_secrets(
    project: Write, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    project("  train: " + job("pass").replace(IMAGE, "${images.made}"))
    (Path.cwd() / "image").mkdir()
    (Path.cwd() / "image" / "Dockerfile").write_text(f"FROM {IMAGE}\n")
    with Path("jobs.yaml").open("a") as file:
        file.write("images: {made: {context: image, secrets: {index: '${secrets.token}'}}}\n")
    assert run("train", "dev", [], [], None) == 2
    assert "images.made uses secrets, which only Pulumi can decrypt" in capfd.readouterr().err
    assert left(tmp_path) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("trian", None, [], [], None), "trian is no job of this stack; did you mean train?\n"),
        (
            ("other", None, [], [], None),
            "other is no job of this stack; known: train; name the file that declares it in vertex-training:include of "
            "the stack local, which has jobs.yaml\n",
        ),
        (
            ("census", None, [], [], None),
            "census is no job of this stack: training/census.yaml declares it; add that file to "
            "vertex-training:include of the stack local (jobs.yaml)\n",
        ),
        (("train", "prod", [], [], None), 'there is no stack file of "prod"'),
        (("train", None, ["vars.code"], [], None), "--set: vars.code must be vars.NAME=VALUE or FIELD=VALUE"),
        (("train", None, ["vars.cod=1"], [], None), "  --set: vars.cod: nothing uses it; did you mean code?"),
        (("train", None, ["vars.code=${jobs.x}"], [], None), "  --set: vars.code: ${jobs.x} must be written where"),
        (("train", "dev", ["vars.cod=1"], [], None), "  --set: vars.cod: nothing uses it"),
        (("train", None, ["jobSpec.workerPoolSpecs[0].containerSpec.args[1]=b"], [], None), "--set: jobSpec.work"),
        (("train", None, ["args[0]=b"], [], None), "--set: args: unknown field"),
        (("train", None, ["cod=vars"], [], None), "--set: cod: unknown field; did you mean vars.code?"),
        (("train", None, ["jobSpec.workerPoolSpecs[4].replicaCount=1"], [], None), "--set: jobSpec.workerPoolSpecs[4]"),
        (("train", None, ["jobSpec.scheduling.timeout=fast"], [], None), "--set: jobSpec.scheduling.timeout: "),
        (("train", None, [], ["nowhere"], None), "--secret: the variable nowhere is not set"),
        (("train", None, [], ["token=@/dev/zero"], None), "--secret: /dev/zero has more than 64 KiB"),
        (("train", None, [], ["token=@latin"], None), "--secret: latin is no UTF-8, as the values of variables are"),
    ],
)
def test_a_slip_runs_nothing(
    arguments: tuple[str, str | None, list[str], list[str], None],
    message: str,
    project: Write,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    project("  train: " + job("pass", "${vars.code}") if "vars" in str(arguments) else "  train: " + job("pass"))
    for file in ("training/census.yaml", ".hidden/other.yaml", "venv/lib/other.yaml", "venv/pyvenv.cfg"):
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        Path(file).write_text(f"customJobs: {{{Path(file).stem}: {{}}}}\n")
    Path("latin").write_bytes(b"caf\xe9")
    assert run(*arguments) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("vertex-training: ") and message in shown
    assert left(tmp_path) == []


def test_an_adopted_job_is_not_run(project: Write, capsys: pytest.CaptureFixture[str]) -> None:
    adopted = json.dumps({**json.loads(job("pass")), "lifecycle": {"adopt": "1234567890123456789"}})
    project(f"  first: {adopted}\n  second: " + job("pass", "${jobs.first.modelDir}"))
    reasons = {
        "first": r"jobs.yaml:\d+: customJobs.first.lifecycle.adopt: an adopted job is not run; take adopt out .*",
        "second": "second uses results of first, which exists on Vertex AI only; take lifecycle.adopt out of first .*",
        "frist": r"frist is no job of this stack; known: second; name the file .*",
    }
    for name, reason in reasons.items():
        assert run(name, None, [], [], None) == 2
        assert re.fullmatch(f"vertex-training: {reason}\n", capsys.readouterr().err)
    assert main(["rehearse", "--only", "first"]) == 2
    assert re.fullmatch(f"vertex-training: --only: {reasons['first']}\n", capsys.readouterr().err)


def test_a_terminated_run_leaves_nothing(project: Write, tmp_path: Path) -> None:
    """After Ctrl-C and SIGKILL: the same of a rehearsal, which has two such targets."""
    project("  train: " + job("import time; print('begun', flush=True); time.sleep(600)"))
    log = tmp_path / "log"
    with log.open("w") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "vertex_training.cli", "run", "train"],
            env={**os.environ, "TMPDIR": str(tmp_path / "temporary")},
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )
    until(lambda: "begun" in log.read_text(), "the job")
    os.killpg(process.pid, signal.SIGTERM)
    assert process.wait() == 130
    assert left(tmp_path) == []
    assert "Traceback" not in log.read_text()
