"""`gcloud storage` on the bucket folder."""

import os
from pathlib import Path

from tests.clients.conftest import Gcloud
from tests.vertex_emulator.running import RunningEmulator


def test_files_go_to_a_bucket_and_come_back(gcloud: Gcloud, emulator: RunningEmulator, tmp_path: Path) -> None:
    small, large = tmp_path / "small.txt", tmp_path / "large.bin"
    small.write_text("small\n")
    large.write_bytes(os.urandom(9 << 20))  # beyond 8 MiB gcloud uploads resumably
    gcloud("storage", "buckets", "create", "gs://by-gcloud")
    gcloud("storage", "cp", str(small), str(large), "gs://by-gcloud/in/")
    assert (emulator.data / "gcs/by-gcloud/in/large.bin").read_bytes() == large.read_bytes()
    (emulator.data / "gcs/by-gcloud/from container").write_text("seen at once")
    listed = gcloud("storage", "ls", "gs://by-gcloud/**").stdout.split("\n")[:-1]
    assert listed == [f"gs://by-gcloud/{name}" for name in ("from container", "in/large.bin", "in/small.txt")]
    (tmp_path / "back").mkdir()
    gcloud("storage", "cp", "-r", "gs://by-gcloud", str(tmp_path / "back"))
    assert (tmp_path / "back/by-gcloud/in/large.bin").read_bytes() == large.read_bytes()
    gcloud("storage", "rm", "-r", "gs://by-gcloud")
    assert not (emulator.data / "gcs/by-gcloud").exists()
