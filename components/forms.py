"""Texts of a form that Google Cloud asks for, as the shapes use them."""

import re
from typing import Annotated

from pydantic import AfterValidator

from vertex.scalars import String


def _form(pattern: str, form: str) -> AfterValidator:
    """A text of a form that Google Cloud asks for; `form` says it in words or by a pattern with names."""

    def check(value: str) -> str:
        if not re.fullmatch(pattern, value):
            raise ValueError(f'"{value}" is not {form}')
        return value

    return AfterValidator(check)


ProjectNumber = Annotated[String, _form(r"\d{6,}", "a project's number: digits, as `gcloud projects describe` says")]
RepositoryId = Annotated[
    String, _form("[a-z]([a-z0-9-]{0,61}[a-z0-9])?", "a repository's name: lowercase letters, digits and hyphens")
]
RepositoryName = Annotated[
    String, _form("projects/[^/]+/locations/[^/]+/repositories/[^/]+", "projects/P/locations/L/repositories/R")
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
NetworkName = Annotated[String, _form(r"projects/[^/]+/global/networks/[^/]+", "projects/NUMBER/global/networks/NAME")]
AttachmentName = Annotated[
    String,
    _form("projects/[^/]+/regions/[^/]+/networkAttachments/[^/]+", "projects/P/regions/R/networkAttachments/A"),
]
