"""What of the gcp provider's SDK is imported, in a process of its own."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
USE = """
import sys
from vertex_training.runtime.engine import defer_pulumi_gcp

defer_pulumi_gcp()
from pulumi_gcp import artifactregistry, projects, storage

used = [artifactregistry.RepositoryIamMember, projects.IAMMember, storage.Bucket, storage.BucketIAMMember]
"""


def run_program(program: str) -> str:
    """Run a program in a process of its own and return what it prints."""
    done = subprocess.run([sys.executable, "-c", USE + program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_resource_is_imported_without_its_package() -> None:
    imported = run_program("print(*(name for name in sys.modules if name.startswith('pulumi_gcp.')))")
    names = {name.removeprefix("pulumi_gcp.") for name in imported.split() if not name.endswith(("inputs", "outputs"))}
    assert {name for name in names if "." in name} == {
        "artifactregistry.repository_iam_member",
        "projects.iam_member",
        "storage.bucket",
        "storage.bucket_iam_member",
    }


def test_deferred_modules_are_the_same_when_used() -> None:
    program = """
import pulumi_gcp as gcp

gcp.Provider, gcp.bigquery.Dataset, gcp.storage.BucketArgs, gcp.storage.get_bucket
from pulumi_gcp.storage import *
print(gcp.storage.Bucket is used[2] is Bucket, gcp.storage.TransferJob is TransferJob)
"""
    assert run_program(program) == "True True\n"


def test_a_package_imported_before_stays_as_it_is() -> None:
    before = "import pulumi_gcp as gcp; first = gcp.storage.Bucket\n"
    command = [sys.executable, "-c", before + USE + "assert storage.Bucket is first"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
