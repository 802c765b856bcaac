"""The local target: the emulator lives as long as the stack, and its address is no input of anything."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from vertex_training.runtime import emulator
from vertex_training.runtime.acting import ActingRefused
from vertex_training.runtime.emulator import EmulatorProvider

from vertex_api.acting import Acting
from vertex_api.client import Endpoint
from vertex_api.emulator import IDENTITIES, SECRETS, STAND_INS

provider = EmulatorProvider()
DEFAULTS = ["--pids-limit=8192", "--log-limit-mb=100", "--egress"]


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was done to the emulator."""
    done: list[Any] = []

    def start(options: Sequence[str] = ()) -> Endpoint:
        done.append(("started", *options))
        return Endpoint.for_server("http://127.0.0.1:1")

    monkeypatch.setattr(emulator, "start", start)
    monkeypatch.setattr(emulator, "stop", lambda **how: done.append(("stopped", how)))
    return done


@pytest.mark.parametrize(
    ("props", "options"),
    [
        ({}, DEFAULTS),
        ({"port": None}, DEFAULTS),
        ({"port": 8080.0}, ["--port=8080", *DEFAULTS]),
        ({"pidsLimit": 64.0, "logLimitMb": 5.0}, ["--pids-limit=64", "--log-limit-mb=5", "--egress"]),
        ({"egress": False}, [*DEFAULTS[:-1], "--no-egress"]),
    ],
)
def test_creating_starts_the_emulator_with_its_settings(
    done: list[Any], props: dict[str, Any], options: list[str]
) -> None:
    created = provider.create(props)
    assert done == [("started", *options)]
    assert (created.id, created.outs) == ("emulator", props)


def test_another_port_restarts_the_emulator(done: list[Any]) -> None:
    assert provider.update("emulator", {"port": 1.0}, {"port": 2.0}).outs == {"port": 2.0}
    assert done == [("stopped", {}), ("started", "--port=2", *DEFAULTS)]


def test_a_removed_setting_has_its_default_again(done: list[Any]) -> None:
    provider.update("emulator", {"egress": False}, {})
    assert done == [("stopped", {}), ("started", *DEFAULTS)]


def test_secrets_change_without_a_restart(done: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERTEX_EMULATOR_DATA", str(tmp_path / "data"))
    file = tmp_path / "data" / SECRETS
    first, second = ({"project": "local", "secrets": {"token": value}} for value in "ab")
    provider.create(first)
    assert json.loads(file.read_text()) == {"local": {"token": "a"}}
    provider.update("emulator", first, second)
    assert json.loads(file.read_text()) == {"local": {"token": "b"}}
    provider.update("emulator", second, {**second, "project": "other"})
    assert json.loads(file.read_text()) == {"other": {"token": "b"}}
    assert ("stopped", {}) not in done
    provider.delete("emulator", {**second, "project": "other"})
    assert not file.exists()


def test_stand_ins_change_without_a_restart(done: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERTEX_EMULATOR_DATA", str(tmp_path))
    urls = [{"bigquery.googleapis.com": f"http://127.0.0.1:{port}"} for port in (1, 2)]
    first, second = ({"project": "local", "endpoints": each} for each in urls)
    provider.create({**first, "secrets": {"token": "a"}})
    assert json.loads((tmp_path / STAND_INS).read_text()) == {"local": urls[0]}
    provider.update("emulator", first, second)
    assert json.loads((tmp_path / STAND_INS).read_text()) == {"local": urls[1]}
    assert not (tmp_path / SECRETS).exists()
    provider.update("emulator", second, {})
    assert not (tmp_path / STAND_INS).exists()
    assert ("stopped", {}) not in done


def test_an_identity_is_kept_once_it_has_a_token(
    done: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VERTEX_EMULATOR_DATA", str(tmp_path))
    asked: list[str] = []

    def token(option: str, acting: Acting) -> None:
        asked.append(f"{option} by {acting.account}")
        if acting.account == "no":
            raise ActingRefused(f"{option}: Google gives no token")

    monkeypatch.setattr(emulator, "require_token", token)
    monkeypatch.setattr(emulator, "require_own_code", asked.append)
    account = "trainer@acme-dev.iam.gserviceaccount.com"
    user, other = ({"project": "local", "identity": each} for each in ("user", account))
    folder = tmp_path.stat().st_ino
    provider.create(user)
    assert json.loads((tmp_path / IDENTITIES).read_text()) == {"local": {"as": "user", "account": "", "folder": folder}}
    provider.update("emulator", user, other)
    kept = {"local": {"as": "account", "account": account, "folder": folder}}
    assert json.loads((tmp_path / IDENTITIES).read_text()) == kept
    with pytest.raises(ActingRefused):
        provider.update("emulator", other, {**other, "identity": "no"})
    assert json.loads((tmp_path / IDENTITIES).read_text()) == kept
    provider.update("emulator", other, {})
    assert not (tmp_path / IDENTITIES).exists()
    own = "emulator.identity"
    assert asked == [own, f"{own}: user by ", own, f"{own}: {account} by {account}", own, f"{own}: no by no"]


def test_reading_does_not_start_the_emulator(done: list[Any]) -> None:
    read = provider.read("emulator", {"port": 8080.0, "__provider": "x"})
    assert (read.id, read.outs, read.inputs, done) == ("emulator", {"port": 8080.0}, {"port": 8080.0}, [])


def test_destroying_stops_the_emulator_if_idle(done: list[Any]) -> None:
    provider.delete("emulator", {})
    assert done == [("stopped", {"only_if_idle": True})]
