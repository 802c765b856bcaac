"""The list of all jobs: pages, search, states."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.datastructures import QueryParams

from tests.vertex_emulator.jobs import LOCATION, custom_job_spec
from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB
from vertex_emulator.database import Database
from vertex_emulator.database.records import FAILED, RUNNING, Trial
from vertex_emulator.errors import ApiError
from vertex_emulator.web_page import job_list


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(tmp_path / "emulator.db")
    yield database
    database.close()


def add(database: Database, *names: str, state: str | None = None) -> None:
    with database.write() as transaction:
        for name in names:
            spec = {**custom_job_spec(), "displayName": name}
            job = transaction.jobs.add(name, CUSTOM_JOB, LOCATION, spec)
            if state:
                transaction.jobs.update(job, state=state)


def ask(database: Database, query: str = "") -> dict[str, Any]:
    return job_list.build_job_list_reply(database, job_list.parse_job_query(QueryParams(query)))


def names(database: Database, query: str) -> list[str]:
    return [job["displayName"] for job in ask(database, query)["jobs"]]


def test_pages_give_every_job_once_the_newest_first(database: Database) -> None:
    made = [f"job {i}" for i in range(2 * job_list.PAGE_SIZE + 1)]
    add(database, *made)
    seen: list[str] = []
    before = ""
    pages = 0
    while pages == 0 or before:
        found = ask(database, f"before={before}")
        seen += [job["displayName"] for job in found["jobs"]]
        before = found["next"] or ""
        pages += 1
    assert seen == made[::-1]
    assert pages == 3


def test_full_last_page_has_no_next(database: Database) -> None:
    add(database, *[f"job {i}" for i in range(job_list.PAGE_SIZE)])
    assert ask(database)["next"] is None


def test_search_continues_where_it_stopped(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_list, "_MAX_SCANNED", 10)
    add(database, "needle", *[f"hay {i}" for i in range(15)])
    first = ask(database, "text=needle")
    assert first["jobs"] == []
    rest = ask(database, f"text=needle&before={first['next']}")
    assert ([job["displayName"] for job in rest["jobs"]], rest["next"]) == (["needle"], None)


def test_jobs_are_found_by_name_id_and_state(database: Database) -> None:
    add(database, "Vision A", "speech")
    add(database, "vision b", state=RUNNING)
    add(database, "vision c", state=FAILED)
    assert names(database, "text=VISION") == ["vision c", "vision b", "Vision A"]
    assert names(database, "text=customJobs/speech") == ["speech"]
    assert names(database, "state=active") == ["vision b", "speech", "Vision A"]
    assert names(database, "text=vision&state=failed") == ["vision c"]


def test_jobs_requested_by_id_must_match_filters(database: Database) -> None:
    add(database, "a", "b")
    assert names(database, "id=a&id=gone&id=b") == ["a", "b"]
    assert names(database, "id=a&id=b&text=b") == ["b"]
    assert names(database, "id=a&state=succeeded") == []


def test_study_counts_ended_trials_and_hides_their_jobs(database: Database) -> None:
    with database.write() as transaction:
        transaction.jobs.add("7", HYPERPARAMETER_TUNING_JOB, LOCATION, {"displayName": "s", "maxTrialCount": 9})
        for number, state in enumerate(("SUCCEEDED", "INFEASIBLE", "ACTIVE"), 1):
            transaction.jobs.add(f"7{number}", CUSTOM_JOB, LOCATION, custom_job_spec(), study="7", trial=number)
            transaction.trials.add(Trial("7", number, state, {}, f"7{number}"))  # type: ignore[arg-type]
    assert [(job["id"], job["trials"]) for job in ask(database)["jobs"]] == [("7", {"ended": 2, "most": 9})]
    assert ask(database, "id=71")["jobs"] == []


@pytest.mark.parametrize("query", ["state=done", "before=x", "before=-1", "before=²", f"before={10**30}"])
def test_invalid_query_is_rejected_by_name(query: str) -> None:
    with pytest.raises(ApiError, match=query.partition("=")[0]):
        job_list.parse_job_query(QueryParams(query))
