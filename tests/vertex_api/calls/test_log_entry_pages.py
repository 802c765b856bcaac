"""Entries of Cloud Logging from pages that end early."""

from collections.abc import Mapping
from typing import Any

from vertex_api.client import log_entries

QUERY = {"filter": "x"}


def test_pages_are_read_until_enough_entries_came() -> None:
    pages = [
        {"nextPageToken": "a"},
        {"entries": [{"n": 3}, {"n": 2}], "nextPageToken": "b"},
        {"entries": [{"n": 1}, {}]},
    ]
    queries: list[Mapping[str, Any]] = []

    def send_query(query: Mapping[str, Any]) -> Mapping[str, Any]:
        queries.append(dict(query))
        return pages[len(queries) - 1]

    assert log_entries(send_query, QUERY, 3) == [{"n": 3}, {"n": 2}, {"n": 1}]
    assert [query.get("pageToken") for query in queries] == [None, "a", "b"]
    assert {query["pageSize"] for query in queries} == {3} and QUERY == {"filter": "x"}


def test_an_endless_search_is_given_up() -> None:
    queries: list[Mapping[str, Any]] = []

    def send_query(query: Mapping[str, Any]) -> Mapping[str, Any]:
        queries.append(query)
        return {"nextPageToken": "again"}

    assert log_entries(send_query, QUERY, 3) == []
    assert len(queries) == 20
