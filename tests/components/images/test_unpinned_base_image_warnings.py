"""Base images that are not pinned are found, and nothing else is."""

import pytest
from vertex_training.images.unpinned_base_image_warnings import find_line_numbers_and_unpinned_bases

PINNED = "python@sha256:" + "0" * 64


@pytest.mark.parametrize(
    ("dockerfile", "found"),
    [
        ("FROM python:3.11", [(1, "python:3.11")]),
        ("# a comment\n\nfrom --platform=linux/amd64 python:3.11 as base\nFROM base", [(3, "python:3.11")]),
        (f"FROM {PINNED}", []),
        (f"FROM python:3.11@{PINNED.partition('@')[2]} AS Build\nFROM scratch\nCOPY --from=build / /\nFROM build", []),
        ("ARG BASE=python:3.11\nFROM $BASE", [(2, "python:3.11")]),
        ("ARG TAG\nFROM python:${TAG}", [(2, "python:3.12")]),
        ("ARG MISSING\nFROM python:${MISSING:-3.10}", [(2, "python:3.10")]),
        (f"ARG BASE={PINNED}\nFROM ${{BASE}}", []),
        ("ARG GIVEN=python:3.11\nFROM ${GIVEN}", []),
        ("FROM scratch", []),
    ],
)
def test_an_unpinned_base_image_names_its_line(dockerfile: str, found: list[tuple[int, str]]) -> None:
    assert list(find_line_numbers_and_unpinned_bases(dockerfile, {"TAG": "3.12", "GIVEN": PINNED})) == found
