"""Types of the texts and numbers in declarations and stack files, each with a message that says its form."""

import re
from collections.abc import Callable
from typing import Annotated, Any, get_args

from pydantic import AfterValidator, BeforeValidator

from vertex_api.scalar_types import Duration, Int32, String, parse_seconds
from vertex_api.validation.rules import text_formats

_NAME = re.compile(r"[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?")
NAME_FORM = 'lower-case letters, digits, "-", "_" and ".", at most 63'


def is_valid_name(text: str) -> bool:
    """Whether a text can be the name of a job, an image or a package; `NAME_FORM` is the rule in words."""
    return _NAME.fullmatch(text) is not None


def _validate_with(is_valid: Callable[[Any], object], build_mismatch_message: Callable[[Any], str]) -> AfterValidator:
    """Return a validator that raises ValueError with `build_mismatch_message(value)` for invalid values."""

    def validate(value: Any) -> Any:
        if not is_valid(value):
            raise ValueError(build_mismatch_message(value))
        return value

    return AfterValidator(validate)


def _match(pattern: str, form: str) -> AfterValidator:
    """Return a validator for texts of a pattern; `form` describes it to users."""
    return _validate_with(re.compile(pattern).fullmatch, lambda value: f'"{value}" is not {form}')


def _match_format(text_format: text_formats.TextFormat) -> AfterValidator:
    """Return a validator for texts of a format that the rules for jobs use too."""
    return _validate_with(text_format.matches, text_format.build_mismatch_message)


def _convert_integer_to_text(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


NumberOrText = Annotated[str, BeforeValidator(_convert_integer_to_text)]
"""A text that YAML reads as a whole number if it is digits without quotes, such as a job's ID."""
_JOB_ID = _match(
    r"\d+|projects/[^/]+/locations/[^/]+/[^/]+/\d+", "a job's ID or resource name, projects/P/locations/R/customJobs/ID"
)
JobId = Annotated[String, _JOB_ID, get_args(NumberOrText)[1]]
ProjectNumber = Annotated[String, _match(r"\d{6,}", "a project's number: digits, as `gcloud projects describe` says")]
RepositoryId = Annotated[
    String, _match("[a-z]([a-z0-9-]{0,61}[a-z0-9])?", "a repository's name: lowercase letters, digits and hyphens")
]
_REPOSITORY = "projects/[a-z0-9.:-]+/locations/[a-z0-9-]+/repositories/[a-z0-9-]+"
RepositoryName = Annotated[String, _match(_REPOSITORY, "projects/P/locations/L/repositories/R")]
RegistryUrl = Annotated[
    String, _match("[^/@ ]+(/[a-z0-9._-]+)+", "a registry's host and a path, such as registry.example.com/team")
]
AccountId = Annotated[
    String, _match("[a-z][a-z0-9-]{4,28}[a-z0-9]", "an account's id: 6 to 30 lowercase letters, digits and hyphens")
]
AccountEmail = Annotated[String, _match("[^@/]+@[^@/]+[.]gserviceaccount[.]com", "a service account's e-mail")]
_MEMBER = "an IAM member: user:, group:, serviceAccount:, domain:, principal: or principalSet:"
Member = Annotated[String, _match("(user|group|serviceAccount|domain|principal|principalSet):.+", _MEMBER)]
_BUCKET = 'a bucket\'s name: 3 to 63 lowercase letters, digits, ".", "_", "-"'
BucketName = Annotated[String, _match("[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]", _BUCKET)]
_KEY = "projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+"
KeyName = Annotated[String, _match(_KEY, "projects/P/locations/R/keyRings/K/cryptoKeys/C")]
"""Keys of buckets and registries may be in a multi-region such as `us`, unlike those of jobs."""
NetworkName = Annotated[String, _match_format(text_formats.NETWORK)]
AttachmentName = Annotated[String, _match_format(text_formats.NETWORK_ATTACHMENT)]
PersistentResourceId = Annotated[String, _match_format(text_formats.PERSISTENT_RESOURCE_ID)]
# A Dockerfile's COPY interprets these characters as patterns, variables or quotes.
CopiedPath = Annotated[
    String, _match(r"""[^$*?\[\]\\"'\n]+""", "a path without wildcards, quotes, $ and \\; give the file another name")
]
BaseImage = Annotated[String, _match(r"[^\s$]+", "an image's name, such as python:3.11-slim-bookworm")]
ModuleName = Annotated[String, _match(r"[^\W\d]\w*([.][^\W\d]\w*)*", "a Python module, such as trainer.task")]
_REQUIREMENT = "one requirement as pip reads it, such as pandas>=2; options go into requirements.txt"
Requirement = Annotated[String, _match(r"[^\s-][^\n]*", _REQUIREMENT)]
Positive = Annotated[Int32, _validate_with(lambda value: value > 0, "{} is not above zero".format)]
NotNegative = Annotated[Int32, _validate_with(lambda value: value >= 0, "{} is below zero".format)]
Port = Annotated[Int32, _validate_with(lambda value: 0 <= value <= 65535, "{} is not between 0 and 65535".format)]
PositiveDuration = Annotated[
    Duration, _validate_with(lambda value: parse_seconds(value) > 0, '"{}" is not longer than "0s"'.format)
]
