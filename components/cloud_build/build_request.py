"""The request to build an image: a `Build` of Cloud Build's API (discovery document cloudbuild v1)."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

DOCKER_STEP = "gcr.io/cloud-builders/docker"
"""Google's image with Docker's command line, which Cloud Build's workers have in their cache. Google moves it from
version to version; `dockerImage` names one."""
CONTEXT_FOLDER = "context"
"""The folder of the source archive that holds the build context. A Dockerfile that `COPY` must not see is beside it."""


@dataclass(frozen=True)
class ImageBuild:
    """What to build: `tagged_uri` from the archive `source_uri` (gs://…), and the options of `docker build`.

    Of the archive, a build takes the generation `source_generation`, whatever is written there later: training code may
    write to the bucket, and without a generation the latest one is built (StorageSource, discovery document cloudbuild
    v1).
    `dockerfile` is its path in the archive. `secret_versions` are names of Secret Manager's versions by the ids with
    which the Dockerfile mounts them. `cache_image` is an image whose layers may be reused.
    """

    tagged_uri: str
    source_uri: str
    source_generation: str
    dockerfile: str
    platform: str
    build_args: Mapping[str, str] = field(default_factory=dict)
    target: str | None = None
    secret_versions: Mapping[str, str] = field(default_factory=dict)
    cache_image: str | None = None


def compute_build_tag(uri: str) -> str:
    """Return the tag by which builds are found again: of one image, or of all images of a URI without a tag.

    It is a digest, as a build's tag has no slashes and colons.
    """
    return f"vertex-training-{hashlib.sha256(uri.encode()).hexdigest()[:32]}"


def get_uri_without_tag(tagged_uri: str) -> str:
    """Return the URI of an image without its tag, which stays the same from build to build."""
    return tagged_uri.rpartition(":")[0]


def can_reuse_layers(options: Mapping[str, Any]) -> bool:
    """Whether builds with these options reuse layers: the classic builder would have to pull the whole image first."""
    return bool(options.get("cache")) and "network" not in options


def build_request_body(build: ImageBuild, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `Build` for an image. `options` have `parent`, `serviceAccount` and the fields of `CloudBuild`.

    A build with an account of its own needs a logs bucket or CLOUD_LOGGING_ONLY (cert-manager#8851). A private pool
    decides on the machine, so its builds name no type.
    """
    bucket, _, name = build.source_uri.removeprefix("gs://").partition("/")
    project = options["parent"].split("/")[1]
    variables = {f"BUILD_SECRET_{index}": id_ for index, id_ in enumerate(sorted(build.secret_versions))}
    step: dict[str, Any] = {
        "name": options.get("dockerImage", DOCKER_STEP),
        # BuildKit knows no networks but the default one, "host" and "none" (docker/buildx#591).
        "env": [f"DOCKER_BUILDKIT={0 if 'network' in options else 1}"],
        "args": [_escape_substitutions(argument) for argument in _build_docker_arguments(build, variables, options)],
    }
    request: dict[str, Any] = {
        "source": {"storageSource": {"bucket": bucket, "object": name, "generation": build.source_generation}},
        "steps": [step],
        "images": [build.tagged_uri],
        "tags": [compute_build_tag(uri) for uri in (build.tagged_uri, get_uri_without_tag(build.tagged_uri))],
        "serviceAccount": f"projects/{project}/serviceAccounts/{options['serviceAccount']}",
        "options": {"logging": "CLOUD_LOGGING_ONLY"},
    }
    if "timeout" in options:
        request["timeout"] = options["timeout"]
    if "pool" in options:
        request["options"]["pool"] = {"name": options["pool"]}
    elif "machineType" in options:
        request["options"]["machineType"] = options["machineType"]
    if variables:
        step["secretEnv"] = list(variables)
        secrets = [{"versionName": build.secret_versions[id_], "env": name} for name, id_ in variables.items()]
        request["availableSecrets"] = {"secretManager": secrets}
    return request


def _build_docker_arguments(
    build: ImageBuild, secret_ids_by_variable: Mapping[str, str], options: Mapping[str, Any]
) -> list[str]:
    return [
        "build",
        f"--tag={build.tagged_uri}",
        f"--platform={build.platform}",
        f"--file={build.dockerfile}",
        *([f"--target={build.target}"] if build.target else []),
        *(_build_inline_cache_and_cache_from_arguments(build.cache_image) if can_reuse_layers(options) else []),
        *(f"--build-arg={name}={value}" for name, value in sorted(build.build_args.items())),
        *(f"--secret=id={id_},env={variable}" for variable, id_ in secret_ids_by_variable.items()),
        *([f"--network={options['network']}"] if "network" in options else []),
        CONTEXT_FOLDER,
    ]


def _build_inline_cache_and_cache_from_arguments(cache_image: str | None) -> list[str]:
    # What the next build needs to find this one's layers is written into the image.
    return ["--build-arg=BUILDKIT_INLINE_CACHE=1", *([f"--cache-from={cache_image}"] if cache_image else [])]


def _escape_substitutions(argument: str) -> str:
    """Return an argument that Cloud Build leaves as it is: `$NAME` would be one of its substitutions."""
    return argument.replace("$", "$$")
