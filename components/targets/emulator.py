"""The emulator as a dynamic resource: it starts with the stack, and stops with it if nobody else needs it."""

from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi import dynamic

from vertex_api.jobspec import EGRESS, LOG_LIMIT_MB, PIDS_LIMIT

from .. import providers
from ..runtime import emulator
from ..runtime.provider import Provider
from ..runtime.resource import DynamicResource
from ..schema import shapes

_CONTAINER_DEFAULTS = {"pidsLimit": PIDS_LIMIT, "logLimitMb": LOG_LIMIT_MB, "egress": EGRESS}


class EmulatorProvider(Provider):
    """Starts the emulator with the stack, and stops it with the stack unless jobs of other stacks are active in it."""

    input_names = ("port", *_CONTAINER_DEFAULTS, "project", "secrets")

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        _keep_secrets(props, props.get("secrets"))
        emulator.start(_serve_options(props))
        return dynamic.CreateResult("emulator", dict(props))

    def update(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.UpdateResult:
        """Restart the emulator if an option of its start has changed; it reads secrets when they are asked for."""
        if olds.get("project", news.get("project")) != news.get("project"):
            _keep_secrets(olds, None)
        if _serve_options(olds) != _serve_options(news):
            emulator.stop()
        return super().update(_id, olds, news)

    def read(self, id_: str, props: dict[str, Any]) -> dynamic.ReadResult:
        """Return what is recorded: whether the emulator runs does not matter, as every call to it starts it."""
        return self.read_result(id_, props)

    def delete(self, _id: str, props: dict[str, Any]) -> None:
        _keep_secrets(props, None)
        emulator.stop(only_if_idle=True)


class Emulator(DynamicResource):
    """The emulator's process. Without a `port` it chooses one and keeps it across restarts.

    It serves the `secrets` of `settings` as those of a Google Cloud `project`.
    """

    def __init__(
        self, name: str, settings: shapes.Emulator, project: str, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        props: dict[str, Any] = {"port": None, **settings}
        if secrets := settings.get("secrets"):
            props |= {"project": project, "secrets": pulumi.Output.secret(secrets)}
        super().__init__(providers.Emulator(), name, props, opts)


def _keep_secrets(props: Mapping[str, Any], secrets: Mapping[str, str] | None) -> None:
    """Write the secrets of the project that an emulator's inputs name, if any, to its file; None removes them."""
    if project := props.get("project"):
        emulator.replace_secrets(project, secrets or {})


def _serve_options(props: Mapping[str, Any]) -> list[str]:
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
