"""The references in the specs of a stack's jobs: what they name, their values, and the resources that come first."""

from collections.abc import Collection, Mapping

import pulumi

from vertex_api.job import Job

from ..runtime.resource import when_known
from ..schema import interpolation
from ..schema.declared_job import DeclaredJob
from .images_and_packages import Images, Packages


def collect_referenced_names_by_table(declaration: DeclaredJob) -> dict[str, set[str]]:
    """Return the names that the references in a job's spec have, by table."""
    names: dict[str, set[str]] = {"images": set(), "packages": set(), "secrets": set(), "jobs": set()}
    for _, reference in interpolation.references(declaration.required_valid_spec.fields):
        table, _, name = reference.partition(".")
        names[table].add(name)
    return names


def resolve_references_now_or_when_known(
    spec: Job, tables: Mapping[str, Mapping[str, pulumi.Input[str]]]
) -> Job | pulumi.Output[Job]:
    """Return a spec with its references into `tables` resolved: at once, unless an image comes from another stack."""
    return when_known(
        lambda tables: spec.replace(interpolation.resolve(spec.fields, tables)),
        tables,
    )


def select_uris_by_table(
    names_by_table: Mapping[str, Collection[str]], images: Images, packages: Packages
) -> dict[str, Mapping[str, pulumi.Input[str]]]:
    """Return the URIs of these images and packages by name, each table under its own name."""
    return {
        table: {name: uris[name] for name in sorted(names_by_table[table])}
        for table, uris in (("images", images.uris), ("packages", packages.uris))
    }


def select_built_resources(
    names_by_table: Mapping[str, set[str]], images: Images, packages: Packages
) -> list[pulumi.Resource]:
    """Return the resources of those of these images and packages that this stack builds or uploads."""
    return [
        *(images.built[name] for name in sorted(names_by_table["images"] & images.built.keys())),
        *(packages.built[name] for name in sorted(names_by_table["packages"])),
    ]
