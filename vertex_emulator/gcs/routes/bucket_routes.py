"""The routes of Cloud Storage's buckets."""

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from vertex_emulator.gcs.bucket_store import BucketStore
from vertex_emulator.gcs.routes.bucket_and_object_json import (
    get_base_url,
    serialize_bucket,
    serialize_list_without_empty_fields,
)
from vertex_emulator.gcs.routes.unsupported_requests import get_checked_query
from vertex_emulator.http.json_request_body import read_json_object


@dataclass(frozen=True)
class BucketRoutes:
    """Methods on buckets."""

    buckets: BucketStore

    def build_routes(self) -> list[Route]:
        """Return the routes of `/storage/v1/b`."""
        return [
            Route("/storage/v1/b", self._list_buckets_in_one_page, methods=["GET"]),
            Route("/storage/v1/b", self._create_new_bucket, methods=["POST"]),
            Route("/storage/v1/b/{bucket}", self._get_bucket, methods=["GET"]),
            Route("/storage/v1/b/{bucket}", self._delete_bucket, methods=["DELETE"]),
            Route("/storage/v1/b/{bucket}/storageLayout", self._get_flat_storage_layout, methods=["GET"]),
            Route("/storage/v1/b/{bucket}/managedFolders", self._return_empty_managed_folder_list, methods=["GET"]),
        ]

    def _list_buckets_in_one_page(self, request: Request) -> Response:
        query = get_checked_query(request, {"project", "maxResults", "prefix"})
        names = [name for name in self.buckets.list_bucket_names() if name.startswith(query.get("prefix", ""))]
        folder_stats = [(name, self.buckets.find_bucket_folder_stat(name)) for name in names]
        base_url = get_base_url(request)
        items = [serialize_bucket(base_url, name, found) for name, found in folder_stats if found is not None]
        return JSONResponse(serialize_list_without_empty_fields("storage#buckets", items=items))

    async def _create_new_bucket(self, request: Request) -> Response:
        get_checked_query(request, {"project", "predefinedAcl", "predefinedDefaultObjectAcl", "enableObjectRetention"})
        name = str((await read_json_object(request)).get("name", ""))
        self.buckets.create_new_bucket(name)
        return JSONResponse(
            serialize_bucket(get_base_url(request), name, self.buckets.require_bucket_folder_stat(name))
        )

    def _get_bucket(self, request: Request) -> Response:
        get_checked_query(request)
        name = request.path_params["bucket"]
        return JSONResponse(
            serialize_bucket(get_base_url(request), name, self.buckets.require_bucket_folder_stat(name))
        )

    def _get_flat_storage_layout(self, request: Request) -> Response:
        """Return the layout that gcloud requests before it deletes a bucket: a flat one, without folders to delete."""
        name = request.path_params["bucket"]
        self.buckets.require_bucket_folder_stat(name)
        flat = {"hierarchicalNamespace": {"enabled": False}}
        return JSONResponse({"kind": "storage#storageLayout", "bucket": name, **flat})

    def _return_empty_managed_folder_list(self, request: Request) -> Response:
        """Return no managed folders: they carry access rules, which do not exist here."""
        self.buckets.require_bucket_folder_stat(request.path_params["bucket"])
        return JSONResponse(serialize_list_without_empty_fields("storage#managedFolders"))

    def _delete_bucket(self, request: Request) -> Response:
        get_checked_query(request)
        self.buckets.delete_bucket(request.path_params["bucket"])
        return Response(status_code=204)
