"""The files of an ended container, on the real Docker."""

from pathlib import Path

from tests.vertex_emulator.replicas.test_containers import CHIEF, replica_spec
from tests.vertex_emulator.running import until
from vertex_emulator.names import new_id
from vertex_emulator.replicas.executor import Executor


def test_files_are_found_until_the_container_goes(executor: Executor, tmp_path: Path) -> None:
    script = "mkdir -p gs:/b/run/model pkg/sub; touch pkg/task.py pkg/sub/a.py; head -c 9000000 /dev/zero > pkg/sub/z"
    replica = replica_spec(tmp_path, script, new_id())
    executor.start(replica)
    until(lambda: executor.statuses(replica.job)[CHIEF].phase == "exited", "its end")
    remains = executor.remains(replica.job, CHIEF)
    assert remains is not None
    assert (remains.folder, remains.words) == ("/", ("sh", "-c", script))
    assert [remains.has(each) for each in ("gs:", "gs:/b/run/model/", "gs:/other", "no")] == [True, True, False, False]
    assert remains.files("pkg", 1) in (["sub/a.py"], ["task.py"])
    # The large file is beyond what is read.
    assert "sub/a.py" in remains.files("pkg", 9) and remains.files("no", 9) == []
    executor.remove(replica.job)
    assert executor.remains(replica.job, CHIEF) is None
