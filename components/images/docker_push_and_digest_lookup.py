"""Pushes of built images, and look-ups of their digests, by Docker: in the daemon alone, or in a registry.

Credentials are looked up for each call, and are never part of an input, a state or a message: a token of the
Application Default Credentials for Google's registries, what `docker login` has stored for others.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any, Protocol

from ..errors import RegistryRefused
from .buildx_and_classic_builders import Report, connect_to_docker
from .google_registry_client import describe_push_remedy, fetch_google_credentials_or_none

LOCAL_PREFIX = "localhost/"
"""The prefix of URIs of images that stay in the daemon: there is no registry of that name."""
_ABSENT_MESSAGE = re.compile(r"manifest unknown|not found|name unknown|does not exist", re.IGNORECASE)
_IMMUTABLE_MESSAGE = re.compile(r"immutab", re.IGNORECASE)
_LAYER_IS_THERE = ("Pushed", "Layer already exists", "Mounted from")
_ABSENT = 404


class ImageStore(Protocol):
    """A place that has images by URI. All methods raise ComponentError."""

    def get_digest_or_none(self, uri: str) -> str | None:
        """Return the digest of an image, `sha256:…`; `None` if there is none under this URI."""

    def publish_and_get_digest(self, uri: str, report: Report) -> str:
        """Make an image that the daemon has available to those who run it, and return its digest."""


class Daemon:
    """The Docker daemon of this machine, whose images the emulator runs."""

    def get_digest_or_none(self, uri: str) -> str | None:
        import docker

        with closing(connect_to_docker()) as client:
            try:
                return str(client.images.get(uri).id)
            except docker.errors.ImageNotFound:
                return None

    def publish_and_get_digest(self, uri: str, report: Report) -> str:  # noqa: ARG002
        digest = self.get_digest_or_none(uri)
        assert digest is not None, f"{uri} was not built"
        return digest


class Registry:
    """A registry, which the daemon pushes to."""

    def get_digest_or_none(self, uri: str) -> str | None:
        import docker

        credentials = fetch_google_credentials_or_none(uri)
        with closing(connect_to_docker()) as client, _translate_docker_errors(uri, credentials):
            try:
                return str(client.images.get_registry_data(uri, auth_config=credentials).id)
            except docker.errors.APIError as error:
                if error.status_code == _ABSENT or _ABSENT_MESSAGE.search(str(error.explanation)):
                    return None
                raise

    def publish_and_get_digest(self, uri: str, report: Report) -> str:
        repository, _, tag = uri.rpartition(":")
        digest, credentials = None, fetch_google_credentials_or_none(uri)
        with closing(connect_to_docker()) as client, _translate_docker_errors(uri, credentials):
            messages = client.api.push(repository, tag, stream=True, decode=True, auth_config=credentials)
            for message in _iterate_messages_and_report_layers(messages, report):
                if "error" in message:
                    error = _redact_and_shorten(str(message["error"]), credentials)
                    # If tags are immutable, someone else may have pushed this image first.
                    if _IMMUTABLE_MESSAGE.search(error) and (digest := self.get_digest_or_none(uri)):
                        return digest
                    raise RegistryRefused(f"{uri} cannot be pushed: {error}; {describe_push_remedy(uri)}")
                digest = message.get("aux", {}).get("Digest", digest)
        if digest is None:
            raise RegistryRefused(f"{uri} was pushed, but the registry gave it no digest; run `pulumi up` again")
        return str(digest)


def get_image_store(uri: str) -> ImageStore:
    """Return the store that a URI belongs to."""
    return Daemon() if uri.startswith(LOCAL_PREFIX) else Registry()


def _iterate_messages_and_report_layers(messages: Iterator[dict[str, Any]], report: Report) -> Iterator[dict[str, Any]]:
    """Yield all messages of a push, and report how many of its layers are pushed whenever one is."""
    is_pushed: dict[str, bool] = {}
    for message in messages:
        status, layer = message.get("status", ""), message.get("id")
        if layer and status in ("Preparing", "Waiting"):
            is_pushed.setdefault(layer, False)
        elif layer in is_pushed and status.startswith(_LAYER_IS_THERE) and not is_pushed[layer]:
            is_pushed[layer] = True
            report(f"pushed {sum(is_pushed.values())} of {len(is_pushed)} layers")
        yield message


@contextmanager
def _translate_docker_errors(uri: str, credentials: Mapping[str, str] | None) -> Iterator[None]:
    """Turn errors of the daemon and of the connection to it into a RegistryRefused of one line."""
    import docker
    import requests

    try:
        yield
    except docker.errors.APIError as error:
        explanation = _redact_and_shorten(str(error.explanation or error.response.reason), credentials)
        raise RegistryRefused(f"{uri}: its registry refuses: {explanation}; {describe_push_remedy(uri)}") from error
    except requests.RequestException as error:
        raise RegistryRefused(f"{uri}: the connection to Docker was lost; run `pulumi up` again to continue") from error


def _redact_and_shorten(text: str, credentials: Mapping[str, str] | None) -> str:
    """Return a registry's text as one line, without the token or the header that carried it, which it may repeat."""
    if credentials:
        import docker

        for secret in (credentials["password"], docker.auth.encode_header(credentials).decode()):
            text = text.replace(secret, "[token]")
    return " ".join(text.split())[:300]
