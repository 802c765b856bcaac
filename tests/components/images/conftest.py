"""Cloud Storage, to which images' sources and packages are uploaded."""

from collections.abc import Iterator

import pytest

from tests.standins.cloud_storage import CloudStorageStandIn, cloud_storage


@pytest.fixture
def storage(monkeypatch: pytest.MonkeyPatch) -> Iterator[CloudStorageStandIn]:
    with cloud_storage() as standin:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", standin.url)
        yield standin
