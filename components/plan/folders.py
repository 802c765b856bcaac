"""The folders of a stack's bucket that jobs may write to: the stack's own, and those that its file or its jobs name."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from vertex_api.job import Job
from vertex_api.validation.formats import Violation

from ..schema import shapes
from ..schema.formats import PACKAGE_FOLDER, SOURCE_FOLDER

WHOLE_BUCKET = "/"
MAX_OTHERS = 19
"""Beside the stack's own folder. An allow policy has at most 20 bindings of one role to one principal with different
conditions (IAM's page "Quotas and limits")."""
_PATH = ("bucket", "writableFolders")


@dataclass(frozen=True)
class WritableFolders:
    """What the account of jobs may write in `bucket`: folders without a slash at their start, with one at their end.

    `own` is the folder of the stack, but for its `closed` folders, which Pulumi alone writes to. `listed` are
    `bucket.writableFolders`, `named` those that declared jobs name. Jobs that run as another account than `identity`
    are not of interest here.
    """

    bucket: str
    own: str
    listed: tuple[str, ...]
    identity: shapes.Identity
    named: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls, pulumi_project: str, stack: str, cloud: shapes.Cloud, declared: Iterable[Job] = ()
    ) -> "WritableFolders":
        """Return the folders of a stack, whose `cloud` has names for all that it creates, and of its declared jobs."""
        bucket = cloud["bucket"]
        listed = tuple(_close(folder) for folder in bucket.get("writableFolders", []))
        name = bucket.get("existing") or bucket["name"]
        folders = cls(name, f"{pulumi_project}/{stack}/", listed, cloud["identity"])
        named = frozenset(filter(None, map(folders._of_job, declared)))
        return cls(name, folders.own, listed, folders.identity, named)

    @property
    def closed(self) -> tuple[str, ...]:
        """The folders of packages and build sources: what runs elsewhere, later, with other rights, comes from them."""
        return tuple(f"{self.own}{folder}/" for folder in (PACKAGE_FOLDER, SOURCE_FOLDER))

    @property
    def others(self) -> tuple[str, ...]:
        """The folders outside the stack's own, also those of declared jobs; none that is in another one."""
        if WHOLE_BUCKET in self.listed:
            return (WHOLE_BUCKET,)
        outside = {folder for folder in {*self.listed, *self.named} if not folder.startswith(self.own)}
        return tuple(
            sorted(each for each in outside if not any(each != other and each.startswith(other) for other in outside))
        )

    def violations(self) -> Iterator[Violation]:
        """Find what is wrong with `bucket.writableFolders`, and with the number of folders that jobs name."""
        for index, folder in enumerate(self.listed):
            if folder.startswith(self.own):
                yield (*_PATH, index), f'"{folder}" is in the folder of the stack, {self.own}; remove it'
            elif folder != WHOLE_BUCKET and self.own.startswith(folder):
                message = f'"{folder}" holds the folder of the stack, {self.own}; name another one, or "/" for all'
                yield (*_PATH, index), message
        if (count := len(self.others)) > MAX_OTHERS:
            message = f"jobs write to {count} folders outside {self.own}, at most {MAX_OTHERS} can be granted; name a "
            yield _PATH, message + "folder here that holds several of them"

    def job_violations(self, job: Job) -> Iterator[Violation]:
        """Find why a job may not write to its output directory."""
        folder = self._of_job(job)
        if folder is None or WHOLE_BUCKET in self.listed:
            return
        path = (*job.job_spec_path, "baseOutputDirectory", "outputUriPrefix")
        if folder.startswith(self.closed):
            yield path, f'Pulumi alone writes to "{folder}"; choose another folder'
        elif folder == WHOLE_BUCKET or (folder != self.own and self.own.startswith(folder)):
            message = f'"gs://{self.bucket}/{folder.lstrip("/")}" holds the folders of stacks; choose a folder beside '
            yield path, message + "them, or allow the whole bucket by bucket.writableFolders: [/]"
        elif not folder.startswith((self.own, *self.listed, *self.named)):
            yield path, f'the training account may not write there; add "{folder}" to bucket.writableFolders'

    def _of_job(self, job: Job) -> str | None:
        """Return the folder of the bucket that a job names, as far as it is known; None for one that is elsewhere."""
        job_spec: Mapping[str, Any] = job.job_spec
        if not self._is_own_account(job_spec.get("serviceAccount")):
            return None
        uri = job_spec.get("baseOutputDirectory", {}).get("outputUriPrefix", "")
        known, reference, _ = uri.partition("${")
        bucket, slash, path = known.removeprefix("gs://").partition("/")
        if bucket != self.bucket or (reference and not slash):
            return None
        return _close(path.rpartition("/")[0] if reference else path)

    def _is_own_account(self, email: str | None) -> bool:
        own = self.identity.get("existing") or self.identity["account"]
        return email is None or own in (email, email.partition("@")[0])


def _close(folder: str) -> str:
    return f"{folder.rstrip('/')}/"
