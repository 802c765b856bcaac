"""The routes of the page: HTML and assets, the JSON that it shows, files of buckets, and the stream of changes."""

import asyncio
import heapq
import json
import os
import shlex
import stat
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from html import escape
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from vertex_api.names import CUSTOM_JOB, KINDS
from vertex_emulator.data_folder import DataFolder
from vertex_emulator.database import Database
from vertex_emulator.database.connection import Changes
from vertex_emulator.database.records import RUNNING, Job
from vertex_emulator.errors import ApiError, InvalidBucketUri
from vertex_emulator.gcs.files import ROOT, BucketTree, is_utf8
from vertex_emulator.http.responses import JSON_TYPE, OpenFileResponse
from vertex_emulator.page import experiments, jobs, plots
from vertex_emulator.replicas.executor import Executor
from vertex_emulator.times import format_time

if TYPE_CHECKING:
    from vertex_emulator.curves import CurveCache

ASSETS = Path(__file__).parent / "assets"
# Only scripts in the folder run; nothing is loaded from elsewhere, and no other page may embed this one.
_HEADERS = {
    "content-security-policy": "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
}
_RETRY_MILLISECONDS = 1000
_KEEP_ALIVE_SECONDS = 15.0
_MIN_SECONDS_BETWEEN_EVENTS = 0.25  # a database that changes a hundred times a second makes four events of it


@dataclass(frozen=True)
class Page:
    """The page of the emulator."""

    database: Database
    executor: Executor
    data: DataFolder

    def routes(self) -> Iterable[BaseRoute]:
        """Return the routes: HTML at `/`, `/jobs/…`, `/files` and so on; JSON below `/vertex_emulator/page`."""
        return [
            Route("/", self._show),
            Route("/jobs/{collection}/{id}", self._show_job),
            Route(f"/jobs/{CUSTOM_JOB.collection}/{{id}}/shell/{{task}}", self._show_shell),
            Route("/files", self._show),
            Route("/schedules", self._show),
            Route("/experiments", self._show),
            Route("/experiments/{name:path}", self._show_experiment),
            Mount("/assets", _Assets(directory=ASSETS)),
            Route("/vertex_emulator/page/events", self._stream_changes),
            Route("/vertex_emulator/page/jobs", self._list_jobs),
            Route("/vertex_emulator/page/jobs/{collection}/{id}", self._get_job),
            Route("/vertex_emulator/page/scalars/{collection}/{id}", self._get_scalars),
            Route("/vertex_emulator/page/experiments", self._list_experiments),
            Route("/vertex_emulator/page/experiments/{name:path}", self._get_experiment),
            Route("/vertex_emulator/page/curves/{name:path}", self._get_curves),
            Route("/vertex_emulator/page/files", self._list_files),
            Route("/vertex_emulator/page/download", self._download),
        ]

    def _show(self, _request: Request) -> Response:
        return _html()

    def _show_job(self, request: Request) -> Response:
        return _html(200 if self._find(request) else 404)

    def _show_shell(self, request: Request) -> Response:
        """Show the page that `webAccessUris` lead to."""
        job_id, task = request.path_params["id"], request.path_params["task"]
        with self.database.read() as transaction:
            job = transaction.jobs.get(job_id)
        if job is None or task not in [replica.task_name for replica in job.requested_replicas]:
            raise ApiError("NOT_FOUND", f"There is no task {task} of a job customJobs/{job_id} here.")
        return HTMLResponse(render_shell(job, task, self.data.root), headers=_HEADERS)

    async def _stream_changes(self, request: Request) -> Response:
        events = _changes(self.database.changes, request.query_params.get("job"))
        return StreamingResponse(events, media_type="text/event-stream")

    def _list_jobs(self, request: Request) -> Response:
        return JSONResponse(jobs.search(self.database, jobs.Query.parse(request.query_params)))

    def _get_job(self, request: Request) -> Response:
        view = self._views.get(request.path_params["collection"], request.path_params["id"])
        if view is None:
            raise _no_job(request)
        return JSONResponse(view)

    @cached_property
    def _views(self) -> jobs.JobViews:
        return jobs.JobViews(self.database, self.executor, self.data)

    def _get_scalars(self, request: Request) -> Response:
        job = self._find(request)
        if job is None:
            raise _no_job(request)
        tags = request.query_params.getlist("tag")
        return JSONResponse(plots.scalars(self.database, self._curves, job, tags))

    @cached_property
    def _curves(self) -> "CurveCache":
        # Imported here, because most jobs write no event files, and their messages take 20 MB.
        from vertex_emulator.curves import CurveCache

        return CurveCache(BucketTree(self.data.buckets))

    def _show_experiment(self, request: Request) -> Response:
        with self.database.read() as transaction:
            found = transaction.lineage.get(request.path_params["name"])
        return _html(200 if found else 404)

    def _list_experiments(self, _request: Request) -> Response:
        return JSONResponse({"experiments": experiments.listed(self.database)})

    def _get_experiment(self, request: Request) -> Response:
        name = request.path_params["name"]
        view = experiments.shown(self.database, name)
        if view is None:
            raise ApiError("NOT_FOUND", f"There is no experiment {name} here.")
        # A thousand runs are large, and this encoder is four times as fast as Python's own.
        return Response(to_json(view), media_type=JSON_TYPE)

    def _get_curves(self, request: Request) -> Response:
        ids = request.query_params.getlist("run")
        return JSONResponse(experiments.curves(self.database, request.path_params["name"], ids))

    def _list_files(self, request: Request) -> Response:
        return JSONResponse(list_folder(self.data.buckets, request.query_params.get("uri", ROOT)))

    def _download(self, request: Request) -> Response:
        uri = request.query_params.get("uri", ROOT)
        file = open_file(self.data.buckets, uri)
        # HTML that training code wrote must not run with the rights of the emulator's own pages.
        headers = {"content-security-policy": "default-src 'none'; sandbox"}
        return OpenFileResponse(file, "application/octet-stream", headers, filename=uri.rstrip("/").rpartition("/")[2])

    def _find(self, request: Request) -> Job | None:
        with self.database.read() as transaction:
            job = transaction.jobs.get(request.path_params["id"])
        return job if job is not None and job.kind == KINDS.get(request.path_params["collection"]) else None


def _no_job(request: Request) -> ApiError:
    return ApiError("NOT_FOUND", "There is no job {collection}/{id} here.".format(**request.path_params))


def _html(status_code: int = 200) -> Response:
    return FileResponse(ASSETS / "page.html", status_code=status_code, headers=_HEADERS)


class _Assets(StaticFiles):
    """The folder over HTTP: a browser asks each time whether its copy is current (ETag)."""

    def file_response(self, *arguments: Any, **options: Any) -> Response:
        """Return a file with `Cache-Control`: without it, browsers guess for how long their copy is current."""
        response = super().file_response(*arguments, **options)
        response.headers["cache-control"] = "no-cache"
        return response


async def _changes(changes: Changes, job_id: str | None = None) -> AsyncIterator[str]:
    """Yield server-sent events `changed` with lists of job ids, of `job_id` only if it is given.

    The page then requests what it shows of these jobs. It ends when `changes` is closed.
    """
    with changes.subscribe() as watcher:
        # From here on no change is missed, so the page can load everything now.
        yield f"retry: {_RETRY_MILLISECONDS}\nevent: ready\ndata: []\n\n"
        while (ids := await watcher.wait(_KEEP_ALIVE_SECONDS)) is not None:
            changed_ids = sorted(ids if job_id is None else ids & {job_id})
            if changed_ids:
                yield f"event: changed\ndata: {json.dumps(changed_ids)}\n\n"
                await asyncio.sleep(_MIN_SECONDS_BETWEEN_EVENTS)
            elif not ids:
                yield ": nothing new\n\n"


_SHELL = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Shell in {task} of {name}</title>
<link rel="icon" href="/assets/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/assets/page.css">
</head>
<body>
<header class="top"><a class="brand" href="/">Vertex training on this machine</a></header>
<main>
<h1>Shell in {task}</h1>
<p>Job <a href="/jobs/{collection}/{job_id}">{name}</a> is in state {state}.</p>
{content}
</main>
</body>
</html>
"""
_RUNNING = """\
<p>In a terminal of this machine, run this command. It starts bash, or sh if the image has no bash.</p>
<p class="notice"><code class="command">{command}</code></p>
<p class="muted">A click selects the command.</p>"""
_NOT_RUNNING = """\
<p>A shell needs a running replica. This command prints what the replica wrote:</p>
<p class="notice"><code class="command">{command}</code></p>"""


def render_shell(job: Job, task: str, data_root: Path) -> str:
    """Return the page with the command for a shell in a replica, or for its log if the job does not run.

    It works without JavaScript.
    """
    verb, content = ("shell", _RUNNING) if job.state == RUNNING else ("logs", _NOT_RUNNING)
    command = shlex.join(["vertex-emulator", verb, job.id, "--task", task, "--data", str(data_root)])
    return _SHELL.format(
        task=escape(task),
        name=escape(str(job.spec["displayName"])),
        collection=CUSTOM_JOB.collection,
        job_id=escape(job.id),
        state=escape(job.state),
        content=content.format(command=escape(command)),
    )


MAX_LISTED = 1000
_KINDS = {stat.S_IFLNK: "link", stat.S_IFDIR: "folder", stat.S_IFREG: "file"}


def list_folder(buckets: Path, uri: str) -> dict[str, Any]:
    """Return the content of the folder of a gs:// URI (`gs://` for the buckets), folders first. Raises ApiError.

    The fields are `uri`, the local `path`, `entries` (`name`, `uri`, `kind`: folder, file, link or special, `size` in
    bytes, `modified`), and `left_out`, how many entries were omitted beyond `MAX_LISTED`.
    """
    tree = BucketTree(buckets)
    number = 0
    with _errors_refused(tree, uri, "folder"), tree.scan(uri) as entries:

        def count_and_key(entry: os.DirEntry[str]) -> tuple[bool, str]:
            nonlocal number
            number += 1
            return not entry.is_dir(follow_symlinks=False), entry.name

        shown = heapq.nsmallest(MAX_LISTED, entries, key=count_and_key)
        base = uri if uri == ROOT else f"{uri.rstrip('/')}/"
        rows = [_entry_json(base, entry) for entry in shown]
        return {
            "uri": uri,
            "path": str(tree.path(uri)),
            "entries": [row for row in rows if row is not None],
            "left_out": number - len(shown),
        }


def _entry_json(base_uri: str, entry: os.DirEntry[str]) -> dict[str, Any] | None:
    """Return an entry of a folder, None if it was deleted meanwhile.

    A name that is not UTF-8 is escaped and has an empty `uri`: no URI can name it.
    """
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return None
    return {
        "name": os.fsencode(entry.name).decode(errors="backslashreplace"),
        "uri": f"{base_uri}{entry.name}" if is_utf8(entry.name) else "",
        "kind": _KINDS.get(stat.S_IFMT(status.st_mode), "special"),
        "size": status.st_size,
        "modified": format_time(status.st_mtime_ns),
    }


def open_file(buckets: Path, uri: str) -> FileIO:
    """Open the file of a gs:// URI. Raises ApiError."""
    tree = BucketTree(buckets)
    with _errors_refused(tree, uri, "file"):
        return tree.open(uri)


@contextmanager
def _errors_refused(tree: BucketTree, uri: str, kind: str) -> Iterator[None]:
    """Raise ApiError for a URI that is invalid or names nothing of this kind."""
    try:
        yield
    except InvalidBucketUri as error:
        raise ApiError("INVALID_ARGUMENT", str(error), [("uri", str(error))]) from error
    except OSError as error:
        message = f"There is no {kind} {uri} ({tree.path(uri)}): {error.strerror}."
        raise ApiError("NOT_FOUND", message) from error
