"""Submit jobs with Google's client and nothing else: `python -m benchmarks.bare URL FILE`.

Each line of FILE is a job as JSON. Four threads submit them, as many as serve the dynamic resources of `pulumi up`.
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from google.auth.credentials import AnonymousCredentials
from google.cloud.aiplatform_v1 import CustomJob, JobServiceClient
from google.cloud.aiplatform_v1.services.job_service.transports.rest import JobServiceRestTransport

PARENT = "projects/local/locations/us-central1"


def main() -> None:
    scheme, _, host = sys.argv[1].partition("://")
    transport = JobServiceRestTransport(host=host, url_scheme=scheme, credentials=AnonymousCredentials())
    transport._session.trust_env = False
    client = JobServiceClient(transport=transport)

    def submit(job_json: str) -> str:
        return str(client.create_custom_job(parent=PARENT, custom_job=CustomJob.from_json(job_json)).name)

    with ThreadPoolExecutor(4) as threads:
        print(len(set(threads.map(submit, Path(sys.argv[2]).read_text().splitlines()))))


main()
