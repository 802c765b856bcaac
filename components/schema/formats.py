"""Types of the texts and numbers in declarations and stack files, each with a message that says its form."""

import re
from typing import Annotated, get_args

from pydantic import AfterValidator, BeforeValidator

from vertex_api.scalars import Int32, String, parse_seconds
from vertex_api.validation.rules import text_formats

_NAME = re.compile(r"[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?")
NAME_FORM = 'lower-case letters, digits, "-", "_" and ".", at most 63'


def is_valid_name(text: str) -> bool:
    """Whether a text can be the name of a job, an image or a package; `NAME_FORM` is the rule in words."""
    return _NAME.fullmatch(text) is not None


def validate_not_negative(value: int) -> int:
    """Return the value. Raises ValueError if it is below zero."""
    if value < 0:
        raise ValueError(f"{value} is below zero")
    return value


def validate_port(value: int) -> int:
    """Return the value. Raises ValueError if it is not the number of a port."""
    if not 0 <= value <= 65535:
        raise ValueError(f"{value} is not between 0 and 65535")
    return value


def validate_positive_duration(value: str) -> str:
    """Return a canonical duration (`"3600s"`). Raises ValueError if it is not positive."""
    if parse_seconds(value) <= 0:
        raise ValueError(f'"{value}" is not longer than "0s"')
    return value


def _form(pattern: str, form: str) -> AfterValidator:
    """Return a validator for texts of a pattern; `form` describes it to users."""

    def check(value: str) -> str:
        if not re.fullmatch(pattern, value):
            raise ValueError(f'"{value}" is not {form}')
        return value

    return AfterValidator(check)


def _api_format(text_format: text_formats.TextFormat) -> AfterValidator:
    """Return a validator by a format that the rules for jobs use too."""

    def check(value: str) -> str:
        if not text_format.matches(value):
            raise ValueError(text_format.mismatch_text(value))
        return value

    return AfterValidator(check)


def _to_digits(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


NumberOrText = Annotated[str, BeforeValidator(_to_digits)]
"""A text that YAML reads as a whole number if it is digits without quotes, such as a job's ID."""
JobId = Annotated[
    String,
    _form(
        r"\d+|projects/[^/]+/locations/[^/]+/[^/]+/\d+",
        "a job's ID or resource name, projects/P/locations/R/customJobs/ID",
    ),
    get_args(NumberOrText)[1],
]
ProjectNumber = Annotated[String, _form(r"\d{6,}", "a project's number: digits, as `gcloud projects describe` says")]
RepositoryId = Annotated[
    String, _form("[a-z]([a-z0-9-]{0,61}[a-z0-9])?", "a repository's name: lowercase letters, digits and hyphens")
]
RepositoryName = Annotated[
    String,
    _form(
        "projects/[a-z0-9.:-]+/locations/[a-z0-9-]+/repositories/[a-z0-9-]+", "projects/P/locations/L/repositories/R"
    ),
]
RegistryUrl = Annotated[
    String, _form("[^/@ ]+(/[a-z0-9._-]+)+", "a registry's host and a path, such as registry.example.com/team")
]
AccountId = Annotated[
    String, _form("[a-z][a-z0-9-]{4,28}[a-z0-9]", "an account's id: 6 to 30 lowercase letters, digits and hyphens")
]
AccountEmail = Annotated[String, _form("[^@/]+@[^@/]+[.]gserviceaccount[.]com", "a service account's e-mail")]
Member = Annotated[
    String,
    _form(
        "(user|group|serviceAccount|domain|principal|principalSet):.+",
        "an IAM member: user:, group:, serviceAccount:, domain:, principal: or principalSet:",
    ),
]
BucketName = Annotated[
    String,
    _form("[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]", 'a bucket\'s name: 3 to 63 lowercase letters, digits, ".", "_", "-"'),
]
KeyName = Annotated[
    String,
    _form(
        "projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+",
        "projects/P/locations/R/keyRings/K/cryptoKeys/C",
    ),
]
"""Keys of buckets and registries may be in a multi-region such as `us`, unlike those of jobs."""
NetworkName = Annotated[String, _api_format(text_formats.NETWORK)]
AttachmentName = Annotated[String, _api_format(text_formats.NETWORK_ATTACHMENT)]
PersistentResourceId = Annotated[String, _api_format(text_formats.PERSISTENT_RESOURCE_ID)]
# A Dockerfile's COPY interprets these characters as patterns, variables or quotes.
CopiedPath = Annotated[
    String, _form(r"""[^$*?\[\]\\"'\n]+""", "a path without wildcards, quotes, $ and \\; give the file another name")
]
BaseImage = Annotated[String, _form(r"[^\s$]+", "an image's name, such as python:3.11-slim-bookworm")]
ModuleName = Annotated[String, _form(r"[^\W\d]\w*([.][^\W\d]\w*)*", "a Python module, such as trainer.task")]
Requirement = Annotated[
    String,
    _form(r"[^\s-][^\n]*", "one requirement as pip reads it, such as pandas>=2; options go into requirements.txt"),
]


def validate_positive(value: int) -> int:
    if value < 1:
        raise ValueError(f"{value} is not above zero")
    return value


Positive = Annotated[Int32, AfterValidator(validate_positive)]
