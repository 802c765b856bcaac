"""Requests about schedules: each malformed one is refused by name, and changes nothing."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.vertex_api.jobs import ABSENT, edited
from tests.vertex_emulator.jobs import LOCATION
from tests.vertex_emulator.schedules.emulator import (
    SchedulingEmulator,
    create_emulator,
    scheduled_job,
    scheduled_search,
)
from vertex_emulator.errors import ApiError

GOOD = {
    "cron": "0 2 * * *",
    "timeZone": "Europe/Berlin",
    "paused": False,
    "overlap": "allow",
    "jobs": [scheduled_search("tune"), scheduled_job("train", args=["${jobs.tune.bestTrial.id}"])],
}
WRONG = (None, "", "zzz", "é\x00", 7, -1, 1.5, 10**30, True, [], {}, [None], ["x"], {"a": 1}, ABSENT)
PATHS = [
    *((field,) for field in GOOD),
    ("jobs", 0),
    *(("jobs", 0, field) for field in ("name", "collection", "body")),
    ("jobs", 0, "body", "trialJobSpec", "workerPoolSpecs", 0),
]
OPTIONAL = (("timeZone",), ("paused",), ("overlap",))
CASES: list[tuple[Any, str]] = [
    ({"cron": "0 2 * *"}, 'cron; Message: "0 2 * *" has 4 fields; write five'),
    ({"cron": "@daily"}, "cron; Message: "),
    ({"cron": "0 25 * * *"}, "cron; Message: "),
    (
        {"timeZone": "Europe/Berln"},
        'time_zone; Message: "Europe/Berln" is not a time zone; did you mean',
    ),
    ({"overlap": "Skip"}, "overlap; Message: "),
    ({"jobs": []}, "jobs; Message: is required"),
    ({"crom": "x"}, "crom; Message: unknown field"),
    (
        {"jobs": [scheduled_job("a"), scheduled_job("a")]},
        'jobs[1].name; Message: is "a"; it must be a name that',
    ),
    (
        {"jobs": [{**scheduled_job("a"), "collection": "models"}]},
        'jobs[0].collection; Message: is "models"; it must',
    ),
    (
        {"jobs": [scheduled_job("a", args=["${jobs.later.name}"]), scheduled_job("later")]},
        "jobs[0].body; Message: refers to ${jobs.later.name}, which is not a result of an earlier job",
    ),
    ({"jobs": [scheduled_job("a", image_uri=5)]}, "jobs[0].body (a): List of found errors:"),
    ({"jobs": [scheduled_job("a", command="x")]}, "Field: job_spec.worker_pool_specs[0].container_spec.command;"),
]


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SchedulingEmulator]:
    created = create_emulator(tmp_path_factory.mktemp("schedules"))
    created.move_clock("2026-11-22T00:00:00Z")
    created.schedules.put(LOCATION, "nightly", GOOD)
    yield created
    created.database.close()


@pytest.mark.parametrize(("fields", "message"), CASES)
def test_a_malformed_schedule_is_refused_by_field(
    emulator: SchedulingEmulator, fields: dict[str, Any], message: str
) -> None:
    before = emulator.get()
    with pytest.raises(ApiError) as refused:
        emulator.schedules.put(LOCATION, "nightly", {**GOOD, **fields})
    assert message in refused.value.message
    assert refused.value.http == 400
    assert all(field and text for field, text in refused.value.violations)
    assert emulator.get() == before


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_no_wrong_value_is_a_servers_error(emulator: SchedulingEmulator, path: tuple[Any, ...]) -> None:
    for value in WRONG:
        if (path in OPTIONAL and value in (None, [], ABSENT)) or (path == ("paused",) and value is True):
            continue  # unset, or right
        with pytest.raises(ApiError) as refused:
            emulator.schedules.put(LOCATION, "other", edited(GOOD, *path, to=value))
        json.dumps(refused.value.to_json(), allow_nan=False).encode()
        assert refused.value.http == 400


@pytest.mark.parametrize("schedule", ["", "a b", "a/b", "é", "x" * 501, "a\x00", "nightly\n"])
def test_ids_of_other_characters_are_refused(emulator: SchedulingEmulator, schedule: str) -> None:
    service = emulator.schedules
    for call in (service.get, service.delete, service.fire, service.pause, service.resume):
        with pytest.raises(ApiError, match="The schedule's id is"):
            call(LOCATION, schedule)
    with pytest.raises(ApiError, match="The schedule's id is"):
        service.put(LOCATION, schedule, GOOD)


def test_unknown_schedules_are_not_found(emulator: SchedulingEmulator) -> None:
    service = emulator.schedules
    for call in (service.get, service.delete, service.fire, service.pause, service.resume):
        with pytest.raises(ApiError, match=r'The Schedule "projects/.*/schedules/gone" does not exist') as refused:
            call(LOCATION, "gone")
        assert refused.value.http == 404


@pytest.mark.parametrize(
    "time", [None, 5, "", "yesterday", "2026-02-30T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"]
)
def test_a_clock_needs_a_time(emulator: SchedulingEmulator, time: object) -> None:
    with pytest.raises(ApiError, match=r"time is .*; it must be like 2026-11-22T02:00:00Z") as refused:
        emulator.schedules.set_clock({"time": time})
    assert refused.value.http == 400


def test_lists_are_by_location(tmp_path: Path) -> None:
    emulator = create_emulator(tmp_path)
    emulator.put("b")
    emulator.put("a")
    other = type(LOCATION)("other", "us-central1")
    emulator.schedules.put(other, "a", {**GOOD, "paused": True})
    names = [schedule["name"] for schedule in emulator.schedules.list()["schedules"]]
    assert [name.rpartition("/")[2] for name in names] == ["a", "a", "b"]
    (only,) = emulator.schedules.list(other)["schedules"]
    assert (only["name"], only["paused"]) == (f"{other.name}/schedules/a", True)
    emulator.schedules.delete(other, "a")
    assert emulator.schedules.list(other) == {"schedules": []}
    emulator.database.close()
