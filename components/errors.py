"""The errors of `components`. Every message can be shown to a user as it is."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass

import pulumi

from vertex_api.errors import Item, Refusal, shown_problems, visible


class ComponentError(Exception):
    """The base of all errors: something that the user can fix.

    Its message may quote a log, a name or an answer, so nothing in it acts on the terminal that shows it.
    """

    def __init__(self, message: str) -> None:
        super().__init__(visible(message, kept="\n\t"))


def os_error(error: OSError) -> str:
    """Return what to show of an OSError in one line: a file's with its reason, any other by its own words.

    Errors of many libraries are OSErrors by inheritance alone (requests, urllib3, docker), and have neither a file nor
    a reason; `shutil.Error` has a list of both.
    """
    if isinstance(error, shutil.Error) and error.args and isinstance(error.args[0], list):
        source, _, reason = error.args[0][0]
        return visible(f"{source}: {reason}")
    text = error.strerror or str(getattr(error, "explanation", None) or error) or type(error).__name__
    return visible(": ".join([*([str(error.filename)] if error.filename else []), " ".join(text.split())]))


KNOWN_HERE = "known here: "
"""How the last line of a list of problems begins if a job can lift one of them."""


@dataclass(frozen=True)
class Problem:
    """One thing to fix: `place` is `file:line` (or a file), `path` the key in it, `message` what to do."""

    place: str
    path: str
    message: str

    def __str__(self) -> str:
        return visible(f"{self.place}: {self.path}: {self.message}" if self.path else f"{self.place}: {self.message}")


class DeclarationErrors(ComponentError, pulumi.RunError):
    """The `problems` of the declarations and the stack file. A RunError, so that Pulumi shows no traceback."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        shown, last = closed(problems, [problem.message for problem in problems])
        self.problems = list(shown)
        count = "1 problem" if len(shown) == 1 else f"{len(shown)} problems"
        heading = f"{count} in what is declared:"
        super().__init__("\n".join([heading, *(f"  {line}" for line in [*shown, *last])]))


def closed(problems: Sequence[Item], messages: Sequence[str]) -> tuple[Sequence[Item], list[str]]:
    """Return the problems to show and the line after them, if there is one: that there are more, or how to lift one.

    `messages` are those of the problems.
    """
    shown, more = shown_problems(problems)
    if more:
        return shown, [more]
    return shown, [_lift()] if any(isinstance(message, Refusal) for message in messages) else []


def _lift() -> str:
    """Return the last line of a list of problems of which a job can lift one."""
    from vertex_api import machines, types  # loads pydantic, which most commands do without

    day = f"{types.REVISION[:4]}-{types.REVISION[4:6]}-{types.REVISION[6:]}"
    what = f"machines as of {machines.AS_OF}, the API as of {day}"
    lifted = "to submit a job all the same, lifecycle: {allow: [FIELD]}, as `vertex-training docs refusals` says"
    return f"{KNOWN_HERE}{what}; {lifted}"


class ContextUnusable(ComponentError, pulumi.RunError):
    """The folder that an image is built from cannot be read."""

    @classmethod
    def from_os_error(cls, error: OSError) -> "ContextUnusable":
        """Return the error for a file or folder that cannot be read."""
        advice = "make it readable, or exclude it in .dockerignore"
        return cls(f"{error.filename} cannot be read ({error.strerror}): {advice}")


class FileNameUnusable(ContextUnusable):
    """A file of the folder that an image is built from has a name that is no UTF-8."""


class BuildFailed(ComponentError):
    """An image cannot be built."""


class BuilderUnusable(ComponentError, pulumi.RunError):
    """The builder that an image names cannot build it."""


class DockerUnavailable(ComponentError):
    """Docker does not answer."""


class RegistryRefused(ComponentError):
    """A registry does not take an image, or does not say whether it has it."""


class UploadFailed(ComponentError):
    """A file cannot be put where jobs find it, or one that a job has written not be read."""


class DataUnreadable(ComponentError):
    """What data there is under a URI cannot be told."""


class DataLockUnusable(ComponentError, pulumi.RunError):
    """The lock of data cannot be read."""


class ImageNotPromoted(ComponentError, pulumi.RunError):
    """Another stack has not built the image that this one runs."""


class ImageRefused(ComponentError, pulumi.RunError):
    """The image of another stack is of no registry that this one allows."""


class GrantedQuotasUnknown(ComponentError):
    """What a project is granted of Vertex AI's quotas cannot be looked up; the message says why in one line."""


class ProjectNumberUnknown(ComponentError, pulumi.RunError):
    """The number of a project is not given, and cannot be looked up."""


class QuotaInsufficient(ComponentError, pulumi.RunError):
    """Jobs need more of a quota than is granted, and the stack's guardrails block them."""


class EmulatorFailed(ComponentError):
    """The local emulator does not start."""


class SubmitFailed(ComponentError):
    """A job cannot be submitted, or not be removed."""


class TrainingFailed(ComponentError):
    """Jobs that were waited for did not succeed."""
