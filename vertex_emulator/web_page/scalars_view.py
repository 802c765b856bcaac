"""The scalars of a job's event files as the page draws them."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from vertex_emulator import event_files
from vertex_emulator.curves import Curve, CurveCache, CurveReader
from vertex_emulator.database import Database
from vertex_emulator.database.records import Job
from vertex_emulator.errors import ApiError
from vertex_emulator.event_files import LogFolder

MAX_TRIALS = 60  # as many as can be told apart
MAX_TAGS_PER_REQUEST = 100
MAX_LINES = 1000  # of one answer: 30 MB of JSON at most
_MAX_PROBLEMS = 5


def build_scalars_view(database: Database, cache: CurveCache, job: Job, tags: Sequence[str]) -> dict[str, Any]:
    """Return what is written so far in the event files of a job, of a study's latest trials, or of a pipeline's job.

    The fields are `folder`, the gs:// URI of a job's log folder (null without one, and for a study), `tags`, `runs`,
    `lines` of the requested tags (`tag`, `run`, and the fields of `Curve.to_json`), `has_files`, `has_more`,
    whether the next request finds more that is written already, `problems`, a line each, and `left_out`, the number of
    earlier trials. Raises ApiError.
    """
    if len(tags) > MAX_TAGS_PER_REQUEST:
        raise ApiError("INVALID_ARGUMENT", f"tag is given {len(tags)} times; at most {MAX_TAGS_PER_REQUEST} are read")
    with database.read() as transaction:
        folders = event_files.log_folders(transaction, job)
    shown = folders[-MAX_TRIALS:]
    with cache.update([folder.uri for folder in shown]) as readers:
        curves = dict(_iterate_run_names_and_curves_by_tag(shown, readers))
        lines = [*islice(_iterate_serialized_lines(curves, tags), MAX_LINES)]
        problems = [problem for reader in readers for problem in reader.problems]
        if len(lines) == MAX_LINES:
            problems.insert(0, f"only the first {MAX_LINES} lines are drawn")
        return {
            "folder": shown[0].uri if shown and not shown[0].name else None,
            "tags": sorted({tag for by_tag in curves.values() for tag in by_tag}),
            "runs": [*curves],
            "lines": lines,
            "has_files": any(reader.has_files for reader in readers),
            "has_more": any(reader.has_unread_data for reader in readers),
            "problems": problems[:_MAX_PROBLEMS],
            "left_out": len(folders) - len(shown),
        }


def _iterate_serialized_lines(
    curves: Mapping[str, Mapping[str, Curve]], tags: Sequence[str]
) -> Iterable[dict[str, Any]]:
    for tag in dict.fromkeys(tags):
        for run, by_tag in curves.items():
            if tag in by_tag:
                yield {"tag": tag, "run": run, **by_tag[tag].to_json()}


def _iterate_run_names_and_curves_by_tag(
    folders: Sequence[LogFolder], readers: Sequence[CurveReader]
) -> Iterable[tuple[str, Any]]:
    """Yield the name of each run that has scalars, such as `train` or `trial-3/train`, and its curves by tag."""
    for folder, reader in zip(folders, readers, strict=True):
        for run, curves in sorted(reader.curves.items()):
            if curves:
                yield "/".join(filter(None, [folder.name, run])), curves
