"""gcloud, unmodified, and the commands that doctor offers and pages have: it knows each of them, with all flags."""

import json
import re
import shlex
from pathlib import Path

from vertex_training.doctor.findings import RULES, Place

from tests.blocks import PAGES, blocks, calls
from tests.clients.conftest import Gcloud
from tests.components.doctor.test_doctor import FAULTS

PLACES = [
    Place("project", "acme-dev"),
    Place("bucket", "theirs"),
    Place("repository", "projects/p/locations/l/repositories/r"),
    Place("key", "projects/p/locations/l/keyRings/k/cryptoKeys/c"),
    Place("secret", "projects/p/secrets/s"),
    Place("account", "a@p.iam.gserviceaccount.com"),
]


def on_pages(folder: Path) -> set[str]:
    """The commands of all pages, with a project whose id has the form that gcloud asks for."""
    shown = [each for page in PAGES for each in blocks(page) if "gcloud " in each.commands]
    started = [command for _, commands, _ in calls(shown, folder) for command in commands]
    # gcloud's check takes what follows an option for its value, so one that has none comes last.
    started = [sorted(command, key="--recursive".__eq__) for command in started]
    found = [shlex.join(command) for command in started if command[0] == "gcloud"]
    return {re.sub(r"(--project[ =])[A-Z_]+$", r"\1acme-dev", command) for command in found}


def test_gcloud_knows_every_command(gcloud: Gcloud, tmp_path: Path) -> None:
    remedies = [command for fault in FAULTS for command in fault.remedy.split(" && ")]
    remedies += [
        rule.remedy.format(project="acme-dev", account="a@p", member="user:a@b", stack="dev", place="X")
        for rule in RULES.values()
        if rule.check == "credentials"
    ]
    remedies += [place.grant("roles/x", "user:a@b") for place in PLACES]
    shown = on_pages(tmp_path)
    assert len(shown) > 10
    commands = sorted({command for command in remedies if command.startswith("gcloud ")} | shown)
    (tmp_path / "commands.md").write_text("```\n" + "\n".join(commands) + "\n```\n")
    found = json.loads(gcloud("meta", "lint-gcloud-commands", f"--commands-text-file={tmp_path}/commands.md").stdout)
    assert len(found) == len(commands)
    assert [each["error_message"] for each in found if not each["success"]] == []
