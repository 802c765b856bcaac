"""The list of all jobs: pages, search, states."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.datastructures import QueryParams

from tests.vertex_emulator.jobs import LOCATION, custom_job_spec
from vertex_api.kinds import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB
from vertex_emulator.database import Store
from vertex_emulator.database.records import FAILED, RUNNING, Trial
from vertex_emulator.errors import ApiError
from vertex_emulator.page import job_list


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path / "emulator.db")
    yield store
    store.close()


def add(store: Store, *names: str, state: str | None = None) -> None:
    with store.transaction() as change:
        for name in names:
            spec = {**custom_job_spec(), "displayName": name}
            job = change.add_job(name, CUSTOM_JOB, LOCATION, spec, slots=1)
            if state:
                change.change_job(job, state=state)


def ask(store: Store, query: str = "") -> dict[str, Any]:
    return job_list.page(store, job_list.query(QueryParams(query)))


def names(store: Store, query: str) -> list[str]:
    return [job["displayName"] for job in ask(store, query)["jobs"]]


def test_pages_give_every_job_once_the_newest_first(store: Store) -> None:
    made = [f"job {i}" for i in range(2 * job_list.PAGE_SIZE + 1)]
    add(store, *made)
    seen: list[str] = []
    before = ""
    pages = 0
    while pages == 0 or before:
        found = ask(store, f"before={before}")
        seen += [job["displayName"] for job in found["jobs"]]
        before = found["next"] or ""
        pages += 1
    assert seen == made[::-1]
    assert pages == 3


def test_a_last_page_that_is_full_has_none_after_it(store: Store) -> None:
    add(store, *[f"job {i}" for i in range(job_list.PAGE_SIZE)])
    assert ask(store)["next"] is None


def test_a_search_that_finds_little_goes_on_from_where_it_stopped(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_list, "_MOST_LOOKED_AT", 10)
    add(store, "needle", *[f"hay {i}" for i in range(15)])
    first = ask(store, "text=needle")
    assert first["jobs"] == []
    rest = ask(store, f"text=needle&before={first['next']}")
    assert ([job["displayName"] for job in rest["jobs"]], rest["next"]) == (["needle"], None)


def test_jobs_are_found_by_a_part_of_the_name_in_any_case_by_id_and_by_state(store: Store) -> None:
    add(store, "Vision A", "speech")
    add(store, "vision b", state=RUNNING)
    add(store, "vision c", state=FAILED)
    assert names(store, "text=VISION") == ["vision c", "vision b", "Vision A"]
    assert names(store, "text=customJobs/speech") == ["speech"]
    assert names(store, "state=active") == ["vision b", "speech", "Vision A"]
    assert names(store, "text=vision&state=failed") == ["vision c"]


def test_jobs_that_are_asked_for_by_id_come_only_if_they_still_fit(store: Store) -> None:
    add(store, "a", "b")
    assert names(store, "id=a&id=gone&id=b") == ["a", "b"]
    assert names(store, "id=a&id=b&text=b") == ["b"]
    assert names(store, "id=a&state=succeeded") == []


def test_a_study_says_how_many_of_its_trials_are_over_and_their_jobs_are_not_listed(store: Store) -> None:
    with store.transaction() as change:
        change.add_job("7", HYPERPARAMETER_TUNING_JOB, LOCATION, {"displayName": "s", "maxTrialCount": 9}, slots=0)
        for number, state in enumerate(("SUCCEEDED", "INFEASIBLE", "ACTIVE"), 1):
            change.add_job(f"7{number}", CUSTOM_JOB, LOCATION, custom_job_spec(), slots=1, study="7", trial=number)
            change.add_trial(Trial("7", number, state, {}, f"7{number}"))  # type: ignore[arg-type]
    assert [(job["id"], job["trials"]) for job in ask(store)["jobs"]] == [("7", {"ended": 2, "most": 9})]
    assert ask(store, "id=71")["jobs"] == []


@pytest.mark.parametrize("query", ["state=done", "before=x", "before=-1", "before=²", f"before={10**30}"])
def test_a_query_that_cannot_be_read_is_refused_by_name(query: str) -> None:
    with pytest.raises(ApiError, match=query.partition("=")[0]):
        job_list.query(QueryParams(query))
