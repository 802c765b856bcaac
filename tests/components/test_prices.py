"""The command `vertex-training prices`."""

import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from shlex import quote, split
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from vertex_training import cli
from vertex_training.errors import DeclarationErrors
from vertex_training.settings.settings import Settings

from tests.standins.json_answers import send_json
from tests.vertex_api.estimates.test_catalog import ON_VERTEX, sku
from vertex_api.estimates import catalog
from vertex_api.estimates.availability import REGIONS
from vertex_api.estimates.prices import FILE, VARIABLE, PricesUnusable, filed_prices, price_names


def printed(line: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    assert cli.main(split(line)) == 0
    return capsys.readouterr().out.splitlines()


def test_each_price_has_its_day_and_its_source(capsys: pytest.CaptureFixture[str]) -> None:
    price, source = printed("prices --name NVIDIA_TESLA_T4 --region europe-west4", capsys)
    assert price.split() == [
        "accelerator",
        "NVIDIA_TESLA_T4",
        "europe-west4",
        "0.422625",
        *["USD", "per", "hour", "2026-01-01", "[1]"],
    ]
    assert source.startswith("[1] as of 2026-01-01: a public catalog of Compute Engine list prices of 2026, times 1.15")


def test_a_region_without_a_price_shows_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    price, _ = printed("prices --name NVIDIA_TESLA_P4 --region europe-west1", capsys)
    assert price.endswith("[1]  ~ of europe-west4, the nearest region with one")


def test_without_a_region_all_regions_on_file_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    *prices, _ = printed("prices --name NVIDIA_TESLA_P4", capsys)
    assert [line.split()[2] for line in prices] == [
        "asia-southeast1",
        "europe-west4",
        "us-central1",
    ]
    assert not [line for line in prices if "~" in line]


DESCRIPTIONS = {"A3-MEGA": "A3Plus", "A3-ULTRA": "A3Ultra", "NVIDIA_H100_MEGA_80GB": "NVIDIA H100 80GB Plus"}


def skus() -> dict[str, list[dict[str, Any]]]:
    """SKUs of all that has a known description, in all regions, by service."""
    texts = {f"{DESCRIPTIONS.get(name, name)} Instance Core running": "h" for name in price_names()["vcpu"]}
    texts |= {f"{DESCRIPTIONS.get(name, name)} Instance Ram running": "GiBy.h" for name in price_names()["gb"]}
    accelerators = [name for name in price_names()["accelerator"] if name.startswith("NVIDIA_")]
    texts |= {DESCRIPTIONS.get(name, name.replace("_", " ")): "h" for name in accelerators}
    texts |= dict.fromkeys(catalog.DISKS.values(), "GiBy.mo")
    regions = sorted(REGIONS)
    return {
        catalog.VERTEX: [
            sku(f"{ON_VERTEX}{text} in X", 1_150_000, unit=unit, regions=regions) for text, unit in texts.items()
        ],
        catalog.COMPUTE: [sku(f"{text} in X", 1_000_000, unit=unit, regions=regions) for text, unit in texts.items()],
    }


@dataclass
class Catalog:
    """A stand-in for the Cloud Billing Catalog API: pages of ten SKUs, or a refusal. `asked` are the queries."""

    asked: list[dict[str, list[str]]] = field(default_factory=list)
    refusal: dict[str, Any] | None = None


@contextmanager
def served(standin: Catalog) -> Iterator[str]:
    known = skus()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            standin.asked.append(query := parse_qs(url.query))
            if standin.refusal:
                send_json(self, 403, standin.refusal)
                return
            start = int(query.get("pageToken", ["0"])[0])
            items = known[url.path.split("/")[2]]
            following = str(start + 10) if start + 10 < len(items) else ""
            send_json(self, 200, {"skus": items[start : start + 10], "nextPageToken": following})

        def log_message(self, *arguments: object) -> None:
            """Nothing: a test's output is its own."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=[0.02], daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


@pytest.fixture
def billing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Catalog]:
    standin = Catalog()
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", "token")
    with served(standin) as address:
        monkeypatch.setenv(catalog.ENDPOINT_VARIABLE, address)
        yield standin


def test_an_update_prices_all_machines_in_all_regions(
    billing: Catalog, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "prices.json"
    count, pairs, export = printed(f"prices --update {quote(str(file))}", capsys)
    assert pairs == "4,595 of 4,914 pairs of a machine type and a region have prices of their own"
    assert count.startswith(f"{file}: ") and export == f"export {VARIABLE}={quote(str(file))}"
    assert {each["currencyCode"][0] for each in billing.asked} == {"USD"}
    assert {each["pageSize"][0] for each in billing.asked} == {"5000"}
    assert len([each for each in billing.asked if "pageToken" in each]) > 4
    monkeypatch.setenv(VARIABLE, str(file))
    price, source = printed("prices --name NVIDIA_B200 --region europe-west4", capsys)
    assert price.split()[3] == "0.00115" and "Cloud Billing Catalog API" in source
    assert printed("prices --name TPU_V3 --region us-central1", capsys)[0].split()[3] == "9.2"
    assert filed_prices().find("vcpu", "N1", "me-west1")
    again, *_ = printed(f"prices --update {quote(str(file))}", capsys)
    assert again.endswith(", 0 of them new and 0 changed")


def test_prices_stay_where_none_can_be_had(
    billing: Catalog, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "prices.json"
    file.write_text(FILE.read_text())
    billing.refusal = {"error": {"code": 403, "details": [{"reason": "SERVICE_DISABLED"}]}}
    assert cli.main(["prices", "--update", str(file)]) == 1
    assert "gcloud services enable cloudbilling.googleapis.com" in capsys.readouterr().err
    billing.refusal = {"error": {"code": 403, "message": "no"}}
    assert cli.main(["prices", "--update", str(file)]) == 1
    assert "answers with status 403" in capsys.readouterr().err
    monkeypatch.setenv(catalog.ENDPOINT_VARIABLE, "http://127.0.0.1:9/")
    assert cli.main(["prices", "--update", str(file)]) == 1
    assert "does not answer" in capsys.readouterr().err
    assert file.read_text() == FILE.read_text() and len([*tmp_path.iterdir()]) == 1


BROKEN = ["", "{}", "[]", '{"sources": {}, "prices": {}, "places": {}}']
BROKEN += [FILE.read_text().replace("2026-01-01", "soon"), FILE.read_text().replace("0.4025", "-1", 1)]
BROKEN += [FILE.read_text().replace("0.4025", "NaN", 1), FILE.read_text().replace('"vcpu"', '"cpu"')]


@pytest.mark.parametrize("text", BROKEN, ids=range(len(BROKEN)))
def test_a_file_without_prices_is_told(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "prices.json"
    file.write_text(text)
    monkeypatch.setenv(VARIABLE, str(file))
    assert cli.main(["prices"]) == 2
    said = f"{VARIABLE}: {file} is no file of prices; write it by `vertex-training prices --update {file}`"
    assert said in capsys.readouterr().err
    config = {"target": "gcp", "project": "acme-dev", "projectNumber": "123456789012", "region": "us-central1"}
    config = {f"vertex-training:{key}": each for key, each in config.items()}
    with pytest.raises(DeclarationErrors) as raised:
        Settings.load_from_config("team", "dev", tmp_path, config)
    assert said in str(raised.value)


HOSTILE_PRICES: dict[str, bytes] = {
    "nothing": b"",
    "bytes": bytes(range(256)),
    "lists without end": b"[" * 100_000,
    "another form": b'{"prices": [], "sources": 7, "places": null}',
    "a number of 10,000 digits": FILE.read_bytes().replace(b'"prices"', b'"x": ' + b"9" * 10_000 + b', "prices"', 1),
    "no finite price": re.sub(rb": [0-9.]+", b": 1e999", FILE.read_bytes(), count=1),
    "a negative price": re.sub(rb": [0-9.]+", b": -1", FILE.read_bytes(), count=1),
}


@pytest.mark.parametrize("name", [*HOSTILE_PRICES, "a pipe", "a folder", "a device without end", "a long name"])
def test_hostile_prices_are_one_line(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "prices.json"
    if name == "a pipe":
        os.mkfifo(file)
    elif name == "a folder":
        file.mkdir()
    elif name in HOSTILE_PRICES:
        file.write_bytes(HOSTILE_PRICES[name])
    named = {"a device without end": "/dev/zero", "a long name": "x" * 5000}.get(name, str(file))
    monkeypatch.setenv(VARIABLE, named)
    with pytest.raises(PricesUnusable, match="is no file of prices; write it by") as refused:
        filed_prices()
    assert "\n" not in str(refused.value)


def test_prices_in_another_currency_are_none(
    billing: Catalog, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "prices.json"
    file.write_bytes(FILE.read_bytes().replace(b'"USD"', b'"EUR"', 1).replace(b"9.2", b"8.7"))
    monkeypatch.setenv(VARIABLE, str(file))
    with pytest.raises(PricesUnusable, match="has prices in EUR, and limits and sums are in USD; write it by"):
        filed_prices()
    printed(f"prices --update {quote(str(file))}", capsys)
    assert printed("prices --name TPU_V3 --region us-central1", capsys)[0].split()[3] == "9.2"
