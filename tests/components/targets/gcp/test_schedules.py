"""What a schedule is on Google Cloud: its workflow, what starts it, and the accounts of both."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from vertex_training.errors import DeclarationErrors

from tests import access_page
from tests.components.targets.gcp.graph import Graph
from tests.components.targets.gcp.test_first_run import bring_up
from tests.components.targets.gcp.test_foundation import KEY, build_foundation_graph, list_upstream, settings
from tests.components.workflow.schedules import scheduled
from tests.standins.gcp.properties import problems
from tests.standins.gcp.world import World
from vertex_api.schedules import ScheduledJob, ScheduleRequest

# The threads of Pulumi's mocks leave an event loop each.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
ID = "team_dev_nightly"
WORKFLOW, STARTER, ACCOUNTS = "Workflow/nightly-workflow", "Job/nightly-scheduler", "ScheduleAccounts/schedules"
MADE = {
    *(f"Service/schedules-services-{api}" for api in ("cloudscheduler", "workflowexecutions", "workflows")),
    "Services/schedules-services",
    "ServiceIdentity/schedules-agent",
    "IAMMember/schedules-agent-role",
    *(f"Account/schedules-{key}" for key in ("scheduler", "workflow")),
    *(f"IAMCustomRole/schedules-{key}-role" for key in ("scheduler", "workflow")),
    *(f"IAMMember/schedules-{suffix}" for suffix in ("scheduler-role", "workflow-role", "workflow-logs")),
    "IAMMember/schedules-act-as",
    ACCOUNTS,
    WORKFLOW,
    STARTER,
}


def job(*args: str) -> ScheduledJob:
    pool = {"machineSpec": {"machineType": "n1-standard-4"}, "containerSpec": {"imageUri": "r/i", "args": list(args)}}
    return scheduled(ID, "train", {"jobSpec": {"workerPoolSpecs": [pool]}})


def schedule(cron: str = "0 2 * * *", paused: bool = False, *args: str) -> ScheduleRequest:
    return ScheduleRequest(ID, cron, "Europe/Berlin", paused, "skip", (job(*args),))


def resources(folder: Path, *schedules: ScheduleRequest, are_outputs: bool = False, **stack: Any) -> Graph:
    return build_foundation_graph(settings(folder, include=[], **stack), *schedules, are_outputs=are_outputs)


def test_a_schedule_is_a_workflow_and_what_starts_it(tmp_path: Path) -> None:
    without, made = resources(tmp_path), resources(tmp_path, schedule(), labels={"team": "vision"})
    assert made.inputs.keys() - without.inputs.keys() >= MADE
    workflow, starter = made.inputs[WORKFLOW], made.inputs[STARTER]
    assert workflow["serviceAccount"] == "team-dev-workflow@acme-dev.iam.gserviceaccount.com"
    assert (workflow["name"], workflow["region"], workflow["labels"]) == (ID, "europe-west4", {"team": "vision"})
    assert workflow["deletionProtection"] is False
    assert workflow["callLogLevel"] == "LOG_ERRORS_ONLY"
    assert "r/i" in json.dumps(json.loads(workflow["sourceContents"])["main"])
    assert (starter["schedule"], starter["timeZone"], starter["paused"]) == ("0 2 * * *", "Europe/Berlin", False)
    target = starter["httpTarget"]
    executions = f"projects/acme-dev/locations/europe-west4/workflows/{ID}/executions"
    assert target["uri"] == f"https://workflowexecutions.googleapis.com/v1/{executions}"
    assert base64.b64decode(target["body"]) == b"{}"
    assert target["headers"] == {"Content-Type": "application/json"}
    assert target["oauthToken"]["serviceAccountEmail"] == "team-dev-scheduler@acme-dev.iam.gserviceaccount.com"


def test_the_real_provider_has_every_property(tmp_path: Path) -> None:
    made = resources(tmp_path, schedule())
    found = {name: list(problems(made.requests[name].type, made.inputs[name])) for name in (WORKFLOW, STARTER)}
    assert found == {WORKFLOW: [], STARTER: []}


def test_failed_runs_and_starts_are_told(tmp_path: Path) -> None:
    alerts = {"channels": ["ml@example.com"], "notificationRateLimit": "600s"}
    made = resources(tmp_path, schedule(), alerts=alerts)
    assert len(made.of("ScheduleAlerts")) == 1 and len(made.of("NotificationChannel")) == 1
    runs, starts = (made.inputs[f"AlertPolicy/schedule-alerts-{kind}"] for kind in ("runs", "starts"))
    (condition,) = runs["conditions"]
    assert condition["conditionThreshold"]["filter"] == (
        'resource.type="workflows.googleapis.com/Workflow" AND resource.labels.workflow_id=starts_with("team_dev_") '
        'AND metric.type="workflows.googleapis.com/finished_execution_count" AND metric.labels.status="FAILED"'
    )
    assert (condition["conditionThreshold"]["thresholdValue"], runs["alertStrategy"]) == (0, {"autoClose": "1800s"})
    (condition,) = starts["conditions"]
    assert condition["conditionMatchedLog"]["filter"] == (
        'resource.type="cloud_scheduler_job" resource.labels.job_id=~"^team_dev_" severity>=ERROR'
    )
    assert starts["alertStrategy"] == {"notificationRateLimit": {"period": "600s"}}
    assert {"Services/schedules-services", "NotificationChannel/alerts-ml@example.com"} <= list_upstream(
        made, "AlertPolicy/schedule-alerts-runs"
    )
    names = [name for name in made.inputs if name.startswith("AlertPolicy/")]
    assert {name: list(problems(made.requests[name].type, made.inputs[name])) for name in names} == {
        name: []
        for name in ("AlertPolicy/alerts", *(f"AlertPolicy/schedule-alerts-{kind}" for kind in ("runs", "starts")))
    }
    assert made.inputs["AlertPolicy/alerts"]["notificationChannels"] == runs["notificationChannels"]


def test_alerts_of_runs_need_schedules(tmp_path: Path) -> None:
    assert resources(tmp_path, alerts={"channels": ["ml@example.com"]}).of("ScheduleAlerts") == {}


def test_a_schedule_waits_for_its_accounts(tmp_path: Path) -> None:
    made = resources(tmp_path, schedule())
    needed = list_upstream(made, WORKFLOW)
    assert needed >= MADE - {WORKFLOW, STARTER, ACCOUNTS} | {"Ledger/job-names", "Bucket/bucket"}
    assert WORKFLOW in made.needs(STARTER)
    services = {name for name in MADE if name.startswith("Service/")}
    for name in MADE - services - {ACCOUNTS, "Services/schedules-services"}:
        assert services <= list_upstream(made, name), name


def test_a_later_request_makes_the_same(tmp_path: Path) -> None:
    now, later = resources(tmp_path, schedule()), resources(tmp_path, schedule(), are_outputs=True)
    assert {name: later.inputs[name] for name in (WORKFLOW, STARTER)} == {
        name: now.inputs[name] for name in (WORKFLOW, STARTER)
    }


def test_schedules_share_their_accounts(tmp_path: Path) -> None:
    other = ScheduleRequest("team_dev_weekly", "0 3 * * SUN", "UTC", True, "allow", (job(),))
    made = resources(tmp_path, schedule(), other)
    assert len(made.of("ScheduleAccounts")) == 1 and len(made.of("Workflow")) == 2
    assert made.inputs["Job/nightly1-scheduler"]["paused"] is True


def test_existing_accounts_get_no_grants_but_act_as(tmp_path: Path) -> None:
    existing = {key: {"existing": f"{key}@acme-dev.iam.gserviceaccount.com"} for key in ("scheduler", "workflow")}
    made = resources(tmp_path, schedule(), scheduling={**existing, "protect": True, "region": "europe-west1"})
    assert (made.inputs[WORKFLOW]["region"], made.inputs[STARTER]["region"]) == ("europe-west4", "europe-west1")
    assert made.inputs[WORKFLOW]["serviceAccount"] == existing["workflow"]["existing"]
    assert made.inputs[WORKFLOW]["deletionProtection"] is True
    assert made.requests[WORKFLOW].protect and made.requests[STARTER].protect
    grants = {name for name in made.of("IAMMember") if "schedules" in name}
    assert grants == {"IAMMember/schedules-agent-role", "IAMMember/schedules-act-as"}
    act_as = made.inputs["IAMMember/schedules-act-as"]
    assert act_as["member"] == "serviceAccount:workflow@acme-dev.iam.gserviceaccount.com"


def test_workflows_may_use_an_existing_account(tmp_path: Path) -> None:
    theirs = "trainer@other.iam.gserviceaccount.com"
    made = resources(tmp_path, schedule(), identity={"existing": theirs})
    assert made.inputs["IAMMember/schedules-act-as"]["serviceAccountId"] == f"projects/-/serviceAccounts/{theirs}"


@pytest.mark.parametrize(("cron", "retries"), [("0 2 * * *", 3), ("*/20 * * * *", 3), ("*/19 * * * *", 0)])
def test_a_frequent_start_is_not_retried(tmp_path: Path, cron: str, retries: int) -> None:
    made = resources(tmp_path, schedule(cron))
    assert made.inputs[STARTER]["retryConfig"]["retryCount"] == retries
    assert made.inputs[STARTER]["attemptDeadline"] == "60s"


@pytest.mark.parametrize(
    ("arg", "message"),
    [
        ("echo ${HOME}", 'train.jobSpec.workerPoolSpecs[0].containerSpec.args[0]: "${HOME}" would be evaluated'),
        ("x" * 140_000, "its workflow has 15"),
    ],
)
def test_too_large_workflows_are_refused(tmp_path: Path, arg: str, message: str) -> None:
    with pytest.raises(DeclarationErrors, match="1 problem in what is declared") as failure:
        resources(tmp_path, schedule("0 2 * * *", False, arg))
    assert f"schedules.nightly: {message}" in str(failure.value)


def test_the_first_schedule_passes_in_a_fresh_project(tmp_path: Path) -> None:
    made = resources(tmp_path, schedule(), kmsKey=KEY)
    assert made.inputs[WORKFLOW]["cryptoKeyName"] == KEY
    passed = bring_up(World(unknown_attempts=2), made)
    assert any("actAs" in refusal for refusal in passed)
    assert any("service agent does not exist" in refusal for refusal in passed)


def test_the_grants_of_schedules_equal_the_documented_table(tmp_path: Path) -> None:
    stack = {"identity": {"submitters": ["group:ml@example.com"]}, "kmsKey": KEY}
    without, made = (resources(tmp_path, *given, **stack) for given in ((), (schedule(),)))
    who = access_page.principals("123456789012", "acme-dev", "team-dev")
    who |= {"group:ml@example.com": "`identity.submitters`"}
    accounts = {"team-dev": "the training account", "team-dev-scheduler": "the scheduler account"}
    accounts |= {"team-dev-workflow": "the workflow account"}
    on = {
        f"projects/acme-dev/serviceAccounts/{name}@acme-dev.iam.gserviceaccount.com": accounts[name]
        for name in accounts
    }
    on |= {"acme-dev": "the project", KEY: "`kmsKey`"}
    new = [inputs for name, inputs in made.inputs.items() if name not in without.inputs]
    assert access_page.made(new, who, on) == access_page.schedule_grants()
    roles = {f"projects/acme-dev/roles/{role['roleId']}": role for role in made.of("IAMCustomRole").values()}
    bound = {
        (", ".join(sorted(roles[given["role"]]["permissions"])), who[given["member"]], "the project")
        for given in new
        if given.get("role") in roles
    }
    assert len(roles) == 2 and bound == access_page.schedule_permissions()
