"""The tables of docs/access.md, and the grants of a stack in the same terms."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

PAGE = (Path(__file__).parents[1] / "docs" / "access.md").read_text()
Grant = tuple[str, str, str]
"""Role, to whom or for what, on what, in the page's words."""
_TARGETS = ("secretId", "cryptoKeyId", "tableId", "repository", "bucket", "serviceAccountId", "project")
"""Which input of a grant says what it is on, the nearer ones first."""


def principals(number: str, project: str, account: str) -> dict[str, str]:
    """The page's names of identities by IAM member, for a project's number, the project and the account of jobs."""
    table = re.findall(r"^\| ([^|,]+?)(?:,[^|]*)? \| `([^`|]+@[^`|]+)` \|$", PAGE, re.MULTILINE)
    letters = {"N": number, "P": project, "A": account}
    return {
        "serviceAccount:" + re.sub(r"\b[NPA]\b", lambda letter: letters[letter[0]], email): who for who, email in table
    }


def grants() -> set[Grant]:
    """What the page says that stacks grant."""
    return _grants_in(PAGE[PAGE.index("## What the stack grants") : PAGE.index("## What schedules add")])


def schedule_grants() -> set[Grant]:
    """What the page says that stacks with schedules grant beside."""
    return _grants_in(PAGE[PAGE.index("## What schedules add") : PAGE.index("## What the deployer needs")])


def schedule_permissions() -> set[Grant]:
    """What the page says that the stack's own roles for schedules hold: permissions, joined, of whom, on what."""
    table = PAGE[PAGE.index("## What schedules add") : PAGE.index("## What the deployer needs")]
    rows = re.findall(r"^\| a role of the stack: ([^|]+) \| ([^|]+) \| ([^|]+) \| [^|]+ \|$", table, re.MULTILINE)
    return {(", ".join(sorted(re.findall(r"`([^`]+)`", held))), who, on) for held, who, on in rows}


def _grants_in(table: str) -> set[Grant]:
    rows = re.findall(r"^\| `(roles/\S+)` \| ([^|]+) \| ([^|]+) \| [^|]+ \|$", table, re.MULTILINE)
    return {(role, who, on) for role, everyone, on in rows for who in everyone.split(", ")}


def deployer_roles() -> set[Grant]:
    """What the page says that the deployer needs: role, for which type such as `projects.Service`, on what."""
    table = PAGE[PAGE.index("## What the deployer needs") :]
    rows = re.findall(r"^\| `(roles/\S+)` \| ([^|]+) \| ([^|]+) \|$", table, re.MULTILINE)
    return {(role, name, on) for role, on, types in rows for name in re.findall(r"`([^`]+)`", types)}


def least_roles() -> frozenset[str]:
    """What the page says that is enough for changes of jobs, images and packages, with Cloud Build."""
    part = PAGE[PAGE.index("### The least it needs") : PAGE.index("and access to the state")]
    own = re.findall(r"^- `(roles/\S+)` on ", part, re.MULTILINE)
    added = (role for role, kind, on in deployer_roles() if "`builder.cloudBuild" in on and "Image" in kind)
    return frozenset([*own, *added])


def made(inputs: Iterable[Mapping[str, Any]], who: Mapping[str, str], on: Mapping[str, str]) -> set[Grant]:
    """The grants among inputs of resources. `on` has the page's name of each key, bucket, account or project."""
    found = set()
    for given in inputs:
        if "member" in given and given["role"].startswith("roles/"):
            target = next(given[key] for key in _TARGETS if key in given)
            place = f"folders of {on[target]}" if "condition" in given else on[target]
            found.add((given["role"], who[given["member"]], place))
    return found
