"""Types of the texts and numbers that fields of declarations and stack files take, each with a message on its form."""

import re
from collections.abc import Callable
from typing import Annotated, Any, get_args

from pydantic import AfterValidator, BeforeValidator

from vertex_api.scalars import Duration, Int32, String, to_seconds
from vertex_api.validation import formats

_NAME = re.compile(r"[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?")
NAME_FORM = 'lower-case letters, digits, "-", "_" and ".", at most 63'


def is_name(text: str) -> bool:
    """Whether a text can be the name of a job, an image or a package; `NAME_FORM` is the rule in words."""
    return _NAME.fullmatch(text) is not None


def name_problem(name: str) -> str | None:
    """Return what is wrong with the name of an image or a package."""
    return None if is_name(name) else f'"{name}" must be {NAME_FORM}'


def image_name_problem(name: str) -> str | None:
    """Return what is wrong with the name of an image that is built, a part of a path in its registry.

    The grammar is that of `formats.IMAGE`.
    """
    if is_name(name) and not formats.IMAGE.matches(name):
        return f'"{name}" is a name that no registry takes; separate words by one ".", one or two "_", or hyphens'
    return name_problem(name)


PACKAGE_FOLDER, SOURCE_FOLDER = "packages", "build-sources"
"""The folders of a stack in its bucket that Pulumi alone writes to: packages, and the sources of remote builds."""


def output_name_problem(name: str) -> str | None:
    """Return what is wrong with the name of a job or a schedule, which is also that of its folder in the bucket."""
    if problem := name_problem(name):
        return problem
    if name in (PACKAGE_FOLDER, SOURCE_FOLDER):
        return f'"{name}" is a folder of the bucket that jobs may not write to; choose another name'
    return None


class _Validator(AfterValidator):
    """Raises ValueError with `explain(value)` for invalid values."""

    def __init__(self, is_valid: Callable[[Any], object], explain: Callable[[Any], str]) -> None:
        def require(value: Any) -> Any:
            if not is_valid(value):
                raise ValueError(explain(value))
            return value

        super().__init__(require)


class _Pattern(_Validator):
    """Accepts texts of a pattern, which `description` describes to users."""

    def __init__(self, pattern: str, description: str) -> None:
        super().__init__(re.compile(pattern).fullmatch, lambda text: f'"{text}" is not {description}')


class _Format(_Validator):
    """Accepts texts of a format that the rules for jobs use too."""

    def __init__(self, text_format: formats.Format) -> None:
        super().__init__(text_format.matches, text_format.mismatch)


def _as_text(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


Formerly = Annotated[list[String], BeforeValidator(_as_list)]
"""The names that something had before: one, or several, the first of all last."""
NumberOrText = Annotated[str, BeforeValidator(_as_text)]
"""A text that YAML reads as a whole number if it is digits without quotes, such as a job's ID."""
Rerun = Annotated[String, AfterValidator(lambda text: "" if text == "0" else text), get_args(NumberOrText)[1]]
"""Any text, such as a counter or a date; the counter that begins at 0 is nothing then."""
_JOB_ID = _Pattern(
    r"\d+|projects/[^/]+/locations/[^/]+/[^/]+/\d+", "a job's ID or resource name, projects/P/locations/R/customJobs/ID"
)
JobId = Annotated[String, _JOB_ID, get_args(NumberOrText)[1]]
ProjectNumber = Annotated[String, _Pattern(r"\d{6,}", "a project's number: digits, as `gcloud projects describe` says")]
RepositoryId = Annotated[
    String, _Pattern("[a-z]([a-z0-9-]{0,61}[a-z0-9])?", "a repository's name: lowercase letters, digits and hyphens")
]
_REPOSITORY = "projects/[a-z0-9.:-]+/locations/[a-z0-9-]+/repositories/[a-z0-9-]+"
RepositoryName = Annotated[String, _Pattern(_REPOSITORY, "projects/P/locations/L/repositories/R")]
RegistryUrl = Annotated[
    String, _Pattern("[^/@ ]+(/[a-z0-9._-]+)+", "a registry's host and a path, such as registry.example.com/team")
]
StandIn = Annotated[
    String,
    _Pattern(r"https?://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(:\d{1,5})?/?", "an address, such as http://127.0.0.1:9050"),
]
AccountId = Annotated[
    String, _Pattern("[a-z][a-z0-9-]{4,28}[a-z0-9]", "an account's id: 6 to 30 lowercase letters, digits and hyphens")
]
AccountEmail = Annotated[String, _Pattern("[^@/]+@[^@/]+[.]gserviceaccount[.]com", "a service account's e-mail")]
Acting = Annotated[
    String, _Pattern("user|[^@/]+@[^@/]+[.]gserviceaccount[.]com", "a service account's e-mail, nor user, for your own")
]
_MEMBER = "an IAM member: user:, group:, serviceAccount:, domain:, principal: or principalSet:"
Member = Annotated[String, _Pattern("(user|group|serviceAccount|domain|principal|principalSet):.+", _MEMBER)]
_BUCKET = 'a bucket\'s name: 3 to 63 lowercase letters, digits, ".", "_", "-"'
BucketName = Annotated[String, _Pattern("[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]", _BUCKET)]
_FOLDER = 'a folder in the bucket, such as shared/models/, or "/" for the whole bucket'
BucketFolder = Annotated[String, _Pattern(r"/|(?!gs:)[^/\n]+(/[^/\n]+)*/?", _FOLDER)]
_KEY = "projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+"
_DATA = "gs://BUCKET/OBJECTS, bq://PROJECT.DATASET.TABLE, or a path below the project's folder"
_DATA_URI = r"gs://[a-z0-9][a-z0-9._-]+[a-z0-9]/[^\n]*|bq://[^\s./]+[.][^\s./]+[.][^\s./]+|(?![\w+.-]+:)(?!/)[^\n]+"
DataUri = Annotated[String, _Pattern(_DATA_URI, _DATA)]
KeyName = Annotated[String, _Pattern(_KEY, "projects/P/locations/R/keyRings/K/cryptoKeys/C")]
"""Keys of buckets and registries may be in a multi-region such as `us`, unlike those of jobs."""
NetworkName = Annotated[String, _Format(formats.NETWORK)]
AttachmentName = Annotated[String, _Format(formats.NETWORK_ATTACHMENT)]
_COMPUTE_NAME = "a name of Compute Engine: lowercase letters, digits and hyphens, at most 63, a letter first"
ComputeName = Annotated[String, _Pattern("[a-z]([a-z0-9-]{0,61}[a-z0-9])?", _COMPUTE_NAME)]
TensorboardName = Annotated[String, _Format(formats.TENSORBOARD)]
_CHANNEL = "an e-mail address or a channel, projects/P/notificationChannels/ID"
NotificationChannel = Annotated[
    String, _Pattern(r"[^@\s/]+@[^@\s/]+|projects/[^/]+/notificationChannels/[0-9]+", _CHANNEL)
]
_SECRET = 'a secret of Secret Manager: letters, digits, "-" and "_", or projects/P/secrets/NAME'
SecretName = Annotated[String, _Pattern("(projects/[^/]+/secrets/)?[A-Za-z0-9_-]{1,255}", _SECRET)]
_SECRET_VERSION = re.compile("projects/[^/]+/secrets/[A-Za-z0-9_-]{1,255}/versions/([0-9]+|latest)")
_SECRET_VERSION_FORM = "must be a version of Secret Manager, projects/P/secrets/NAME/versions/N, and not a value"
SecretVersionName = Annotated[String, _Validator(_SECRET_VERSION.fullmatch, lambda _: _SECRET_VERSION_FORM)]
"""Its message does not quote the text, which may be a secret."""
_POOL = "projects/[^/]+/locations/[^/]+/workerPools/[^/]+"
WorkerPoolName = Annotated[String, _Pattern(_POOL, "a private pool, projects/P/locations/L/workerPools/W")]
PersistentResourceId = Annotated[String, _Format(formats.PERSISTENT_RESOURCE_ID)]
# A Dockerfile's COPY interprets these characters as patterns, variables or quotes.
CopiedPath = Annotated[
    String, _Pattern(r"""[^$*?\[\]\\"'\n]+""", "a path without wildcards, quotes, $ and \\; give the file another name")
]
_DOCKER_IMAGE = "an image with a version or a digest, such as gcr.io/cloud-builders/docker:24.0.9 or docker:27-cli"
DockerImage = Annotated[String, _Pattern(r"[^\s$@]+(:[\w][\w.-]*|@sha256:[0-9a-f]{64})", _DOCKER_IMAGE)]
BaseImage = Annotated[String, _Pattern(r"[^\s$]+", "an image's name, such as python:3.11-slim-bookworm")]
ModuleName = Annotated[String, _Pattern(r"[^\W\d]\w*([.][^\W\d]\w*)*", "a Python module, such as trainer.task")]
_REQUIREMENT = "one requirement as pip reads it, such as pandas>=2; options go into requirements.txt"
Requirement = Annotated[String, _Pattern(r"[^\s-][^\n]*", _REQUIREMENT)]


def _cron(text: str) -> str:
    # Imported here and below, because most stacks have no schedules.
    from vertex_api.cron import cron_problem

    if problem := cron_problem(text):
        raise ValueError(problem)
    return text


def _time_zone(text: str) -> str:
    from vertex_api.cron import zone_problem

    if problem := zone_problem(text):
        raise ValueError(problem)
    return text


Cron = Annotated[String, AfterValidator(_cron)]
TimeZone = Annotated[String, AfterValidator(_time_zone)]
Positive = Annotated[Int32, _Validator(lambda value: value > 0, "{} is not above zero".format)]
Port = Annotated[Int32, _Validator(lambda value: 0 <= value <= 65535, "{} is not between 0 and 65535".format)]
PositiveDuration = Annotated[
    Duration, _Validator(lambda value: to_seconds(value) > 0, '"{}" is not longer than "0s"'.format)
]
