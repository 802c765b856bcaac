"""The command `vertex-training prices`."""

import pytest
from vertex_training import cli


def printed(line: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    assert cli.main(line.split()) == 0
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
