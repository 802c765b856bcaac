from pathlib import Path

from tests.vertex_emulator.jobs import custom_job, custom_job_spec
from vertex_emulator.database.records import SUCCEEDED
from vertex_emulator.web_page.copyable_command_page import render_shell_or_logs_command_page


def test_names_of_jobs_are_escaped() -> None:
    spec = custom_job_spec() | {"displayName": "<script>alert(1)</script>"}
    page = render_shell_or_logs_command_page(custom_job(spec), "workerpool0-0", Path("/a & b"))
    assert "<script" not in page and "&lt;script&gt;alert(1)" in page
    assert "vertex-emulator shell 42 --task workerpool0-0 --data &#x27;/a &amp; b&#x27;</code>" in page


def test_an_ended_job_s_page_leads_to_its_log() -> None:
    page = render_shell_or_logs_command_page(custom_job(state=SUCCEEDED), "workerpool0-0", Path("/data"))
    assert "is in state JOB_STATE_SUCCEEDED" in page
    assert "vertex-emulator logs 42 --task workerpool0-0 --data /data</code>" in page and " shell 42" not in page
