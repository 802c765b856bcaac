"""Cost, quotas and guardrails through the real engine, on the target gcp: a stand-in for the provider, no cloud."""

import json

import pytest

from tests.blocks import taken
from tests.engine.cloud import CloudProject, create_cloud_project
from tests.engine.project import SEARCH
from tests.vertex_emulator.running import RunningEmulator

ESTIMATE = "list-price estimate, prices as of "
PAGE = "https://console.cloud.google.com/iam-admin/quotas?project=acme-dev"
TOO_MANY = (
    "cpus: all jobs at once need 12, more than the 10 granted to acme-dev in europe-west4, so some wait in "
    "JOB_STATE_QUEUED for others to end: search (needs 8), train (needs 4); ask for more "
    f"aiplatform.googleapis.com/custom_model_training_cpus at {PAGE}"
)
DENIED = "googleapi: Error 403: Permission 'cloudquotas.quotas.get' denied on resource, forbidden"


@pytest.fixture(scope="class")
def stack(tmp_path_factory: pytest.TempPathFactory, vertex: RunningEmulator) -> CloudProject:
    """A stack `dev` with one job."""
    return create_cloud_project(tmp_path_factory.mktemp("cost"), vertex)


def grant(cloud: CloudProject, quotas: dict[str, int] | str) -> None:
    cloud.environment["GCP_STANDIN_QUOTAS"] = json.dumps(quotas)


class TestOneStack:
    """Tests of one stack, in order: previewed, refused by guardrails, brought up, and priced anew."""

    def test_a_preview_shows_cost_and_quota_once(self, stack: CloudProject) -> None:
        stack.declarations["hyperparameterTuningJobs"] = {"search": SEARCH}
        stack.declare()
        grant(stack, {"cpus": 10})
        shown = stack.pulumi("preview", "--stack", "dev")
        assert shown.count(ESTIMATE) == 1
        # n1-standard-4 in europe-west4: 4 x 0.0400223 + 15 x 0.0053636 + 100 x 0.21505 / 730 = 0.2700022;
        # 7 days: 45.36. search: 2 at once, 4 in all.
        for line in (
            "Cost in europe-west4: 0.81 USD an hour, 226.80 USD at most",
            "search     0.54   181.44  7 days, as it has no timeout  cpus 8, pd_ssd 200",
            "train      0.27    45.36  7 days, as it has no timeout  cpus 4, pd_ssd 100",
            "stack      0.81   226.80                                cpus 12, pd_ssd 300",
        ):
            assert line in shown
        table = (
            "    Quota in europe-west4: needed by all jobs at once, and granted to acme-dev\n"
            "      quota   needed    granted\n"
            "      cpus        12         10\n"
            "      pd_ssd     300  unlimited\n"
        )
        assert table in shown
        assert f"    warning: {TOO_MANY}\n" in shown

    def test_a_broken_guardrail_blocks_and_names_its_line(self, stack: CloudProject) -> None:
        del stack.declarations["hyperparameterTuningJobs"]
        rules = {"machineTypes": ["g2-*"], "requireTimeout": True, "maxHourlyCost": 0.2}
        stack.stack["vertex-training:guardrails"] = rules
        stack.declare()
        output = stack.up(fails=True)
        assert "3 problems in what is declared:" in output
        assert (
            "training/jobs.yaml:11: customJobs.train.jobSpec.workerPoolSpecs[0].machineSpec.machineType: "
            'guardrails.machineTypes: "n1-standard-4" is not allowed here; allowed: g2-*'
        ) in output
        assert "jobs.yaml:8: customJobs.train.jobSpec.scheduling.timeout: guardrails.requireTimeout: is requi" in output
        assert "jobs.yaml:7: customJobs.train: guardrails.maxHourlyCost: 0.27 USD an hour by list price; all" in output
        assert not stack.record.exists()

    def test_a_small_quota_blocks_if_asked_to(self, stack: CloudProject) -> None:
        stack.stack["vertex-training:guardrails"] = {"quotaCheck": "block"}
        stack.declare()
        grant(stack, {"cpus": 2})
        refused = "train (needs 4) cannot run with the 2 granted to acme-dev in europe-west4"
        assert (
            f"error: guardrails.quotaCheck: nothing is submitted, because quotas are too small:\n      cpus: {refused}"
            in stack.up(fails=True)
        )
        assert not stack.record.exists()

    def test_a_refused_lookup_blocks_nothing(self, stack: CloudProject) -> None:
        grant(stack, DENIED)
        shown = stack.up()
        (line,) = [line for line in shown.splitlines() if "acme-dev is granted" in line and "Stack" not in line]
        (on_the_page,) = taken("docs/cost.md", "output", "Quota in us-central1: what acme-dev is granted is unknown")
        assert f"{line}\n" == f"    {on_the_page.replace('us-central1', 'europe-west4')}"
        assert "warning" not in shown
        assert ESTIMATE not in shown  # --skip-preview: what is asked for has been decided

    def test_own_prices_and_guardrails_change_nothing(self, stack: CloudProject) -> None:
        stack.stack["vertex-training:prices"] = {
            "asOf": "2026-11-01",
            "source": "our contract",
            "vcpu": {"N1": {"europe-west4": 1.0}},
        }
        rules = {"maxHourlyCost": 100, "machineTypes": ["n1-*"], "quotaCheck": "off"}
        stack.stack["vertex-training:guardrails"] = rules
        stack.declare()
        # As YAML, `off` is no text.
        stack_file = stack.root / "stacks" / "Pulumi.dev.yaml"
        stack_file.write_text(stack_file.read_text().replace("'off'", "off"))
        shown = stack.pulumi("preview", "--stack", "dev", "--expect-no-changes")
        # 4 x 1 + 15 x 0.0053636 + 0.0294589 = 4.1099129
        assert " 4.11 " in shown
        assert "Quota in" not in shown
