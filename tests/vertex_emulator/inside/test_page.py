"""What docs/google.md shows: a program for the cloud, and what is said of a service that is not here."""

import os
import subprocess
import sys

from tests.blocks import taken
from tests.vertex_emulator.inside.served import ServedDoor
from vertex_emulator.inside import services


def test_the_page_s_program_exports_a_model(served: ServedDoor) -> None:
    (program,) = taken("docs/google.md", "python", "import os")
    kept = {name: value for name, value in os.environ.items() if "GOOGLE" not in name and "CLOUDSDK" not in name}
    variables = served.variables(served.job("page"))
    output = {"AIP_MODEL_DIR": "gs://page/run/model/", "NO_PROXY": "*", "HOME": str(served.data.root)}
    (served.data.buckets / "page").mkdir()
    subprocess.run([sys.executable, "-c", program], env={**kept, **variables, **output}, check=True)
    assert (served.data.buckets / "page" / "run" / "model" / "model.txt").read_text() == "42"


def test_the_page_shows_the_message_for_bigquery() -> None:
    (message,) = taken("docs/google.md", "output", "bigquery.googleapis.com is not emulated")
    assert message.strip() == str(services.refusal("bigquery.googleapis.com", []))
