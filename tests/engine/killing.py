"""`pulumi` killed at chosen calls of the API, whose answers it does not get."""

import json
from contextlib import suppress
from pathlib import Path

from tests.engine.project import Project
from tests.engine.stalling_proxy import StallingProxy
from tests.vertex_emulator.running import PATIENCE_SECONDS, until


def kill_pulumi_at(project: Project, method: str, path: str, verb: str, calls: int = 1) -> None:
    """Run `pulumi`, kill it while the provider waits for the answers to so many calls, and remove its lock.

    The provider makes up to four calls at once.
    """
    if not (project.data / "endpoint.json").exists():
        project.start_emulator()
    started = project.endpoint()
    proxy = StallingProxy(started["url"], method, path, calls)
    with proxy.serving() as url:
        file = project.data / "endpoint.json"
        file.write_text(json.dumps({**started, "url": url}))
        run = project.start_pulumi(verb, "--yes", "--skip-preview", "--stack", project.name)
        assert proxy.reached.wait(PATIENCE_SECONDS)
        run.kill()
        run.communicate()
        proxy.release.set()
        until(lambda: not find_providers(project), "the end of the provider")
        file.write_text(json.dumps(started))
    for lock in project.root.parent.glob("state/.pulumi/locks/**/*.json"):  # as `pulumi cancel` does
        lock.unlink()


def find_providers(project: Project) -> list[str]:
    """Return the provider processes that run in the project's folder."""
    found = []
    for process in Path("/proc").iterdir():
        with suppress(OSError):
            if (process / "cwd").readlink() == project.root and "pulumi.dynamic" in (process / "cmdline").read_text():
                found.append(process.name)
    return found
