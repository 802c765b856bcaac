"""Where built images are kept: in the local daemon, or in a registry that they are pushed to.

Credentials are found when a call is made, and are part of no input, state or message: Google's registries take a token
of the Application Default Credentials, others what `docker login` has stored.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any, Protocol

from ..errors import RegistryRefused
from .builder import Report, docker_client

LOCAL = "localhost/"
"""How URIs begin that stay in the daemon: there is no registry of that name."""
_GOOGLE = re.compile(r"([a-z0-9-]+-docker[.]pkg[.]dev|([a-z]+[.])?gcr[.]io)")
_ABSENT = re.compile(r"manifest unknown|not found|name unknown|does not exist", re.IGNORECASE)
_IMMUTABLE = re.compile(r"immutab", re.IGNORECASE)
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"


class ImageStore(Protocol):
    """What keeps images under their URIs."""

    def find(self, uri: str) -> str | None:
        """What identifies the content under a URI, `sha256:…`; None when there is nothing. Raises ComponentError."""

    def keep(self, uri: str, report: Report) -> str:
        """Keeps an image that the daemon has under this URI for those who run it; as `find`. Raises ComponentError."""


class Daemon:
    """The images of this machine; the emulator runs them."""

    def find(self, uri: str) -> str | None:
        import docker

        with closing(docker_client()) as client:
            try:
                return str(client.images.get(uri).id)
            except docker.errors.ImageNotFound:
                return None

    def keep(self, uri: str, report: Report) -> str:  # noqa: ARG002
        found = self.find(uri)
        assert found is not None, f"{uri} was not built"
        return found


class Registry:
    """A registry, reached through the daemon."""

    def find(self, uri: str) -> str | None:
        import docker

        credentials = _credentials(uri)
        with closing(docker_client()) as client, _one_line(uri, credentials):
            try:
                return str(client.images.get_registry_data(uri, auth_config=credentials).id)
            except docker.errors.APIError as error:
                if error.status_code == 404 or _ABSENT.search(str(error.explanation)):
                    return None
                raise

    def keep(self, uri: str, report: Report) -> str:
        repository, _, tag = uri.rpartition(":")
        digest, credentials = None, _credentials(uri)
        with closing(docker_client()) as client, _one_line(uri, credentials):
            messages = client.api.push(repository, tag, stream=True, decode=True, auth_config=credentials)
            for message in _told(messages, report):
                if "error" in message:
                    return self._found_or_refused(uri, _said(str(message["error"]), credentials))
                digest = message.get("aux", {}).get("Digest", digest)
        if digest is None:
            raise RegistryRefused(f"{uri} was pushed, but the registry gave it no digest; run `pulumi up` again")
        return str(digest)

    def _found_or_refused(self, uri: str, error: str) -> str:
        """Where tags cannot be moved, someone else may have pushed the same content in the meantime: theirs will do."""
        found = self.find(uri) if _IMMUTABLE.search(error) else None
        if found is None:
            raise RegistryRefused(f"{uri} cannot be pushed: {error}; {_remedy(uri)}")
        return found


def store_of(uri: str) -> ImageStore:
    """The store that a URI belongs to."""
    return Daemon() if uri.startswith(LOCAL) else Registry()


def _told(messages: Iterator[dict[str, Any]], report: Report) -> Iterator[dict[str, Any]]:
    """All messages of a push; how far its layers are is reported as each one arrives."""
    layers: dict[str, bool] = {}
    for message in messages:
        status, layer = message.get("status", ""), message.get("id")
        if layer and status in ("Preparing", "Waiting"):
            layers.setdefault(layer, False)
        elif layer in layers and status in ("Pushed", "Layer already exists") and not layers[layer]:
            layers[layer] = True
            report(f"pushed {sum(layers.values())} of {len(layers)} layers")
        yield message


def _credentials(uri: str) -> Mapping[str, str] | None:
    """What Google's registries take; None lets Docker look up what it knows of another one."""
    if not _GOOGLE.fullmatch(uri.partition("/")[0]):
        return None
    import google.auth
    from google.auth import exceptions
    from google.auth.transport.requests import Request

    try:
        credentials, _ = google.auth.default(scopes=[_SCOPE])
        credentials.refresh(Request())
    except exceptions.GoogleAuthError as error:
        raise RegistryRefused(
            f"{uri}: no valid Google credentials to reach its registry with; run `gcloud auth application-default "
            "login`, or set GOOGLE_APPLICATION_CREDENTIALS"
        ) from error
    return {"username": "oauth2accesstoken", "password": str(credentials.token)}


@contextmanager
def _one_line(uri: str, credentials: Mapping[str, str] | None) -> Iterator[None]:
    """Failures of the daemon and of the way to it as one line, without what was sent along."""
    import docker
    import requests

    try:
        yield
    except docker.errors.APIError as error:
        said = _said(str(error.explanation or error.response.reason), credentials)
        raise RegistryRefused(f"{uri}: its registry refuses: {said}; {_remedy(uri)}") from error
    except requests.RequestException as error:
        raise RegistryRefused(f"{uri}: the connection to Docker was lost; run `pulumi up` again to go on") from error


def _said(text: str, credentials: Mapping[str, str] | None) -> str:
    """What a registry said, on one line, without the token or the header that carried it, should it echo them."""
    if credentials:
        import docker

        sent = (credentials["password"], docker.auth.encode_header(credentials).decode())
        for secret in sent:
            text = text.replace(secret, "[token]")
    return " ".join(text.split())[:300]


def _remedy(uri: str) -> str:
    host = uri.partition("/")[0]
    if _GOOGLE.fullmatch(host):
        return "your account needs roles/artifactregistry.writer on the repository; what has arrived is not sent again"
    return f"log in with `docker login {host}`, or see that it answers; what has arrived is not sent again"
