"""What jobs need of IAM, as their calls at home show it, beside what the stack of a run grants them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vertex_api.job import Job
from vertex_api.names import did_you_mean

from ..errors import ComponentError, DeclarationErrors
from ..runtime import emulator
from ..settings.offline import StackFile
from ..settings.settings import NAMESPACE, NUMBER, Settings

if TYPE_CHECKING:  # it takes the third of a second, which runs of stacks with target local do without
    from ..targets.gcp.grants import Grants

_UNKNOWN_NUMBER = "000000"
_MAX_SHOWN = 20


class AccessUnknown(ComponentError):
    """Grants are to be enforced, and it is not known what they are."""


@dataclass(frozen=True)
class Needs:
    """What a job has needed: `permissions`, those of them that are not `granted`, and `remedies`, which grant them.

    Each permission is a text with what it is on. `note` says why it is not known what is granted. Then, and for target
    `local`, `stack` is empty.
    """

    permissions: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()
    remedies: tuple[str, ...] = ()
    stack: str = ""
    note: str = ""

    @property
    def lines(self) -> list[str]:
        """What to say of them."""
        if not self.permissions:
            return []
        found = [f"uses: {listed(self.permissions)}"]
        if self.lacking:
            found.append(f"not granted by stack {self.stack}: {listed(self.lacking)}")
            found += [f"  {line}" for line in self.remedies]
        return [*found, *([self.note] if self.note else [])]


def listed(permissions: Iterable[str]) -> str:
    """Return permissions as one text, with the number of those that are too many to show."""
    all_of_them = [*permissions]
    more = len(all_of_them) - _MAX_SHOWN
    return ", ".join(all_of_them[:_MAX_SHOWN]) + (f" and {more} more" if more > 0 else "")


def cloud_settings(file: StackFile, left_out: Iterable[str] = ()) -> Settings:
    """Return the settings of a stack with target `gcp`, without those for the keys of this package to be `left_out`.

    Guardrails are for jobs that are submitted, so they are left out, too. Raises DeclarationErrors.
    """
    without = {f"{NAMESPACE}:{key}" for key in ("guardrails", *left_out)}
    config = {key: text for key, text in file.config.items() if key not in without}
    return Settings.load_from_config(file.project, file.name, file.root, {NUMBER: _UNKNOWN_NUMBER, **config})


@dataclass(frozen=True)
class Access:
    """What a stack with target `gcp` grants its jobs; nothing is known for target `local`, or for what `note` says."""

    stack: str = ""
    grants: Grants | None = None
    note: str = ""
    is_enforced: bool = False

    @classmethod
    def of(cls, file: StackFile, is_enforced: bool = False) -> Access:
        """Return that of a stack, in whose folder the process runs.

        Raises AccessUnknown where grants are to be enforced.
        """
        target = file.config.get(f"{NAMESPACE}:target")
        if target != "gcp":
            if is_enforced and target != "local":
                known = did_you_mean(str(target), ("gcp", "local"))
                raise AccessUnknown(f"--enforce: stack {file.name}: target {target} is not known{known}")
            if is_enforced:
                raise AccessUnknown(
                    f"--enforce: stack {file.name} has target {target}, which grants nothing; give --stack with one of "
                    "target gcp"
                )
            return cls()
        try:
            settings = cloud_settings(file)
        except DeclarationErrors as error:
            note = f"what stack {file.name} grants is not known: {error.problems[0]}"
            if is_enforced:
                raise AccessUnknown(f"--enforce: {note}") from None
            return cls(note=note)
        from ..targets.gcp.grants import Grants

        return cls(file.name, Grants(settings), is_enforced=is_enforced)

    def apply(self, settings: Settings, name: str, job: Job, home: str) -> None:
        """Let the emulator go by what is granted to a job that runs next; its bucket is `home`. Raises AccessUnknown.

        At home, the stack's bucket has another name, and the job's folder is another one.
        """
        if self.grants is None:
            return
        if note := self._unknown(job):
            if self.is_enforced:
                raise AccessUnknown(f"--enforce: {name}: {note}")
            emulator.replace_grants(settings.project, {})
            return
        from ..targets.gcp.grants import writing

        bucket, _, folder = _outputs(job).partition("/")
        granted = [*self.grants, *(each.moved(home) for each in self.grants if each.on == self.grants.bucket)]
        if bucket == home:
            granted.append(writing(home, f"{folder.rstrip('/')}/"))
        rules = [each.rule for each in granted]
        said = {"account": self.grants.account, "enforce": self.is_enforced, "rules": rules}
        emulator.replace_grants(settings.project, said)

    def needs(self, told: Iterable[Mapping[str, str]], job: Job, home: str) -> Needs:
        """Return what a job has needed, as the emulator tells it."""
        unknown = self._unknown(job) if self.grants else self.note
        bucket = self.grants.bucket if self.grants else home
        permissions, lacking = dict[str, None](), dict[tuple[str, str], None]()
        # Of the project, Vertex AI's alone may be more than are shown.
        for each in sorted(told, key=lambda need: need["resource"] == "project"):
            permissions[_text(each["permission"], _renamed(each["resource"], home, bucket))] = None
            if "lacking" in each:
                lacking[each["permission"], _renamed(each["lacking"], home, bucket)] = None
        if self.grants is None or unknown:
            return Needs(tuple(permissions), note=unknown)
        remedies = self.grants.remedies(lacking)
        return Needs(tuple(permissions), tuple(_text(*each) for each in lacking), tuple(remedies), self.stack)

    def _unknown(self, job: Job) -> str:
        """Say why it is not known what a job may do; "" if it is."""
        account = job.job_spec.get("serviceAccount")
        if self.grants is None or account in (None, self.grants.account):
            return ""
        return (
            f"what is granted to {account}, the job's own account, is not compared: stack {self.stack} grants nothing "
            "to it; --as account shows what Google lets it do"
        )


def _outputs(job: Job) -> str:
    return str(job.job_spec["baseOutputDirectory"]["outputUriPrefix"]).removeprefix("gs://")


def _renamed(resource: str, home: str, bucket: str) -> str:
    own, slash, rest = resource.removeprefix("gs://").partition("/")
    return f"gs://{bucket}{slash}{rest}" if resource.startswith("gs://") and own == home else resource


def _text(permission: str, place: str) -> str:
    return f"{permission} on {'the project' if place == 'project' else place}"
