"""Several images side by side: builds that wait for each other all end, and no more of them run than four."""

import re
from collections.abc import Iterator
from contextlib import closing

import docker
import pytest
from docker.models.containers import Container

from tests.engine.project import Project
from tests.vertex_emulator.running import IMAGE, until

TOGETHER = 4
"""Pulumi's Python provider has so many threads (docs/adopting.md, limits)."""
PATIENCE = 60
"""Seconds that a build waits for the other ones, so that builds one after the other fail and do not hang."""
MEETING_POINT = f"""
import http.server, threading, time
met, lock, here, came = threading.Barrier({TOGETHER}), threading.Lock(), 0, 0

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        global here, came
        with lock:
            here, came = here + 1, came + 1
            late = came > {TOGETHER}
            print("here at once:", here, flush=True)
        if not late:
            met.wait({PATIENCE})
            time.sleep(1)  # time enough for one more to come
        with lock:
            here -= 1
        self.send_response(204)
        self.end_headers()

server = http.server.ThreadingHTTPServer(("", 80), Handler)
print("open", flush=True)
server.serve_forever()
"""
"""Answers nobody before so many have asked, and prints how many are there at once."""


@pytest.fixture
def meeting_point() -> Iterator[Container]:
    """A server on the builds' network where builds wait for each other."""
    with closing(docker.from_env()) as client:
        container = client.containers.run(IMAGE, ["python", "-c", MEETING_POINT], detach=True)
        try:
            until(lambda: b"open" in container.logs())
            container.reload()
            yield container
        finally:
            container.remove(force=True)


def test_at_most_four_images_are_built_at_once(project: Project, meeting_point: Container) -> None:
    names = [f"image{number}" for number in range(TOGETHER + 1)]
    url = f"http://{meeting_point.attrs['NetworkSettings']['Networks']['bridge']['IPAddress']}"
    call = f"import urllib.request; urllib.request.urlopen('{url}', timeout={PATIENCE})"
    for name in names:
        (project.root / name).mkdir()
        # The project's own folder stands in it: what an earlier run has built must not be taken from Docker's cache.
        steps = [f"FROM {IMAGE}", f'ENV NAME={name} PROJECT="{project.root}"', f'RUN python -c "{call}"']
        (project.root / name / "Dockerfile").write_text("\n".join(steps))
    project.declarations = {"images": {name: {"context": name} for name in names}}
    project.declare()
    project.up()
    images = project.outputs()["images"]
    assert images.keys() == set(names)
    at_once = [int(number) for number in re.findall(rb"here at once: (\d+)", meeting_point.logs())]
    assert len(at_once) == len(names) and max(at_once) == TOGETHER
    with closing(docker.from_env()) as client:
        for uri in images.values():
            client.images.remove(uri)
