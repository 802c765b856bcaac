from tests.vertex_emulator.jobs import custom_job, custom_job_spec, pool, tuning_job, tuning_job_spec
from vertex_emulator.api.web_access_uris import add_web_access_to_running_trials, build_web_access_fields_or_empty
from vertex_emulator.database.records import PENDING, SUCCEEDED, Trial

SPEC = custom_job_spec(pool(), pool(2), enableWebAccess=True)
PAGE = "http://here/jobs/customJobs/42/shell"


def test_a_running_job_has_a_uri_for_each_task() -> None:
    tasks = ("workerpool0-0", "workerpool1-0", "workerpool1-1")
    uris = {task: f"{PAGE}/{task}" for task in tasks}
    assert build_web_access_fields_or_empty(custom_job(SPEC), "http://here") == {"webAccessUris": uris}


def test_jobs_without_access_or_replicas_have_no_uris() -> None:
    assert build_web_access_fields_or_empty(custom_job(), "http://here") == {}
    for state in (PENDING, SUCCEEDED):
        assert build_web_access_fields_or_empty(custom_job(SPEC, state=state), "http://here") == {}


def test_running_trials_alone_have_uris() -> None:
    study = tuning_job(tuning_job_spec(trialJobSpec={"workerPoolSpecs": [pool()], "enableWebAccess": True}))
    trials = [
        Trial("7", 1, "SUCCEEDED", {}, "41"),
        Trial("7", 2, "ACTIVE", {}, "42"),
        Trial("7", 3, "REQUESTED", {}, "43"),
    ]
    body = {"trials": [{"id": "1"}, {"id": "2"}, {"id": "3"}]}
    add_web_access_to_running_trials(body, study, trials, "http://here")
    uris = {"workerpool0-0": f"{PAGE}/workerpool0-0"}
    assert body["trials"] == [{"id": "1"}, {"id": "2", "webAccessUris": uris}, {"id": "3"}]
    closed = {"trials": [{"id": "2"}]}
    add_web_access_to_running_trials(closed, tuning_job(), trials[1:2], "http://here")
    assert closed == {"trials": [{"id": "2"}]}
