"""Resource names of the API: `projects/P/locations/R/customJobs/123`."""

from typing import NamedTuple

from vertex_api.job_kinds import KINDS, Kind


def build_parent(project: str, region: str) -> str:
    """Return the resource name of the parent of a project's jobs in a region: `projects/P/locations/R`."""
    return f"projects/{project}/locations/{region}"


class ResourceName(NamedTuple):
    """The resource name of a job or pipeline, in parts."""

    project: str
    region: str
    kind: Kind
    id: str

    @classmethod
    def parse(cls, name: str) -> "ResourceName":
        """Return the parts of a name. Raises ValueError if it is not the name of a job or pipeline."""
        match name.split("/"):
            case ["projects", project, "locations", region, collection, id] if collection in KINDS and id:
                return cls(project, region, KINDS[collection], id)
        raise ValueError(f'"{name}" is not projects/P/locations/R/{{{",".join(KINDS)}}}/ID')

    def __str__(self) -> str:
        return f"{build_parent(self.project, self.region)}/{self.kind.collection}/{self.id}"
