"""gcloud, unmodified, and the commands that doctor offers: it knows each of them, with all their flags."""

import json
from pathlib import Path

from vertex_training.doctor.rules import RULES, Place

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


def test_gcloud_knows_every_remedy(gcloud: Gcloud, tmp_path: Path) -> None:
    remedies = [command for fault in FAULTS for command in fault.remedy.split(" && ")]
    remedies += [
        rule.remedy.format(project="acme-dev", account="a@p", member="user:a@b", stack="dev", place="X")
        for rule in RULES.values()
        if rule.check == "credentials"
    ]
    remedies += [place.grant("roles/x", "user:a@b") for place in PLACES]
    commands = sorted({command for command in remedies if command.startswith("gcloud ")})
    (tmp_path / "commands.md").write_text("```\n" + "\n".join(commands) + "\n```\n")
    found = json.loads(gcloud("meta", "lint-gcloud-commands", f"--commands-text-file={tmp_path}/commands.md").stdout)
    assert {each["command_string"] for each in found} == set(commands)
    assert [each["error_message"] for each in found if not each["success"]] == []
