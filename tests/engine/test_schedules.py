"""A schedule of the target local through its life: created, run, edited and removed."""

import re
import time
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from vertex_training.review.document import PreviewDocument
from vertex_training.review.review import build_review

from tests.engine.golden import load_golden_steps
from tests.engine.preview import select_changes
from tests.engine.project import PARENT, Project
from tests.engine.record_previews import preview_as_json

ID = "vertex-training_local_nightly"
PATH = f"/vertex_emulator/{PARENT}/schedules/{ID}"
SECONDS = 120


def choose_hour() -> int:
    """Return an hour of Berlin that is hours away, and that there is on every day: clocks change at night."""
    return 18 if datetime.now(ZoneInfo("Europe/Berlin")).hour < 12 else 6


def wait_for_end_of_run(project: Project) -> dict[str, Any]:
    """Return the last run once it has ended."""
    deadline = time.monotonic() + SECONDS
    while (run := project.request("GET", PATH)["runs"][0])["state"] == "RUNNING":
        assert time.monotonic() < deadline, run
        time.sleep(0.2)
    return dict(run)


def test_a_schedule_lives_with_its_stack(project: Project) -> None:
    project.job["lifecycle"] = {"run": "scheduled"}
    hour = choose_hour()
    nightly = {"cron": f"0 {hour} * * *", "timeZone": "Europe/Berlin", "job": "train"}
    project.declarations["schedules"] = {"nightly": nightly}
    project.declare()
    assert project.update().steps == load_golden_steps("schedule-first")
    status = project.outputs()["schedules"]["nightly"]
    next_hour = re.fullmatch(r"\d{4}-\d\d-\d\dT(\d\d):00:00Z", status["nextTime"])
    assert next_hour and hour - int(next_hour[1]) in (1, 2), status
    assert status.keys() == {"nextTime"}
    assert project.outputs()["jobs"] == {}
    assert project.list_jobs() == []
    output = project.pulumi("preview", "--stack", "local", "--expect-no-changes")
    assert re.search(rf"next runs: (\w{{3}} \d{{4}}-\d\d-\d\d {hour:02}:00 CES?T(, )?){{3}}", output), output

    project.request("POST", f"{PATH}:fire")
    run = wait_for_end_of_run(project)
    project.up("--refresh")
    last_run = project.outputs()["schedules"]["nightly"]["lastRun"]
    assert (last_run["runId"], last_run["state"]) == (run["runId"], "SUCCEEDED")
    folder = f"nightly/{run['runId']}/train/model"
    assert last_run["modelDirs"] == {"train": f"gs://vertex-training-local/{folder}/"}
    assert (project.data / "gcs" / "vertex-training-local" / folder / "model.txt").exists()
    (job,) = project.list_jobs()
    assert (job["displayName"], job["labels"]) == (
        f"train-{run['runId']}",
        {"pulumi_schedule": ID, "pulumi_name": "train"},
    )

    nightly["cron"] = f"0 {hour + 1} * * *"
    project.declare()
    assert project.steps() == load_golden_steps("schedule-cron-edit")
    nightly["cron"] = f"0 {hour} * * *"
    project.edit_code()
    project.declare()
    preview = preview_as_json(project)
    assert select_changes(preview) == load_golden_steps("schedule-code-edit")
    (finding,) = build_review(PreviewDocument.parse(preview, "preview")).schedules
    assert [(cause.kind, cause.name) for cause in finding.causes] == [("image", "trainer")]
    assert finding.next_times.startswith("next runs: ")
    project.up()
    nightly["paused"] = True
    project.declare()
    assert project.update().steps == load_golden_steps("schedule-pause")
    project.assert_no_changes()
    assert project.outputs()["schedules"]["nightly"] == {"lastRun": last_run}
    assert project.request("GET", PATH)["paused"] is True
    project.destroy()
