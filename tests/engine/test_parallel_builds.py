"""Several images side by side: builds that wait for each other all end."""

from collections.abc import Iterator
from contextlib import closing

import docker
import pytest

from tests.emulator.running import IMAGE, until
from tests.engine.project import Project

TOGETHER = 2
PATIENCE = 60
"""Seconds that a build waits for the other ones, so that builds one after the other fail and do not hang."""
MEETING_POINT = f"""
import http.server, threading
met = threading.Barrier({TOGETHER})

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        met.wait({PATIENCE})
        self.send_response(204)
        self.end_headers()

server = http.server.ThreadingHTTPServer(("", 80), Handler)
print("open", flush=True)
server.serve_forever()
"""
"""Answers nobody before so many have asked."""


@pytest.fixture
def meeting_point() -> Iterator[str]:
    """Where builds meet: a server's URL on the network that they run in."""
    with closing(docker.from_env()) as client:
        container = client.containers.run(IMAGE, ["python", "-c", MEETING_POINT], detach=True)
        try:
            until(lambda: b"open" in container.logs())
            container.reload()
            yield f"http://{container.attrs['NetworkSettings']['Networks']['bridge']['IPAddress']}"
        finally:
            container.remove(force=True)


def test_images_are_built_at_the_same_time(project: Project, meeting_point: str) -> None:
    names = [f"image{number}" for number in range(TOGETHER)]
    call = f"import urllib.request; urllib.request.urlopen('{meeting_point}', timeout={PATIENCE})"
    for name in names:
        (project.root / name).mkdir()
        # The project's own folder stands in it: what an earlier run has built must not be taken from Docker's cache.
        steps = [f"FROM {IMAGE}", f"ENV NAME={name} PROJECT={project.root}", f'RUN python -c "{call}"']
        (project.root / name / "Dockerfile").write_text("\n".join(steps))
    project.declarations = {"images": {name: {"context": name} for name in names}}
    project.declare()
    project.up()
    images = project.outputs()["images"]
    assert images.keys() == set(names)
    with closing(docker.from_env()) as client:
        for uri in images.values():
            client.images.remove(uri)
