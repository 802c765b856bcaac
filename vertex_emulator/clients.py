"""The variables by which Google's clients find a server, by their documentation and code."""


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
