"""What prune, export and import do to a data folder with schedules."""

from pathlib import Path

import pytest

from tests.vertex_emulator.jobs import LOCATION
from tests.vertex_emulator.schedules.scheduling_emulator import SchedulingEmulator, output_folder, scheduled_job
from vertex_emulator.database import Database
from vertex_emulator.errors import EmulatorError
from vertex_emulator.pruning.job_pruning import prune_jobs_and_get_report
from vertex_emulator.snapshots.export import export
from vertex_emulator.snapshots.restore import restore
from vertex_emulator.times import now_ns


def test_a_prune_keeps_schedules_and_what_they_refer_to(emulator: SchedulingEmulator) -> None:
    emulator.put()
    for day in (22, 23):
        emulator.move_clock(f"2026-11-{day}T02:00:00Z")
        emulator.finish_runs()
    first, second = map(output_folder, emulator.all_jobs())
    emulator.put("evaluate", jobs=[scheduled_job("evaluate", args=[f"{first}/model"])], paused=True)
    report = prune_jobs_and_get_report(emulator.database, emulator.data, now_ns(), True, False)
    assert (report.jobs, report.kept_outputs) == (2, [first])
    assert second not in report.kept_outputs
    assert [state for _, state in emulator.runs()] == ["SUCCEEDED", "SUCCEEDED"]
    emulator.schedules.fire_and_get_schedule(LOCATION, "evaluate")
    emulator.finish_runs()
    assert emulator.runs("evaluate") == [("2026-11-23T02:00:00Z", "SUCCEEDED")]


def test_an_archive_has_no_schedules_and_replaces_none(emulator: SchedulingEmulator, tmp_path: Path) -> None:
    emulator.put()
    emulator.database.close()
    archive = tmp_path / "archive.tar.gz"
    lines = list(export(emulator.data.root, archive, redacts_env=True))
    assert lines[1:] == ["it has none of the 1 schedules of the folder"]
    with pytest.raises(EmulatorError, match="has schedules; import into another one"):
        restore(emulator.data.root, archive, None)
    restore(tmp_path / "other", archive, None)
    imported = Database(tmp_path / "other" / "emulator.db")
    with imported.read() as transaction:
        assert transaction.schedules.all() == []
    imported.close()
