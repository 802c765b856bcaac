"""The command `env`: environment variables that point Google's clients at a running emulator."""

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

from vertex_emulator.data_folder import DataFolder, Endpoint, require_endpoint

# The Python SDK reads no variable for its endpoint (google-cloud-aiplatform 2.x, initializer.py).
_PYTHON = """\
{imports}
from google.cloud import aiplatform
aiplatform.init(project={project!r}, location={region!r}, staging_bucket="gs://staging",
                api_endpoint={url!r}, api_transport="rest", credentials={credentials})"""
_ANONYMOUS = ("from google.auth.credentials import AnonymousCredentials", "AnonymousCredentials()")
_TOKEN = (
    "from pathlib import Path\nfrom google.oauth2.credentials import Credentials",
    "Credentials(Path({!r}).read_text().strip())",
)


def iterate_environment_lines(
    data_path: Path, project: str, region: str, as_json: bool = False, has_page_link: bool = True
) -> Iterator[str]:
    """Render shell lines for `eval`, with the code for the Python SDK as comments, or a JSON object of the variables.

    `has_page_link` adds the page's link where it holds the emulator's token. Raises EmulatorNotRunning before the first
    line.
    """
    endpoint = require_endpoint(data_path)
    token, token_file = endpoint.read_token(), endpoint.token_file
    variables = build_environment_variables(endpoint, data_path, project, region)
    if as_json:
        yield json.dumps(variables, indent=2)
        return
    for name, value in variables.items():
        yield f"export {name}={shlex.quote(value)}"
    yield "# Google's Python SDK reads no endpoint from the environment (`vertex-emulator exec` sets it all the same):"
    imports, credentials = _TOKEN if token_file else _ANONYMOUS
    values = {"imports": imports, "credentials": credentials.format(token_file)}
    for line in _PYTHON.format(project=project, region=region, url=endpoint.url, **values).splitlines():
        yield f"#   {line}"
    if token and has_page_link:
        yield f"# The page, for your browser only: {endpoint.url}/?{urlencode({'token': token})}"


def build_environment_variables(endpoint: Endpoint, data_path: Path, project: str, region: str) -> dict[str, str]:
    """Return the variables by which gcloud and Google's libraries find the emulator that serves a data folder."""
    url, token_file = endpoint.url, endpoint.token_file
    authorization = (
        {"CLOUDSDK_AUTH_ACCESS_TOKEN_FILE": token_file} if token_file else {"CLOUDSDK_AUTH_DISABLE_CREDENTIALS": "true"}
    )
    host = urlsplit(url).hostname or ""
    variables = {
        # gcloud needs the trailing slash. `gcloud topic configurations` documents the property names.
        **{f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{api}": f"{url}/" for api in ("AIPLATFORM", "LOGGING")},
        "CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE": f"{url}/storage/v1/",
        **authorization,
        "CLOUDSDK_CONFIG": str(DataFolder(data_path.absolute()).gcloud),
        "CLOUDSDK_CORE_PROJECT": project,
        "CLOUDSDK_AI_REGION": region,
        "CLOUDSDK_CORE_DISABLE_PROMPTS": "1",
        "STORAGE_EMULATOR_HOST": url,
        # gcsfs asks for the kind of each bucket by gRPC otherwise, for a minute each time.
        "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false",
        "GOOGLE_CLOUD_PROJECT": project,
        "GOOGLE_CLOUD_REGION": region,
    }
    proxies = getproxies()
    if "http" in proxies and not proxy_bypass(host):
        direct = ",".join(part for part in (proxies.get("no"), host) if part)
        variables |= {"NO_PROXY": direct, "no_proxy": direct}
    return variables
