"""Where built images are kept: in the daemon alone, or in a registry, by Docker or, for Google's, over HTTP.

Credentials are looked up for each call, and are never part of an input, a state or a message: a token of the
Application Default Credentials for Google's registries, what `docker login` has stored for others.
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

from vertex_api import credentials

from ..errors import BuildFailed, DockerUnavailable, RegistryRefused
from .builders import DockerRefused, Report, connect, docker_errors

LOCAL_PREFIX = "localhost/"
"""The prefix of URIs of images that stay in the daemon: there is no registry of that name."""
SCHEME = "https"
_GOOGLE_HOST = re.compile(r"([a-z0-9-]+-docker[.]pkg[.]dev|([a-z]+[.])?gcr[.]io)")
_MANIFEST_TYPES = (
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.oci.image.index.v1+json",
)
"""All that Docker accepts, so that the digest is the one that it would give."""
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_ABSENT_MESSAGE = re.compile(r"manifest unknown|not found|name unknown|does not exist", re.IGNORECASE)
_IMMUTABLE_MESSAGE = re.compile(r"immutab", re.IGNORECASE)
_LAYER_IS_THERE = ("Pushed", "Layer already exists", "Mounted from")
_ABSENT, _OK = 404, 200
_CALL_SECONDS = 60.0


def store(uri: str) -> "Daemon | Registry":
    """Return what keeps the image of a URI. All methods raise ComponentError."""
    return Daemon() if uri.startswith(LOCAL_PREFIX) else Registry()


def repository(uri: str) -> str:
    """Return the URI of an image without its tag, which stays the same from build to build."""
    return uri.rpartition(":")[0]


class Daemon:
    """The Docker daemon of this machine, whose images the emulator runs."""

    def digest(self, uri: str) -> str | None:
        """Return the digest of an image, `sha256:…`; `None` if there is none under this URI."""
        try:
            with closing(connect()) as client, docker_errors():
                return str(client.images.get(uri).id)
        except DockerRefused as refusal:
            if refusal.status == _ABSENT:
                return None
            raise

    def publish(self, uri: str, report: Report) -> str:  # noqa: ARG002
        """Return the digest of an image that was built: the emulator can run it as it is."""
        digest = self.digest(uri)
        if digest is None:
            raise BuildFailed(
                f"{uri} was built in another Docker than {os.environ.get('DOCKER_HOST', 'the default one')}; "
                "set DOCKER_HOST to that of `docker context inspect`, then run this again"
            )
        return digest


class Registry:
    """A registry, which the daemon pushes to."""

    def digest(self, uri: str) -> str | None:
        """Return the digest of an image, `sha256:…`; `None` if there is none under this URI."""
        login = google_login(uri)
        with closing(connect()) as client, _registry_errors(uri, login):
            try:
                with docker_errors():
                    return str(client.images.get_registry_data(uri, auth_config=login).id)
            except DockerRefused as refusal:
                if refusal.status == _ABSENT or _ABSENT_MESSAGE.search(str(refusal)):
                    return None
                raise

    def publish(self, uri: str, report: Report) -> str:
        """Push an image that the daemon has, and return its digest."""
        name, _, tag = uri.rpartition(":")
        digest, login = None, google_login(uri)
        with closing(connect()) as client, _registry_errors(uri, login):
            messages = client.api.push(name, tag, stream=True, decode=True, auth_config=login)
            for message in _report_layers(messages, report):
                if "error" in message:
                    error = _redact(str(message["error"]), login)
                    # If tags are immutable, someone else may have pushed this image first.
                    if _IMMUTABLE_MESSAGE.search(error) and (digest := self.digest(uri)):
                        return digest
                    raise RegistryRefused(f"{uri} cannot be pushed: {error}; {_remedy(uri)}")
                digest = message.get("aux", {}).get("Digest", digest)
        if digest is None:
            raise RegistryRefused(f"{uri} was pushed, but the registry gave it no digest; run `pulumi up` again")
        return str(digest)


def _report_layers(messages: Iterator[dict[str, Any]], report: Report) -> Iterator[dict[str, Any]]:
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
def _registry_errors(uri: str, login: Mapping[str, str] | None) -> Iterator[None]:
    """Turn errors of the daemon and of the connection to it into a RegistryRefused of one line."""
    try:
        with docker_errors():
            yield
    except DockerRefused as refusal:
        reason = _redact(str(refusal), login)
        raise RegistryRefused(f"{uri}: its registry refuses: {reason}; {_remedy(uri)}") from refusal
    except DockerUnavailable as lost:
        raise RegistryRefused(f"{uri}: {lost}") from lost


def _redact(text: str, login: Mapping[str, str] | None) -> str:
    """Return a registry's text as one line, without the token or the header that carried it, which it may repeat."""
    if login:
        import docker

        for secret in (login["password"], docker.auth.encode_header(login).decode()):
            text = text.replace(secret, "[token]")
    return " ".join(text.split())[:300]


def is_google(uri: str) -> bool:
    """Whether an image, or a prefix of images, is in Artifact Registry or Container Registry."""
    return _GOOGLE_HOST.fullmatch(uri.partition("/")[0]) is not None


class GoogleRegistry:
    """A registry of Google's, asked over HTTP (registry API v2), for machines without Docker."""

    def digest(self, uri: str) -> str | None:
        """Return the digest of an image, `sha256:…`; `None` if there is none. Raises RegistryRefused."""
        import requests

        from vertex_api import transport

        login = google_login(uri)
        host, _, path = uri.partition("/")
        name, _, tag = path.rpartition(":")
        try:
            with transport.mount(requests.Session()) as session:
                reply = session.head(
                    f"{SCHEME}://{host}/v2/{name}/manifests/{tag}",
                    auth=(login["username"], login["password"]) if login else None,
                    headers={"Accept": ", ".join(_MANIFEST_TYPES)},
                    timeout=_CALL_SECONDS,
                )
        except transport.AnswerRefused as error:
            raise RegistryRefused(f"{uri}: {error}") from error
        except requests.RequestException as error:
            raise RegistryRefused(f"{uri}: no answer from {host}; check that it is reachable") from error
        if reply.status_code == _ABSENT:
            return None
        digest: str | None = reply.headers.get("Docker-Content-Digest")
        if reply.status_code != _OK or digest is None or not _DIGEST.fullmatch(digest):
            answer = f"{reply.status_code} {reply.reason}".strip()[:200]
            raise RegistryRefused(f"{uri}: its registry refuses: {answer}; {_remedy(uri)}")
        return digest


def google_login(uri: str) -> Mapping[str, str] | None:
    """Return credentials for a registry of Google's; `None` for others, whose credentials Docker looks up."""
    if not is_google(uri):
        return None
    from google.auth.exceptions import GoogleAuthError

    try:
        return {"username": "oauth2accesstoken", "password": credentials.fetch_token()}
    except GoogleAuthError as error:
        remedy = credentials.explain(error)
        raise RegistryRefused(f"{uri}: no valid Google credentials for its registry: {remedy}") from error


def _remedy(uri: str) -> str:
    """Return what to do if a registry takes no image."""
    host = uri.partition("/")[0]
    advice = f"log in with `docker login {host}`, or check that it is reachable"
    if is_google(uri):
        advice = "your account needs roles/artifactregistry.writer on the repository"
        if place := credentials.token_place():
            advice += f", and the token of {place} must not have expired"
    return f"{advice}; layers that were pushed are not sent again"
