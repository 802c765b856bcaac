"""How Google's clients find a server, by their documentation and code: their variables and paths."""

from collections.abc import MutableMapping
from typing import Any


def endpoints(url: str) -> dict[str, str]:
    """Return the variables for an address that has Cloud Storage, Vertex AI and Cloud Logging."""
    return {
        # gcloud needs the trailing slash. `gcloud topic configurations` documents the property names.
        **{f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{api}": f"{url}/" for api in ("AIPLATFORM", "LOGGING")},
        "CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE": f"{url}/storage/v1/",
        # Python, gcsfs, Go and Node.
        "STORAGE_EMULATOR_HOST": url,
        # gcsfs asks for the kind of each bucket by gRPC otherwise, for a minute each time.
        "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false",
    }


def with_whole_path(scope: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Return the scope of a request that has the path of the API, also from a client that leaves out its beginning.

    Node's takes STORAGE_EMULATOR_HOST for the address of the whole API (@google-cloud/storage 7).
    """
    if scope["type"] != "http" or not scope["path"].startswith("/b/"):
        return scope
    if any(name == b"host" and value.endswith(b".googleapis.com") for name, value in scope["headers"]):
        return scope  # an object by Cloud Storage's XML API
    return {**scope, "path": f"/storage/v1{scope['path']}", "raw_path": b"/storage/v1" + scope["raw_path"]}
