"""All routes of Cloud Storage."""

from pathlib import Path

from starlette.routing import Route

from vertex_emulator.gcs.bucket_store import BucketStore
from vertex_emulator.gcs.object_metadata_database import ObjectMetadataDatabase
from vertex_emulator.gcs.object_store import ObjectStore
from vertex_emulator.gcs.routes.batch_routes import build_batch_route
from vertex_emulator.gcs.routes.bucket_routes import BucketRoutes
from vertex_emulator.gcs.routes.copy_compose_move_routes import CopyRoutes
from vertex_emulator.gcs.routes.object_routes import ObjectRoutes
from vertex_emulator.gcs.routes.unsupported_requests import raise_unimplemented
from vertex_emulator.gcs.routes.upload_routes import UploadRoutes
from vertex_emulator.gcs.symlink_safe_bucket_files import BucketFileTree
from vertex_emulator.gcs.upload_sessions import Uploads

_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
_ALL_PATHS = ("/storage/v1/{path:path}", "/upload/storage/v1/{path:path}", "/batch/storage/v1")


def open_stores_and_build_routes(buckets_folder: Path, uploads_folder: Path, object_metadata_file: Path) -> list[Route]:
    """Return all routes of Cloud Storage, on the folder of all buckets.

    Unfinished uploads are in `uploads_folder`, metadata of objects in `object_metadata_file`. Raises StartError if the
    metadata cannot be read.
    """
    buckets = BucketStore(BucketFileTree(buckets_folder), ObjectMetadataDatabase(object_metadata_file))
    objects = ObjectStore(buckets)
    uploads = Uploads.open_and_delete_expired(uploads_folder, objects)
    return [
        *BucketRoutes(buckets).build_routes(),
        *ObjectRoutes(objects).build_routes(),
        *CopyRoutes(objects, uploads).build_routes(),
        *UploadRoutes(uploads).build_routes(),
        build_batch_route(),
        *(Route(path, raise_unimplemented, methods=list(_METHODS)) for path in _ALL_PATHS),
    ]
