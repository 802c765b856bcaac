"""GoogleRegistryApi: the digest of an image in a registry of Google's, asked over HTTP; and the credentials for it."""

import re
from collections.abc import Mapping

from vertex_api.calls import credentials

from ..errors import RegistryRefused

_GOOGLE_HOST = re.compile(r"([a-z0-9-]+-docker[.]pkg[.]dev|([a-z]+[.])?gcr[.]io)")
_MANIFEST_TYPES = (
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.oci.image.index.v1+json",
)
"""All that Docker accepts, so that the digest is the one that it would give."""
SCHEME = "https"
_CALL_SECONDS = 60.0
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_ABSENT, _OK = 404, 200


class GoogleRegistryApi:
    """A registry of Google's, asked over HTTP (registry API v2), for machines without Docker."""

    def get_digest_or_none(self, uri: str) -> str | None:
        """Return the digest of an image, `sha256:…`; `None` if there is none. Raises RegistryRefused."""
        import requests

        from vertex_api.calls import bounded_transport

        login = fetch_google_credentials_or_none(uri)
        host, _, path = uri.partition("/")
        repository, _, tag = path.rpartition(":")
        try:
            with bounded_transport.mount(requests.Session()) as session:
                reply = session.head(
                    f"{SCHEME}://{host}/v2/{repository}/manifests/{tag}",
                    auth=(login["username"], login["password"]) if login else None,
                    headers={"Accept": ", ".join(_MANIFEST_TYPES)},
                    timeout=_CALL_SECONDS,
                )
        except bounded_transport.AnswerRefused as error:
            raise RegistryRefused(f"{uri}: {error}") from error
        except requests.RequestException as error:
            raise RegistryRefused(f"{uri}: no answer from {host}; check that it is reachable") from error
        if reply.status_code == _ABSENT:
            return None
        digest: str | None = reply.headers.get("Docker-Content-Digest")
        if reply.status_code != _OK or digest is None or not _DIGEST.fullmatch(digest):
            answer = f"{reply.status_code} {reply.reason}".strip()[:200]
            raise RegistryRefused(f"{uri}: its registry refuses: {answer}; {describe_push_remedy(uri)}")
        return digest


def is_in_google_registry(uri: str) -> bool:
    """Whether an image, or a prefix of images, is in Artifact Registry or Container Registry."""
    return _GOOGLE_HOST.fullmatch(uri.partition("/")[0]) is not None


def fetch_google_credentials_or_none(uri: str) -> Mapping[str, str] | None:
    """Return credentials for a registry of Google's; `None` for others, whose credentials Docker looks up."""
    if not is_in_google_registry(uri):
        return None
    from google.auth.exceptions import GoogleAuthError

    try:
        return {"username": "oauth2accesstoken", "password": credentials.fetch_token()}
    except GoogleAuthError as error:
        remedy = credentials.explain(error)
        raise RegistryRefused(f"{uri}: no valid Google credentials for its registry: {remedy}") from error


def describe_push_remedy(uri: str) -> str:
    """Return what to do if a registry takes no image."""
    host = uri.partition("/")[0]
    advice = f"log in with `docker login {host}`, or check that it is reachable"
    if is_in_google_registry(uri):
        advice = "your account needs roles/artifactregistry.writer on the repository"
        if place := credentials.describe_token_place():
            advice += f", and the token of {place} must not have expired"
    return f"{advice}; layers that were pushed are not sent again"
