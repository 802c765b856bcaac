"""Which refusals of Google Cloud pass by themselves, and for how long they are waited out."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pulumi
import pytest
from vertex_training.targets.gcp import project
from vertex_training.targets.gcp.project import retry_pause

from tests.vertex_api.clock import Clock
from vertex_api.retry import MAX_PAUSE_SECONDS, PROPAGATION_SECONDS

UNKNOWN = "Error 400: Service account service-1@x.iam.gserviceaccount.com does not exist., badRequest"
ACT_AS = "Error 403: Permission 'iam.serviceaccounts.actAs' denied on service account a@p (or it may not exist)."


class Engine:
    """Stands in for the engine, which calls the hook of a resource after each failed creation."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock, self.told = Clock(), list[str]()

        async def sleep(seconds: float) -> None:
            self.clock.sleep(seconds)

        monkeypatch.setattr(project, "asyncio", SimpleNamespace(sleep=sleep))
        for level in ("info", "warn"):
            monkeypatch.setattr(pulumi.log, level, lambda line, level=level: self.told.append(f"{level}: {line}"))

    def create(self, refusal: str, refused_seconds: float = 1e6) -> bool:
        """Create a resource that is refused for so long, and return whether it was created in the end."""
        errors: list[str] = []
        while self.clock.now - 1000 < refused_seconds:
            errors.insert(0, refusal)
            arguments: Any = SimpleNamespace(name="trainer", type="gcp:storage/bucket:Bucket", errors=errors)
            if not asyncio.run(project._await_retry(arguments)):
                return False
        return True


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    return Engine(monkeypatch)


def test_pauses_double_up_to_a_maximum() -> None:
    assert [retry_pause([UNKNOWN] * count) for count in (1, 2, 3)] == [1.0, 2.0, 4.0]
    assert retry_pause([UNKNOWN] * 10) == MAX_PAUSE_SECONDS
    assert retry_pause(["Error 403: denied", UNKNOWN]) is None


def test_a_grant_of_seven_minutes_is_waited_for(engine: Engine) -> None:
    assert engine.create(ACT_AS, refused_seconds=7 * 60)


def test_a_refusal_that_stays_is_explained(engine: Engine) -> None:
    assert not engine.create(ACT_AS)
    assert PROPAGATION_SECONDS - MAX_PAUSE_SECONDS < engine.clock.now - 1000 <= PROPAGATION_SECONDS
    assert engine.told[-1] == (
        "warn: trainer: IAM does not know the account, or the right to use it, yet, after 480 s; add who runs `pulumi` "
        "to identity.submitters, or grant them roles/iam.serviceAccountUser on it"
    )


def test_a_wait_is_told_each_minute(engine: Engine) -> None:
    engine.create(UNKNOWN)
    lines = [line for line in engine.told if line.startswith("info: ")]
    assert lines[0] == "info: trainer: IAM does not know the account yet; trying again for up to 480 s"
    assert len(lines) == 8


def test_a_mistake_is_not_waited_for(engine: Engine) -> None:
    assert not engine.create("Error 404: The specified bucket does not exist., notFound")
    assert not engine.told and not engine.clock.naps


@pytest.mark.parametrize(
    ("refusal", "advice"),
    [
        ("Error 403: Policy update access denied., forbidden", "roles/storage.admin on the project, or the bucket"),
        (
            "Error 403: x does not have storage.buckets.create access to the Google Cloud project., forbidden",
            "roles/storage.admin on the project, or the bucket",
        ),
        (
            "Error 403: Request is prohibited by organization's policy. vpcServiceControlsUniqueIdentifier: x",
            "perimeter",
        ),
        ("Error 412: 'us-east1' violates constraint 'constraints/gcp.resourceLocations'", "gcp.resourceLocations"),
    ],
)
def test_a_refusal_of_access_says_what_to_do(engine: Engine, refusal: str, advice: str) -> None:
    assert not engine.create(refusal)
    (line,) = engine.told
    assert line.startswith("warn: trainer: ") and advice in line
    assert not engine.clock.naps


def test_a_limit_of_requests_is_no_missing_role(engine: Engine) -> None:
    assert not engine.create("Error 403: Quota exceeded for quota metric 'Write requests'., rateLimitExceeded")
    assert not engine.told
