"""The routes of the page: HTML and assets, the JSON that it shows, and the event stream that keeps it current."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route

from vertex_api.names import KINDS
from vertex_emulator.database import Database
from vertex_emulator.errors import ApiError
from vertex_emulator.gcs.files import ROOT, BucketTree
from vertex_emulator.http.open_file_response import OpenFileResponse
from vertex_emulator.replicas.executor_protocol import Executor
from vertex_emulator.web_page import bucket_files, job_change_events, job_list
from vertex_emulator.web_page.job_view import JobViewBuilder
from vertex_emulator.web_page.static_assets import FOLDER, FRAME_HEADERS, Assets

if TYPE_CHECKING:
    from vertex_emulator.curves import CurveCache


@dataclass(frozen=True)
class Page:
    """The page of the emulator; `buckets` is the folder of all buckets."""

    database: Database
    executor: Executor
    buckets: Path

    def build_routes(self) -> Iterable[BaseRoute]:
        """Return the routes: HTML at `/`, `/jobs/…`, `/files`, `/schedules`; JSON below `/vertex_emulator/page`."""
        return [
            Route("/", self._serve_page),
            Route("/jobs/{collection}/{id}", self._serve_job_page),
            Route("/files", self._serve_page),
            Route("/schedules", self._serve_page),
            Mount("/assets", Assets()),
            Route("/vertex_emulator/page/events", self._stream_job_change_events),
            Route("/vertex_emulator/page/jobs", self._list_jobs),
            Route("/vertex_emulator/page/jobs/{collection}/{id}", self._get_job_view),
            Route("/vertex_emulator/page/scalars/{collection}/{id}", self._get_scalars),
            Route("/vertex_emulator/page/files", self._list_folder_entries),
            Route("/vertex_emulator/page/download", self._download_file),
        ]

    def _serve_page(self, _request: Request) -> Response:
        return _build_page_html_response()

    def _serve_job_page(self, request: Request) -> Response:
        with self.database.read() as transaction:
            job = transaction.jobs.get(request.path_params["id"])
        has_job = job is not None and job.kind == KINDS.get(request.path_params["collection"])
        return _build_page_html_response(200 if has_job else 404)

    async def _stream_job_change_events(self, request: Request) -> Response:
        events = job_change_events.iterate_job_change_event_texts(
            self.database.changes, request.query_params.get("job")
        )
        return StreamingResponse(events, media_type="text/event-stream")

    def _list_jobs(self, request: Request) -> Response:
        query = job_list.parse_job_query(request.query_params)
        return JSONResponse(job_list.build_job_list_reply(self.database, query))

    def _get_job_view(self, request: Request) -> Response:
        collection, job_id = request.path_params["collection"], request.path_params["id"]
        view = self._job_view_builder.build_job_view_or_none(collection, job_id)
        if view is None:
            raise _build_no_job_error(collection, job_id)
        return JSONResponse(view)

    @cached_property
    def _job_view_builder(self) -> JobViewBuilder:
        return JobViewBuilder(self.database, self.executor, self.buckets)

    @cached_property
    def _curve_reader_cache(self) -> "CurveCache":
        # Imported here, and in `_get_scalars`, because most jobs write no event files, and their messages take 20 MB.
        from vertex_emulator.curves import CurveCache

        return CurveCache(BucketTree(self.buckets))

    def _get_scalars(self, request: Request) -> Response:
        from vertex_emulator.web_page.scalars_view import build_scalars_view

        collection, job_id = request.path_params["collection"], request.path_params["id"]
        with self.database.read() as transaction:
            job = transaction.jobs.get(job_id)
        if job is None or job.kind != KINDS.get(collection):
            raise _build_no_job_error(collection, job_id)
        tags = request.query_params.getlist("tag")
        return JSONResponse(build_scalars_view(self.database, self._curve_reader_cache, job, tags))

    def _list_folder_entries(self, request: Request) -> Response:
        return JSONResponse(bucket_files.build_folder_view(self.buckets, _get_uri_parameter_or_root(request)))

    def _download_file(self, request: Request) -> Response:
        uri = _get_uri_parameter_or_root(request)
        file = bucket_files.open_bucket_file(self.buckets, uri)
        # HTML that training code wrote must not run with the rights of the emulator's own pages.
        headers = {"content-security-policy": "default-src 'none'; sandbox"}
        return OpenFileResponse(file, "application/octet-stream", headers, filename=uri.rstrip("/").rpartition("/")[2])


def _build_no_job_error(collection: str, job_id: str) -> ApiError:
    return ApiError("NOT_FOUND", f"There is no job {collection}/{job_id} here.")


def _get_uri_parameter_or_root(request: Request) -> str:
    return request.query_params.get("uri", ROOT)


def _build_page_html_response(status_code: int = 200) -> Response:
    return FileResponse(FOLDER / "page.html", status_code=status_code, headers=FRAME_HEADERS)
