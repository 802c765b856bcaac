"""The lock of a data folder: one process serves the folder, and others ask whether it does."""

import fcntl
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.vertex_emulator.running import PATIENCE_SECONDS
from vertex_emulator.data_folder import STARTED, DataFolder, acquire_lock, is_locked, require_endpoint
from vertex_emulator.errors import EmulatorNotRunning, StartError


def test_a_start_outwaits_probes(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    lock.touch()
    asks = lock.open()
    fcntl.flock(asks, fcntl.LOCK_SH)  # as `is_lock_held` does, in a process that is held up meanwhile
    end = threading.Timer(1, asks.close)
    end.start()
    with acquire_lock(lock):
        assert is_locked(lock)
        with pytest.raises(StartError, match="an emulator is already running"):
            acquire_lock(lock)
    end.join(PATIENCE_SECONDS)
    assert not is_locked(lock)


def test_a_removed_folder_is_not_made_again(tmp_path: Path) -> None:
    # Whoever stops a start removes the folder, when the process that it has begun may not have come to it yet.
    command = [sys.executable, "-m", "vertex_emulator", "serve", f"--data={tmp_path / 'gone'}"]
    done = subprocess.run(command, env={**os.environ, STARTED: "1"}, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"the data folder {tmp_path / 'gone'} cannot be used: No such file or directory" in done.stderr
    assert not (tmp_path / "gone").exists()


@pytest.mark.parametrize("name", ["gcs", "emulator.log", "start.lock", "emulator.db"])
def test_a_checkout_brings_no_links(name: str, tmp_path: Path) -> None:
    (mine := tmp_path / "mine").mkdir(mode=0o700)
    (mine / "key").write_text("canary")
    (data := tmp_path / "data").mkdir(mode=0o700)
    (data / name).symlink_to(mine if name == "gcs" else mine / "key")
    with pytest.raises(StartError, match=rf"has links, which may lead anywhere \({name}\); remove them"):
        DataFolder.open(data)
    assert mine.stat().st_mode & 0o777 == 0o700 and (mine / "key").read_text() == "canary"


def test_a_checkout_brings_no_settings_of_gcloud(tmp_path: Path) -> None:
    """Its script sources `virtenv/bin/activate`, and settings may send any file as a token to any address."""
    (tmp_path / "gcs").mkdir()
    (tmp_path / "gcloud").mkdir()
    DataFolder.open(tmp_path)
    (tmp_path / "gcloud/virtenv").mkdir()
    with pytest.raises(StartError, match=r"gcloud/virtenv: gcloud would run what is there"):
        DataFolder.open(tmp_path)
    (tmp_path / "gcloud/virtenv").rmdir()
    tmp_path.chmod(0o755)
    with pytest.raises(StartError, match=r"settings of gcloud in a data folder that others can open \(mode 0755\)"):
        DataFolder.open(tmp_path)


def test_a_checkout_brings_no_identity(tmp_path: Path) -> None:
    (tmp_path / "gcs").mkdir()
    (tmp_path / "identity.json").write_text("{}")
    tmp_path.chmod(0o755)
    with pytest.raises(StartError, match=r"identity.json: says whom jobs act as at Google, .* \(mode 0755\)"):
        DataFolder.open(tmp_path)
    tmp_path.chmod(0o700)
    DataFolder.open(tmp_path)


@pytest.mark.parametrize("name", ["endpoint.json", "lock"])
def test_an_endpoint_of_a_checkout_is_none(tmp_path: Path, name: str) -> None:
    content = {"pid": 1, "host": "h", "port": 1, "url": "u", "version": "1"}
    (tmp_path / "endpoint.json").write_text(json.dumps(content))
    with acquire_lock(tmp_path / "lock"):
        assert require_endpoint(tmp_path).url == "u"
        tmp_path.chmod(0o755)
        with pytest.raises(EmulatorNotRunning):
            require_endpoint(tmp_path)
        tmp_path.chmod(0o700)
        (tmp_path / name).rename(tmp_path / "elsewhere")
        (tmp_path / name).symlink_to("elsewhere")
        with pytest.raises(EmulatorNotRunning):
            require_endpoint(tmp_path)
