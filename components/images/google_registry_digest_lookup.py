"""RegistryApi: what a registry says of its images, asked over HTTP, for machines without Docker."""

from ..errors import RegistryRefused
from .image_digest_lookup_and_push import describe_push_remedy, fetch_google_credentials_or_none

_MANIFEST_TYPES = (
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.oci.image.index.v1+json",
)
"""All that Docker accepts, so that the digest is the one that it would give."""
_CALL_SECONDS = 60.0
_ABSENT, _OK = 404, 200


class RegistryApi:
    """A registry of Google's, by the registry API v2 with Application Default Credentials."""

    def get_digest_or_none(self, uri: str) -> str | None:
        """Return the digest of an image, `sha256:…`; `None` if there is none. Raises RegistryRefused."""
        import requests

        credentials = fetch_google_credentials_or_none(uri)
        host, _, path = uri.partition("/")
        repository, _, tag = path.rpartition(":")
        try:
            reply = requests.head(
                f"https://{host}/v2/{repository}/manifests/{tag}",
                auth=(credentials["username"], credentials["password"]) if credentials else None,
                headers={"Accept": ", ".join(_MANIFEST_TYPES)},
                timeout=_CALL_SECONDS,
            )
        except requests.RequestException as error:
            raise RegistryRefused(f"{uri}: no answer from {host}; check that it is reachable") from error
        if reply.status_code == _ABSENT:
            return None
        digest = reply.headers.get("Docker-Content-Digest")
        if reply.status_code != _OK or digest is None:
            answer = f"{reply.status_code} {reply.reason}".strip()
            raise RegistryRefused(f"{uri}: its registry refuses: {answer}; {describe_push_remedy(uri)}")
        return digest
