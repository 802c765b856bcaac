"""Saved logs of containers: one file of JSON lines per replica and attempt."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from emulator.containers.executor import LogLine
from emulator.records import Replica


def save(root: Path, job: str, replica: Replica, lines: Iterable[LogLine]) -> None:
    """Write a replica's whole log, all of it or nothing."""
    path = _path(root, job, replica)
    path.parent.mkdir(exist_ok=True)
    partial = path.with_suffix(".partial")
    with partial.open("w", encoding="utf-8") as file:
        for line in lines:
            json.dump([line.at, line.stream, line.text], file)
            file.write("\n")
    partial.replace(path)


def saved(root: Path, job: str, replica: Replica, since: int = 0) -> Iterator[LogLine] | None:
    """A saved log from `since` (nanoseconds) on; None when there is none."""
    try:
        file = _path(root, job, replica).open(encoding="utf-8")
    except FileNotFoundError:
        return None

    def lines() -> Iterator[LogLine]:
        with file:
            for text in file:
                line = LogLine(*json.loads(text))
                if line.at >= since:
                    yield line

    return lines()


def _path(root: Path, job: str, replica: Replica) -> Path:
    return root / job / f"{replica.task}.{replica.attempt}.jsonl"
