"""The command: it reads a stack file as Pulumi does, signs in, looks, and says what it has found."""

import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from time import monotonic
from typing import Any, get_args

from vertex_api import credentials

from ..errors import DeclarationErrors
from ..settings.offline import SECRET, NoStack, StackFile, read_stack
from .findings import PAGE, UNNAMED, Finding, Level, found

SECONDS = 8.0
"""Of all that waits for the network but quotas: with its start, a run takes at most ten."""
SIGN_IN_SECONDS = 4.0
_UNKNOWN_NUMBER = "000000"


def doctor(stack: str | None, as_json: bool) -> int:
    """Look at what a first `pulumi up` needs. Returns the exit code: 0 for nothing wrong, 1 for problems, else 2.

    Notes are nothing wrong.
    """
    deadline = monotonic() + SECONDS
    try:
        file = read_stack(Path.cwd(), stack)
    except NoStack as error:
        sys.stderr.write(f"vertex-training: {error}\n")
        return 2
    name = file.name
    try:
        examination = Examination(file, deadline)
        findings = examination.run()
    except DeclarationErrors as error:
        if as_json:
            print(json.dumps({"stack": name, "findings": [_invalid(str(each)) for each in error.problems]}))  # noqa: T201
        else:
            sys.stderr.write(f"stack {name}: {error}\n")
        return 1
    levels = {each.level for each in findings}
    code = 1 if "problem" in levels else 2 if "cannot tell" in levels else 0
    if as_json:
        page = f"vertex-training docs {PAGE}"
        about = {"stack": name, "project": examination.project, "account": examination.account, "page": page}
        print(json.dumps({**about, "findings": [asdict(each) for each in findings]}, indent=2))  # noqa: T201
        return code
    print(examination.heading(findings))  # noqa: T201
    for finding in findings:
        print(finding)  # noqa: T201
    return code


def _invalid(message: str) -> dict[str, Any]:
    return asdict(Finding("settings", message, ""))


class Examination:
    """One run, for the stack of a file; all is over by `deadline`, a time of `monotonic`."""

    def __init__(self, file: StackFile, deadline: float) -> None:
        self._file, self._stack, self._config, self._deadline = file, file.name, file.config, deadline
        #: The Google Cloud project, and (`account`) the IAM member that looks, if credentials say who that is.
        self.project, self._looks, self._has_signed_in = "", 0, False
        self._is_local = file.config.get("vertex-training:target") == "local"
        self.account: str | None = None

    @property
    def member(self) -> str:
        """The IAM member that looks, or what stands for it in messages and commands."""
        return self.account or UNNAMED

    def heading(self, findings: list[Finding]) -> str:
        """Return the first line: who looked at what, and how much of it is wrong."""
        who = (
            f"as {self.account or 'an account that its credentials do not name'}"
            if self._has_signed_in
            else "not signed in"
        )
        where = "this machine" if self._is_local else f"project {self.project}, {who}"
        about = f"stack {self._stack}, {where}"
        levels = [each.level for each in findings]
        problems, unknown = levels.count("problem"), levels.count("cannot tell")
        if not problems and not unknown:
            looks = "" if self._is_local else f" ({self._looks} look-ups)"
            return f"{about}: nothing stands in the way of `pulumi up`{looks}"
        return f"{about}: {problems} problem{'' if problems == 1 else 's'}, {unknown} not known"

    def run(self) -> list[Finding]:
        """Return what is wrong, and then what cannot be told. Raises DeclarationErrors for invalid settings."""
        from ..runtime.engine import defer_pulumi_gcp

        defer_pulumi_gcp()
        from ..settings.settings import NUMBER, Settings

        config = self._config if self._is_local else {NUMBER: _UNKNOWN_NUMBER, **self._config}
        settings = Settings.load_from_config(self._file.project, self._stack, self._file.root, config)
        self.project = settings.project
        from .machine import look

        problems = [*look(settings)]
        if self._is_local:
            return problems
        from .checks import Checks, look_up
        from .cloud import Cloud
        from .needs import Needs

        caller, of_credentials = self._sign_in()
        problems += of_credentials
        if caller is None:
            return [*problems, _unseen(settings)]
        cloud = Cloud(settings.project, settings.region, self._deadline, caller.apply)
        self.account, self._has_signed_in = _member(caller, cloud), True
        problems += self._identity(caller)
        if any(each.id == "quota-project" for each in problems):
            # As the remedy does it: what else is wrong is seen at once.
            cloud.sign_as(caller.with_quota_project(self.project).apply)
        number: list[str] = []
        problems += look_up("project", self.member, self.project, lambda: self._look_at_project(cloud, number))
        if number:
            if config[NUMBER] != number[0]:
                config[NUMBER] = number[0]
                settings = Settings.load_from_config(self._file.project, self._stack, self._file.root, config)
            problems += Checks(Needs(settings, self._file.key), cloud, self._stack, self.member).run()
        self._looks = cloud.count
        return sorted(dict.fromkeys(problems), key=lambda each: get_args(Level).index(each.level))

    def _sign_in(self) -> tuple[Any, list[Finding]]:
        """Return credentials with a token, or why there are none."""
        from google.auth.exceptions import GoogleAuthError
        from google.auth.transport.requests import Request

        from .checks import no_token

        credentials.use_config(self._config)
        problems = [
            found("credentials-secret", key=key) for key in credentials.CONFIG_KEYS if self._config.get(key) == SECRET
        ]
        if problems:
            credentials.use_config({key: value for key, value in self._config.items() if value != SECRET})

        def load() -> Any:
            caller = credentials.load()
            if not caller.valid:
                caller.refresh(Request())
            return caller

        try:
            return in_time(load, SIGN_IN_SECONDS), problems
        except GoogleAuthError as error:
            return None, [no_token(error, self.member, "credentials-missing")]
        except TimeoutError:
            return None, [found("credentials-missing", reason=f"nothing gave any within {SIGN_IN_SECONDS:.0f} s")]
        except (ValueError, TypeError, AttributeError, LookupError, OSError):
            reason = "what should have them is no credential file of Google's"
            return None, [found("credentials-missing", reason=reason)]

    def _identity(self, caller: Any) -> Iterator[Finding]:
        """The quota project of a user: docs/first-run.md, step 1."""
        if not getattr(caller, "refresh_token", None) or os.environ.get("GOOGLE_CLOUD_QUOTA_PROJECT"):
            return
        ids = {"project": self.project, "member": self.member, "stack": self._stack}
        if not caller.quota_project_id:
            yield found("quota-project", **ids)
        has_override = self._config.get("gcp:userProjectOverride") == "true"
        if not has_override or "gcp:billingProject" not in self._config:
            yield found("provider-quota-project", **ids)

    def _look_at_project(self, cloud: Any, number: list[str]) -> Iterator[Finding]:
        from ..settings.settings import NUMBER
        from .cloud import NotAllowed, NotFound

        ids = {"project": self.project, "member": self.member, "stack": self._stack}
        try:
            project = cloud.get("cloudresourcemanager", f"projects/{self.project}")
        except (NotAllowed, NotFound):
            yield found("project-missing", **ids)
            return
        if project["lifecycleState"] != "ACTIVE":
            yield found("project-deleted", **ids)
            return
        number.append(str(int(project["projectNumber"])))
        if (given := self._config.get(NUMBER, number[0])) != number[0]:
            yield found("project-number", number=number[0], wrong=given, **ids)


def _unseen(settings: Any) -> Finding:
    """Return what cannot be told without credentials, and what is valid all the same."""
    declared = {"image": settings.images, "job": settings.jobs, "schedule": settings.schedules}
    counts = ", ".join(f"{len(each)} {noun}{'' if len(each) == 1 else 's'}" for noun, each in declared.items() if each)
    message = f"the project: nobody is signed in to look at it; the stack is valid, and declares {counts or 'nothing'}"
    return Finding("project-unknown", message, "", "cannot tell")


def in_time(action: Callable[[], Any], seconds: float) -> Any:
    """Return what an action returns, or raise what it raises; a TimeoutError if it takes longer."""
    outcome: list[Any] = []

    def act() -> None:
        try:
            outcome.append((action(), None))
        except Exception as error:  # noqa: BLE001  # raised below
            outcome.append((None, error))

    # A daemon, because what looks for a metadata server tries for longer, and nobody waits for it.
    thread = threading.Thread(target=act, daemon=True)
    thread.start()
    thread.join(seconds)
    if not outcome:
        raise TimeoutError
    result, error = outcome[0]
    if error is not None:
        raise error
    return result


def _member(caller: Any, cloud: Any) -> str | None:
    """Return the IAM member that credentials are of, `None` if they do not say so, as tokens of other scopes."""
    from google.auth.exceptions import GoogleAuthError

    email = getattr(caller, "service_account_email", None)
    if not isinstance(email, str) or "@" not in email:
        try:
            token = in_time(lambda: credentials.personal_token(caller), SIGN_IN_SECONDS)
        except (GoogleAuthError, TimeoutError):
            token = caller.token
        email = cloud.whose(token)
    if email is None:
        return None
    return f"serviceAccount:{email}" if email.endswith(".gserviceaccount.com") else f"user:{email}"
