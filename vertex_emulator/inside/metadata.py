"""The metadata server of Compute Engine, as a job's code asks it who it is: keys, lists of keys, and tokens.

Sources: Compute Engine's "View and query VM metadata" and "Predefined VM metadata keys"; google-auth's
`compute_engine/_metadata.py` and Go's `compute/metadata`. The project is Vertex AI's own, whose machines run the job,
and not the user's: code that takes it for that fails as it does there (googleapis/python-aiplatform, issue 852).
CLOUD_ML_PROJECT_ID has the user's.
"""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response

from vertex_emulator.database.records import Job, Replica
from vertex_emulator.names import project_number
from vertex_emulator.replicas.environment import pod_hostname

ROOT = "/computeMetadata/v1"
FLAVOR = {"Metadata-Flavor": "Google", "Server": "Metadata Server for VM"}
TOKEN_SECONDS = 3599
SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
_TRUE = ("true", "1")

Tree = Mapping[str, Any]
"""Keys by name: a value, a mapping for what is below, or a list of lines."""


@dataclass(frozen=True)
class Caller:
    """A container that asks: a replica of a job. `account` is that of jobs here which name none."""

    job: Job
    replica: Replica
    account: str = ""

    @property
    def email(self) -> str:
        """The account that its code acts as: the job's, else Vertex AI's Custom Code Service Agent."""
        given = self.job.spec["jobSpec"].get("serviceAccount")
        number = self.job.location.project_number
        return str(given or self.account or f"service-{number}@gcp-sa-aiplatform-cc.iam.gserviceaccount.com")


def tenant_project(project: str) -> str:
    """Return the id of the project of Google's whose machines run the jobs of a project."""
    return f"g{hashlib.sha256(project_number(project).encode()).hexdigest()[:16]}-tp"


def answer(request: Request, caller: Caller, token: Callable[[Job], str]) -> Response:
    """Answer a request below ROOT, or for `/`, by which libraries look whether this is Compute Engine at all.

    `token` makes a job's token.
    """
    place = str(request.scope["path"])
    if place == "/":
        return PlainTextResponse("computeMetadata/\n", headers=FLAVOR)
    if request.headers.get("metadata-flavor") != "Google" or "x-forwarded-for" in request.headers:
        return _refusal(403, "Missing Metadata-Flavor:Google header.")
    path = place.removeprefix(ROOT)
    if not place.startswith(ROOT) or request.method != "GET":
        return _refusal(404, f"{place} is no key of the metadata server.")

    *parents, last = path.strip("/").split("/")
    if parents[:2] == ["instance", "service-accounts"] and parents[2:] in (["default"], [caller.email]):
        if last == "token":
            given = {"access_token": token(caller.job), "expires_in": TOKEN_SECONDS, "token_type": "Bearer"}
            return JSONResponse(given, headers=FLAVOR)
        if last == "identity":
            audience = request.query_params.get("audience", "")
            if not audience:
                return _refusal(400, "non-empty audience parameter required")
            return PlainTextResponse(_identity_token(caller, audience), headers=FLAVOR)

    found: Any = _tree(caller)
    for key in filter(None, path.split("/")):
        found = found.get(key) if isinstance(found, Mapping) else None
        if found is None:
            return _refusal(404, f"{place} is no key of the metadata server.")
    is_recursive = request.query_params.get("recursive", "").lower() in _TRUE
    if isinstance(found, Mapping) and not is_recursive and not path.endswith("/"):
        return RedirectResponse(f"{request.url.path}/", status_code=301, headers=FLAVOR)
    return _shown(found, is_recursive, request.query_params.get("alt", ""))


def _shown(found: Any, is_recursive: bool, form: str) -> Response:
    if isinstance(found, Mapping) and not is_recursive:
        names = "".join(f"{key}/\n" if isinstance(each, Mapping) else f"{key}\n" for key, each in found.items())
        return PlainTextResponse(names, headers=FLAVOR)
    if (is_recursive and form != "text") or form == "json":
        return JSONResponse(_camel(found), headers=FLAVOR)
    if isinstance(found, Mapping):
        return PlainTextResponse("".join(_lines(found, "")), headers=FLAVOR)
    return PlainTextResponse("\n".join(found) if isinstance(found, list) else str(found), headers=FLAVOR)


def _lines(tree: Tree, prefix: str) -> Iterator[str]:
    for key, each in tree.items():
        if isinstance(each, Mapping):
            yield from _lines(each, f"{prefix}{key}/")
        else:
            yield f"{prefix}{key} {','.join(each) if isinstance(each, list) else each}\n"


def _tree(caller: Caller) -> Tree:
    job, replica = caller.job, caller.replica
    tenant = tenant_project(job.location.project)
    number, region = project_number(tenant), job.location.region
    machine = job.spec["jobSpec"]["workerPoolSpecs"][replica.pool].get("machineSpec", {}).get("machineType", "")
    name = pod_hostname(job.id, replica.pool, replica.index)
    account = {"aliases": ["default"], "email": caller.email, "scopes": list(SCOPES)}
    return {
        "instance": {
            "attributes": {},
            "description": "",
            "hostname": f"{name}.c.{tenant}.internal",
            "id": int(hashlib.sha256(name.encode()).hexdigest()[:15], 16),
            "machine-type": f"projects/{number}/machineTypes/{machine}",
            "maintenance-event": "NONE",
            "name": name,
            "preempted": "FALSE",
            "region": f"projects/{number}/regions/{region}",
            "service-accounts": {"default": account, caller.email: account},
            "zone": f"projects/{number}/zones/{region}-a",
        },
        "project": {"attributes": {}, "numeric-project-id": int(number), "project-id": tenant},
        "universe": {"universe-domain": "googleapis.com"},
    }


def _camel(value: Any) -> Any:
    """Return a tree as its JSON has it; accounts keep their names."""
    if not isinstance(value, Mapping):
        return value
    return {key if "@" in key else _camel_key(key): _camel(each) for key, each in value.items()}


def _camel_key(key: str) -> str:
    first, *rest = key.split("-")
    return first + "".join(word.title() for word in rest)


def _identity_token(caller: Caller, audience: str) -> str:
    """Return a token of the form of Google's that names who asks; its signature proves nothing to anybody."""
    now = int(time.time())
    claims = {
        "aud": audience,
        "azp": caller.email,
        "email": caller.email,
        "email_verified": True,
        "exp": now + TOKEN_SECONDS,
        "iat": now,
        "iss": "https://accounts.google.com",
        "sub": project_number(caller.email),
    }
    head = ".".join(_encoded(json.dumps(part).encode()) for part in ({"alg": "HS256", "typ": "JWT"}, claims))
    return f"{head}.{_encoded(hmac.digest(b'emulated', head.encode(), 'sha256'))}"


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _refusal(status: int, text: str) -> Response:
    return PlainTextResponse(f"{text}\n", status_code=status, headers=FLAVOR)
