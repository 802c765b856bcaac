"""The page that `webAccessUris` lead to: the command for a shell in a replica. It works without JavaScript."""

import shlex
from dataclasses import dataclass
from html import escape
from pathlib import Path

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from vertex_api.names import CUSTOM_JOB
from vertex_emulator.database import Database
from vertex_emulator.database.records import RUNNING, Job
from vertex_emulator.errors import ApiError
from vertex_emulator.web_page.static_assets import FRAME_HEADERS

_PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Shell in {task} of {name}</title>
<link rel="icon" href="/assets/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/assets/page.css">
</head>
<body>
<header class="top"><a class="brand" href="/">Vertex training on this machine</a></header>
<main>
<h1>Shell in {task}</h1>
<p>Job <a href="/jobs/{collection}/{job_id}">{name}</a> is in state {state}.</p>
{content}
</main>
</body>
</html>
"""
_RUNNING = """\
<p>In a terminal of this machine, run this command. It starts bash, or sh if the image has no bash.</p>
<p class="notice"><code class="command">{command}</code></p>
<p class="muted">A click selects the command.</p>"""
_NOT_RUNNING = """\
<p>A shell needs a running replica. This command prints what the replica wrote:</p>
<p class="notice"><code class="command">{command}</code></p>"""


@dataclass(frozen=True)
class CopyableCommandPage:
    """The page of each task of a custom job; `data_root` is the data folder."""

    database: Database
    data_root: Path

    def build_route(self) -> Route:
        """Return the route of all tasks' pages."""
        return Route(f"/jobs/{CUSTOM_JOB.collection}/{{id}}/shell/{{task}}", self._serve_page)

    def _serve_page(self, request: Request) -> Response:
        job_id, task = request.path_params["id"], request.path_params["task"]
        with self.database.read() as transaction:
            job = transaction.jobs.get(job_id)
        if job is None or task not in [replica.task_name for replica in job.requested_replicas]:
            raise ApiError("NOT_FOUND", f"There is no task {task} of a job customJobs/{job_id} here.")
        return HTMLResponse(render_shell_or_logs_command_page(job, task, self.data_root), headers=FRAME_HEADERS)


def render_shell_or_logs_command_page(job: Job, task: str, data_root: Path) -> str:
    """Render the page of one task, with the exact command for the state of its job."""
    verb, content = ("shell", _RUNNING) if job.state == RUNNING else ("logs", _NOT_RUNNING)
    command = shlex.join(["vertex-emulator", verb, job.id, "--task", task, "--data", str(data_root)])
    return _PAGE.format(
        task=escape(task),
        name=escape(str(job.spec["displayName"])),
        collection=CUSTOM_JOB.collection,
        job_id=escape(job.id),
        state=escape(job.state),
        content=content.format(command=escape(command)),
    )
