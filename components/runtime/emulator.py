"""The emulator of a project, from outside: its process, requests to it, its secrets, and its resource in a stack."""

import http.client
import ipaddress
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import pulumi
from pulumi import dynamic

from vertex_api import locks
from vertex_api.acting import Acting
from vertex_api.client import Endpoint
from vertex_api.emulator import DECLARATIONS, GRANTS, IDENTITIES, SECRETS, STAND_INS, Address, ask
from vertex_api.jobspec import EGRESS, LOG_LIMIT_MB, PIDS_LIMIT

from .. import providers
from ..errors import EmulatorFailed, SubmitFailed
from ..own import emulator_data
from . import engine, holders
from .acting import require_own_code, require_token
from .resource import DynamicResource, Provider

REMOTE_VARIABLE = "VERTEX_EMULATOR_ALLOW_REMOTE"
_FOLDER = Path("/")
"""Where its commands run: `python -m` puts this folder first on the import path, so it is not the user's project, whose
modules may have any name."""
_PROBE_SECONDS = 5


def start(serve_options: Sequence[str] = ()) -> Endpoint:
    """Return the emulator's endpoint, after starting it with options if it is not running. Raises EmulatorFailed."""
    if endpoint := find(emulator_data()):
        return endpoint
    done = _run("start", *serve_options)
    if done.returncode:
        raise EmulatorFailed(f"the emulator does not start: {_last_line(done.stderr)}")
    if endpoint := find(emulator_data()):
        return endpoint
    raise EmulatorFailed(f"the emulator has ended right after its start; its log is {emulator_data()}/emulator.log")


def stop(*, only_if_idle: bool = False) -> None:
    """Stop the emulator, with `only_if_idle` unless jobs are active; print why it goes on. Raises EmulatorFailed."""
    done = _run("stop", *(["--if-idle"] if only_if_idle else []))
    # Pulumi says itself that it is deleted, and shows what is printed as a diagnostic.
    if (line := done.stdout.strip()) not in ("", "stopped"):
        print(line, flush=True)  # noqa: T201
    if done.returncode:
        raise EmulatorFailed(f"the emulator does not stop: {_last_line(done.stderr)}")


def _run(verb: str, *options: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "vertex_emulator", verb, f"--data={emulator_data()}", *options],
        cwd=_FOLDER,
        # Without the variables of Pulumi's plugins, which hold the stack's secrets.
        env={name: value for name, value in os.environ.items() if not name.startswith("PULUMI_")},
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )


def _last_line(output: str) -> str:
    """Return the last line of a command's messages, without the command's name."""
    last = next((line for line in reversed(output.splitlines()) if line.strip()), "it says nothing")
    return last.removeprefix("vertex-emulator: ")


def find(data: Path) -> Endpoint | None:
    """Return the endpoint of the emulator that serves a data folder, None without one that answers.

    Raises EmulatorFailed if it rejects this user, or listens on an address that is not allowed.
    """
    try:
        if not (address := Address.read(data)):
            return None
        token = address.token()
        _require_allowed_address(address.url)
        answer = ask(address.url, token, "/healthz", seconds=_PROBE_SECONDS)
        if answer.version is None:
            return None
        if answer.status >= 300:
            raise EmulatorFailed(f"the emulator at {address.url} refuses: {answer.refusal}")
        # A starting emulator holds the lock for a moment before it removes what another one left.
        is_same = answer.version == address.version and address == Address.read(data)
        return Endpoint.for_server(address.url, token) if is_same else None
    except (OSError, ValueError, AttributeError, http.client.HTTPException):
        return None


def _require_allowed_address(url: str) -> None:
    host = urlsplit(url).hostname
    try:
        is_loopback = ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        is_loopback = host == "localhost"
    if host and not is_loopback and not os.environ.get(REMOTE_VARIABLE):
        raise EmulatorFailed(
            f"the emulator listens on {url}, which other machines reach: serve it on 127.0.0.1, or set "
            f"{REMOTE_VARIABLE}=1 to use it anyway"
        )


def request(
    method: Literal["GET", "PUT", "POST", "DELETE"], path: str, body: Mapping[str, Any] | None, error_prefix: str
) -> dict[str, Any] | None:
    """Send a request for what the emulator alone has, such as its schedules, and return the answer; None for 404.

    Starts the emulator if it is not running. `path` stands below `/vertex_emulator/`. Raises SubmitFailed, as one line:
    `<error_prefix>: <what it answered>`.
    """
    return _send(method, f"/vertex_emulator/{path}", body, error_prefix, 404)


def make_experiment(name: str, error_prefix: str) -> bool:
    """Make the context of an experiment as Google's SDK does, and return whether it was missing. Raises SubmitFailed.

    `name` is its full resource name.
    """
    store, _, experiment = name.rpartition("/contexts/")
    stores, _, store_id = store.rpartition("/")
    _send("POST", f"/v1/{stores}?metadataStoreId={store_id}", {}, error_prefix, 409)
    fields = {
        "displayName": experiment,
        "schemaTitle": "system.Experiment",
        "schemaVersion": "0.0.1",
        "metadata": {"experiment_deleted": False},
    }
    return _send("POST", f"/v1/{store}/contexts?contextId={experiment}", fields, error_prefix, 409) is not None


def recorded(run: str, error_prefix: str) -> Mapping[str, Any]:
    """Return what the context of a run of an experiment has as Google's SDK records it. Raises SubmitFailed."""
    found = _send("GET", f"/v1/{run}", None, error_prefix, 404)
    return dict(found.get("metadata", {})) if found else {}


def _send(
    method: str, path: str, body: Mapping[str, Any] | None, error_prefix: str, nothing: int
) -> dict[str, Any] | None:
    """Send a request and return the answer; None for the status that means `nothing`. Raises SubmitFailed."""
    endpoint = start()
    try:
        answer = ask(endpoint.jobs, endpoint.token, path, body, method)
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise SubmitFailed(f"{error_prefix}: the emulator does not answer ({error}); run this again") from error
    if answer.status == nothing:
        return None
    if answer.status >= 300:
        raise SubmitFailed(f"{error_prefix}: {answer.refusal or 'it refuses without a reason'}")
    found: dict[str, Any] = answer.body
    return found


def replace_secrets(project: str, values_by_name: Mapping[str, str]) -> None:
    """Write the secrets of a Google Cloud project in place of its present ones, which the emulator serves as Secret
    Manager. The emulator need not run.
    """
    _replace(SECRETS, project, dict(values_by_name))


def replace_stand_ins(project: str, urls_by_host: Mapping[str, str]) -> None:
    """Write where the jobs of a Google Cloud project find services that the emulator does not have, in the same way."""
    _replace(STAND_INS, project, dict(urls_by_host))


def replace_identity(project: str, identity: Mapping[str, Any]) -> None:
    """Write whom the jobs of a Google Cloud project act as at Google, in the same way, but once the emulator has run.

    It closes a folder to others, in which what says so counts for nothing. No secret is written.
    """
    if identity or (emulator_data() / IDENTITIES).exists():
        _replace(IDENTITIES, project, {**identity, "folder": emulator_data().stat().st_ino} if identity else {})


def replace_grants(project: str, grants: Mapping[str, Any]) -> None:
    """Write what the jobs of a Google Cloud project may do (`GRANTS`), in the same way. Without, all is allowed."""
    _replace(GRANTS, project, grants)


def replace_declarations(stack: str, folder: Path, jobs: Sequence[Mapping[str, Any]]) -> None:
    """Write where the jobs of a stack are declared, for the emulator's page; without a data folder, do nothing.

    `folder` is that of the project. Each of `jobs` has a `name`, a `place`, the `stack` that Pulumi knows, and those
    `labels` by which its jobs are known.
    """
    if emulator_data().is_dir():
        _replace(DECLARATIONS, stack, {"folder": str(folder), "jobs": [*jobs]} if jobs else {})


def _replace(name: str, key: str, value: Mapping[str, Any]) -> None:
    """Write the value of a key into a JSON file of the data folder, for its owner only. An empty one removes it."""
    folder = emulator_data()
    file = folder / name
    if not value and not file.exists():
        return
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock_file = file.with_suffix(".lock")
    if link := next((each for each in (file, lock_file) if each.is_symlink()), None):
        raise EmulatorFailed(f"{link}: is a link, which may lead anywhere; remove it")
    with locks.held(lock_file):  # of several stacks
        values = json.loads(file.read_text()) if file.exists() else {}
        values = {other: each for other, each in values.items() if other != key}
        if value:
            values[key] = value
        if not values:
            file.unlink(missing_ok=True)
            return
        new_file = file.with_suffix(".new")
        new_file.unlink(missing_ok=True)
        with os.fdopen(os.open(new_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
            json.dump(values, stream)
        new_file.replace(file)


_ID = "emulator"
ACTING_USER = "user"
"""The identity of whoever is logged in on this machine, in place of an account's e-mail."""
_CONTAINER_DEFAULTS = {"pidsLimit": PIDS_LIMIT, "logLimitMb": LOG_LIMIT_MB, "egress": EGRESS}


class EmulatorProvider(Provider):
    """Starts the emulator with the stack, and stops it with the stack unless jobs of other stacks are active in it."""

    input_names = ("port", *_CONTAINER_DEFAULTS, "project", "secrets", "endpoints", "identity")

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        identity = _identity(props)
        _keep(props, props)
        start(serve_options(props))
        if project := props.get("project"):
            replace_identity(project, identity)
        holders.current().take(engine.requested_urn(), _ID)
        return dynamic.CreateResult(_ID, dict(props))

    def update(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.UpdateResult:
        """Restart the emulator if an option of its start has changed; it reads the rest when it needs it."""
        if olds.get("project", news.get("project")) != news.get("project"):
            _keep(olds, {})
        if serve_options(olds) != serve_options(news):
            stop()
        return super().update(_id, olds, news)

    def read(self, id_: str, props: dict[str, Any]) -> dynamic.ReadResult:
        """Return what is recorded: whether the emulator runs does not matter, as every call to it starts it."""
        return self.read_result(id_, props)

    def delete(self, id_: str, props: dict[str, Any]) -> None:
        """Stop the emulator, unless it goes on under another URN: then its secrets and its process are that one's."""
        if not holders.current().release(engine.requested_urn(), id_).is_last:
            return
        _keep(props, {})
        stop(only_if_idle=True)


class Emulator(DynamicResource):
    """The emulator's process. Without a `port` it chooses one and keeps it across restarts.

    The `secrets`, `endpoints` and `identity` of `settings`, a `shapes.Emulator`, are for jobs of a Google Cloud
    `project`.
    """

    def __init__(
        self, name: str, settings: Mapping[str, Any], project: str, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        props: dict[str, Any] = {"port": None, **settings}
        if any(settings.get(key) for key in ("secrets", "endpoints", "identity")):
            props["project"] = project
        if secrets := settings.get("secrets"):
            props["secrets"] = pulumi.Output.secret(secrets)
        super().__init__(providers.Emulator(), name, props, opts)


def _keep(props: Mapping[str, Any], kept: Mapping[str, Any]) -> None:
    """Write what is `kept` for the project that an emulator's inputs name, if any; the rest is removed."""
    if project := props.get("project"):
        replace_secrets(project, kept.get("secrets") or {})
        replace_stand_ins(project, kept.get("endpoints") or {})
        if not kept.get("identity"):
            replace_identity(project, {})


def _identity(props: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what the emulator is told of whom jobs act as, once Google has given a token. Raises ActingRefused."""
    identity = props.get("identity")
    if not identity:
        return {}
    require_own_code("emulator.identity")
    account = "" if identity == ACTING_USER else str(identity)
    require_token(f"emulator.identity: {identity}", Acting(account))
    return {"as": "account" if account else "user", "account": account}


def serve_options(props: Mapping[str, Any]) -> list[str]:
    """Return options of `vertex-emulator serve`; it keeps those of its last start, so defaults are given as well."""
    containers = {
        name: default if props.get(name) is None else props[name] for name, default in _CONTAINER_DEFAULTS.items()
    }
    return [
        *([f"--port={int(props['port'])}"] if props.get("port") else []),
        f"--pids-limit={int(containers['pidsLimit'])}",
        f"--log-limit-mb={int(containers['logLimitMb'])}",
        "--egress" if containers["egress"] else "--no-egress",
    ]
