"""One build in Cloud Build: its request, started once, waited for slowly, cancelled, and refused in one line."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from vertex_training.errors import BuildFailed
from vertex_training.images.build_client import BuildClient, BuildLog
from vertex_training.images.cloud_build import MAX_PAUSE_SECONDS, BuildRun, ImageBuild, build_tag, newest_image
from vertex_training.runtime import engine

from tests.corpus.discovery import broken
from tests.standins.cloud_build import CloudBuildStandIn, Refusal, cloud_build
from vertex_api import retry

URI = "europe-west4-docker.pkg.dev/acme-dev/team/trainer:0123456789abcdef"
PARENT = "projects/acme-dev/locations/europe-west4"
ACCOUNT = "team-dev-build@acme-dev.iam.gserviceaccount.com"
BUILD = ImageBuild(URI, "gs://acme/sources/abc.tar.gz", "17", "context/Dockerfile", "linux/amd64")
OPTIONS = {"parent": PARENT, "serviceAccount": ACCOUNT}
DONE = {"status": "SUCCESS"}


class Waits:
    """Takes the place of waiting: each wait calls the next of `then`, and the last one says whether to cancel."""

    def __init__(self, *then: Callable[[], object]) -> None:
        self.then, self.seconds = list(then), list[float]()

    def __call__(self, seconds: float) -> bool:
        self.seconds.append(seconds)
        return bool(self.then and self.then.pop(0)())


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[CloudBuildStandIn]:
    """A service whose builds stay in the queue until a test says otherwise."""
    monkeypatch.setattr(engine, "wait_for_cancellation", lambda seconds: False)
    with cloud_build() as standin:
        standin.outcome = {"status": "QUEUED"}
        yield standin


def start_run(service: CloudBuildStandIn, *then: Callable[[], object]) -> tuple[BuildRun, BuildLog, Waits, list[str]]:
    waits, told = Waits(*then), list[str]()
    client = BuildClient(service.url, service.url)
    run = BuildRun(client, BUILD, OPTIONS, told.append, waits)
    return run, BuildLog(client, "acme-dev", "00000000-0000-4000-8000-000000000000", told.append, waits), waits, told


def update(service: CloudBuildStandIn, **fields: Any) -> Callable[[], None]:
    return lambda: next(iter(service.builds.values())).update(fields)


def fail_to_start(service: CloudBuildStandIn) -> str:
    run, *_ = start_run(service)
    with pytest.raises(BuildFailed) as failed:
        run.start()
    (line,) = str(failed.value).splitlines()
    assert line.startswith(f"{URI}: ")
    return line


def test_pauses_of_a_wait_grow(service: CloudBuildStandIn) -> None:
    run, log, waits, _ = start_run(service, *[lambda: None] * 9, update(service, **DONE))
    assert run.wait(run.start(), log, list)["status"] == "SUCCESS"
    assert waits.seconds == sorted(waits.seconds) and waits.seconds[-1] == MAX_PAUSE_SECONDS
    assert (service.count("create"), service.count("list"), service.count("get")) == (1, 1, 10)
    assert service.count("log") == 2, "a log is read every ten seconds, and at the end"


def test_an_active_build_is_waited_for(service: CloudBuildStandIn) -> None:
    first, *_ = start_run(service)
    again, log, _, told = start_run(service, update(service, **DONE))
    id_ = first.start()["id"]
    assert again.wait(again.start(), log, list)["id"] == id_
    assert told == [f"waits for build {id_}, which an earlier run has started"]
    third, *_ = start_run(service)
    assert third.start()["id"] != id_, "one that has ended is not active"


def test_builds_of_other_images_are_left_alone(service: CloudBuildStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    others = [{"id": "1", "status": "WORKING", "tags": ["other"]}, {"id": "2", "status": "WORKING"}]
    monkeypatch.setattr(BuildClient, "list", lambda *_: others)
    run, *_ = start_run(service)
    assert run.start()["id"] not in ("1", "2")


def build_of(uri: str, **fields: Any) -> dict[str, Any]:
    return {"status": "SUCCESS", "results": {"images": [{"name": uri, "digest": "sha256:1"}]}, **fields}


def test_layers_are_of_the_newest_image() -> None:
    repository = URI.partition(":")[0]
    skipped = [
        build_of(URI),
        build_of(f"{repository}-2:5"),
        build_of(f"{repository}:4", status="WORKING"),
        {"status": "SUCCESS"},
    ]
    assert newest_image([*skipped, build_of(f"{repository}:3"), build_of(f"{repository}:2")], URI) == f"{repository}:3"
    assert newest_image(skipped, URI) is None


@pytest.mark.parametrize(("options", "is_reused"), [({}, False), ({"cache": True}, True), ({"cache": False}, False)])
def test_the_last_image_is_reused_if_asked(
    service: CloudBuildStandIn, options: dict[str, Any], *, is_reused: bool
) -> None:
    repository = URI.partition(":")[0]
    last = build_of(f"{repository}:last", id="last", tags=[build_tag(repository)])
    service.builds["last"] = last
    told: list[str] = []
    run = BuildRun(BuildClient(service.url, service.url), BUILD, {**OPTIONS, **options}, told.append)
    arguments = run.start()["steps"][0]["args"]
    assert (f"--cache-from={repository}:last" in arguments) == is_reused == bool(told)
    assert service.count("list") == 1, "the call that looks for an active build finds the last image too"


def test_a_lost_answer_starts_no_second_build(service: CloudBuildStandIn) -> None:
    service.refusals["create"] = [Refusal(0)]
    run, *_ = start_run(service)
    assert run.start()["status"] == "QUEUED"
    assert (len(service.builds), service.count("create"), service.count("list")) == (1, 1, 2)


def test_cancelling_a_run_cancels_its_build(service: CloudBuildStandIn) -> None:
    run, log, *_ = start_run(service, lambda: None, lambda: True)
    with pytest.raises(BuildFailed, match=r"its build was cancelled with this run; run `pulumi up` again to build it"):
        run.wait(run.start(), log, list)
    assert [build["status"] for build in service.builds.values()] == ["CANCELLED"]


def test_a_failed_cancellation_is_named(service: CloudBuildStandIn) -> None:
    service.refusals["cancel"] = [Refusal(403, "no")]
    run, log, *_ = start_run(service, lambda: True)
    with pytest.raises(BuildFailed, match=r"could not be cancelled and goes on: no; the next `pulumi up` waits for it"):
        run.wait(run.start(), log, list)


def test_too_many_looks_and_outages_pass(service: CloudBuildStandIn) -> None:
    service.refusals["get"] = [Refusal(429, "Quota exceeded for quota metric 'Get requests'"), Refusal(503, "later")]
    run, log, *_ = start_run(service, update(service, **DONE))
    assert run.wait(run.start(), log, list)["status"] == "SUCCESS"
    assert service.count("get") == 3


@pytest.mark.parametrize(
    ("refusal", "expected"),
    [
        (
            Refusal(403, "Cloud Build API has not been used in project 1 before or it is disabled"),
            "the Cloud Build API is off: .*; enable it by `gcloud services enable cloudbuild.googleapis.com`",
        ),
        (
            Refusal(403, "The caller does not have permission"),
            f"roles/cloudbuild.builds.editor on the project and roles/iam.serviceAccountUser on {ACCOUNT}",
        ),
        (
            Refusal(403, "caller does not have permission to act as service account"),
            f"roles/iam.serviceAccountUser on {ACCOUNT}",
        ),
        (
            Refusal(403, "Permission 'iam.serviceaccounts.actAs' denied on service account a@p (or it may not exist)."),
            f"roles/iam.serviceAccountUser on {ACCOUNT}",
        ),
        (
            Refusal(403, "Permission 'cloudkms.cryptoKeyVersions.useToDecrypt' denied on resource"),
            "grant roles/cloudkms.cryptoKeyEncrypterDecrypter on the key to the agent",
        ),
        (
            Refusal(400, "failed precondition: due to quota restrictions, cannot run builds in this region"),
            "name another vertex-training:builder.cloudBuild.region, or ask for quota",
        ),
        (
            Refusal(
                429, "Quota exceeded for quota metric 'Build and Operation Create requests'", "RATE_LIMIT_EXCEEDED"
            ),
            "Cloud Build has too many requests: Quota exceeded .*; run `pulumi up` again later, or ask for quota",
        ),
        (
            Refusal(404, "worker pool not found"),
            "check the project, vertex-training:builder.cloudBuild.region and pool",
        ),
        (Refusal(500, "Internal error"), "Cloud Build does not answer: Internal error; run `pulumi up` again"),
        (Refusal(400, "invalid value"), "Cloud Build rejects the build: invalid value"),
    ],
    ids=lambda value: f"{value.code} {value.message[:20]}" if isinstance(value, Refusal) else "",
)
def test_each_refusal_is_one_line_with_a_remedy(
    service: CloudBuildStandIn, monkeypatch: pytest.MonkeyPatch, refusal: Refusal, expected: str
) -> None:
    # No retry: what is retried for minutes first is the caller's.
    monkeypatch.setattr(retry, "rule_for", lambda *_: None)
    service.refusals["create"] = [refusal]
    line = fail_to_start(service)
    assert re.search(expected, line), line


def test_new_grants_and_apis_are_waited_for(service: CloudBuildStandIn) -> None:
    new = [
        "API has not been used in project 1 before or it is disabled",
        "caller does not have permission to act as service account",
        f"Permission 'iam.serviceaccounts.actAs' denied on service account {ACCOUNT} (or it may not exist).",
    ]
    service.refusals["create"] = [Refusal(403, text) for text in new]
    service.refusals["list"] = [Refusal(403, new[0])]
    run, *_ = start_run(service)
    assert run.start()["status"] == "QUEUED" and service.count("create") == 4
    assert service.count("list") == 2, "the first call of all is a list"


def test_ctrl_c_ends_the_wait_for_a_grant(service: CloudBuildStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "wait_for_cancellation", lambda seconds: True)
    service.refusals["create"] = [Refusal(403, "caller does not have permission to act as service account")]
    assert "stopped while it was to be tried again" in fail_to_start(service)
    assert service.count("create") == 1


def test_ctrl_c_in_an_outage_cancels_the_build(service: CloudBuildStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    run, log, *_ = start_run(service)
    run._client._caller._wait = lambda seconds: True
    build = run.start()
    service.refusals["get"] = [Refusal(503, "later")]
    with pytest.raises(BuildFailed, match="its build was cancelled with this run"):
        run.wait(build, log, list)


def test_log_lines_are_told_once_without_prefix(service: CloudBuildStandIn) -> None:
    service.logs["next"] = ['Step #0 - "build": #5 [1/2] FROM scratch', "Step #0: #6 [2/2] COPY"]
    run, log, *_ = start_run(service)
    run.start()
    assert [*log.new_lines(is_last_read=True)] == ["#5 [1/2] FROM scratch", "#6 [2/2] COPY"]
    assert [*log.new_lines(is_last_read=True)] == []


def test_empty_log_pages_are_passed_over(service: CloudBuildStandIn) -> None:
    service.has_empty_first_log_page, service.logs["next"] = True, ["exit code 1"]
    run, log, *_ = start_run(service)
    run.start()
    assert log.last_lines(12) == ["exit code 1"]


def test_last_lines_that_arrive_late_are_read(service: CloudBuildStandIn) -> None:
    run, log, *_ = start_run(service, lambda: service.logs[next(iter(service.logs))].append("exit code 1"))
    run.start()
    assert log.last_lines(12) == ["exit code 1"]


def test_an_unreadable_log_fails_nothing(service: CloudBuildStandIn) -> None:
    service.refusals["log"] = [Refusal(403, "Permission denied for all log views")]
    run, log, _, told = start_run(service, lambda: None, update(service, **DONE))
    assert run.wait(run.start(), log, list)["status"] == "SUCCESS"
    assert log.last_lines(12) == [] and service.count("log") == 1
    assert told == [
        "the log of its build cannot be read: Permission denied for all log views; your account needs "
        "roles/logging.viewer"
    ]


IMAGE = "europe-west4-docker.pkg.dev/acme-dev/team/trainer:0123456789abcdef"
SMALL = ImageBuild(IMAGE, "gs://acme/team/dev/build-sources/abc.tar.gz", "17", "context/Dockerfile", "linux/amd64")
PLAIN: dict[str, Any] = {
    "parent": "projects/acme-dev/locations/europe-west4",
    "serviceAccount": "team-dev-build@acme-dev.iam.gserviceaccount.com",
}
POOL = "projects/host/locations/europe-west4/workerPools/w"
WHOLE = replace(
    SMALL,
    build_args={"B": "2", "A": "$HOME and $${X}"},
    target="slim",
    cache_image=IMAGE[:-1],
    secret_versions={"token": "projects/p/secrets/t/versions/3", "pip": "projects/p/secrets/pip/versions/latest"},
)


def test_a_plain_request_is_complete() -> None:
    assert SMALL.request(PLAIN) == {
        "source": {
            "storageSource": {"bucket": "acme", "object": "team/dev/build-sources/abc.tar.gz", "generation": "17"}
        },
        "steps": [
            {
                "name": "gcr.io/cloud-builders/docker",
                "env": ["DOCKER_BUILDKIT=1"],
                "args": [
                    "build",
                    f"--tag={IMAGE}",
                    "--platform=linux/amd64",
                    "--file=context/Dockerfile",
                    "context",
                ],
            }
        ],
        "images": [IMAGE],
        "tags": [build_tag(IMAGE), build_tag(IMAGE.partition(":")[0])],
        "serviceAccount": "projects/acme-dev/serviceAccounts/team-dev-build@acme-dev.iam.gserviceaccount.com",
        "options": {"logging": "CLOUD_LOGGING_ONLY"},
    }


def test_build_options_secrets_and_dollars_reach_docker() -> None:
    request = WHOLE.request({**PLAIN, "timeout": "1800s", "machineType": "E2_HIGHCPU_8", "cache": True})
    (step,) = request["steps"]
    assert step["args"][4:-1] == [
        "--target=slim",
        "--build-arg=BUILDKIT_INLINE_CACHE=1",
        f"--cache-from={IMAGE[:-1]}",
        "--build-arg=A=$$HOME and $$$${X}",
        "--build-arg=B=2",
        "--secret=id=pip,env=BUILD_SECRET_0",
        "--secret=id=token,env=BUILD_SECRET_1",
    ]
    assert step["secretEnv"] == ["BUILD_SECRET_0", "BUILD_SECRET_1"]
    assert request["availableSecrets"]["secretManager"] == [
        {"versionName": "projects/p/secrets/pip/versions/latest", "env": "BUILD_SECRET_0"},
        {"versionName": "projects/p/secrets/t/versions/3", "env": "BUILD_SECRET_1"},
    ]
    assert (request["timeout"], request["options"]["machineType"]) == ("1800s", "E2_HIGHCPU_8")


def test_a_private_pool_names_no_machine() -> None:
    request = SMALL.request({**PLAIN, "pool": POOL})
    assert request["options"] == {"logging": "CLOUD_LOGGING_ONLY", "pool": {"name": POOL}}


def test_an_image_of_docker_can_be_named() -> None:
    (step,) = SMALL.request({**PLAIN, "dockerImage": "docker:27-cli"})["steps"]
    assert step["name"] == "docker:27-cli"


def test_a_network_needs_the_classic_builder() -> None:
    (step,) = SMALL.request({**PLAIN, "network": "cloudbuild"})["steps"]
    assert step["env"] == ["DOCKER_BUILDKIT=0"] and step["args"][-2:] == ["--network=cloudbuild", "context"]


@pytest.mark.parametrize("options", [{}, {"cache": False}, {"cache": True, "network": "cloudbuild"}])
def test_builds_without_a_cache_name_none(options: dict[str, Any]) -> None:
    plain, given = (replace(WHOLE, cache_image=uri).request(PLAIN | options) for uri in (None, IMAGE[:-1]))
    assert given == plain and "CACHE" not in str(plain)
    assert WHOLE.request(PLAIN)["tags"] == plain["tags"], "later builds find it all the same"


@pytest.mark.parametrize("build", [SMALL, WHOLE])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"cache": True},
        {"machineType": "N1_HIGHCPU_32", "timeout": "60s"},
        {"pool": POOL},
        {"network": "cloudbuild"},
        {"dockerImage": "docker:27-cli"},
    ],
)
def test_requests_follow_the_discovery_document(build: ImageBuild, options: dict[str, Any]) -> None:
    assert broken("Build", build.request(PLAIN | options), "cloudbuild.v1") == []


def test_a_build_s_tag_is_valid_and_its_own() -> None:
    tags = {build_tag(uri) for uri in (IMAGE, f"{IMAGE}0", IMAGE.replace("trainer", "other"))}
    assert len(tags) == 3 and all(len(tag) <= 128 and "/" not in tag and ":" not in tag for tag in tags)
