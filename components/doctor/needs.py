"""What a stack makes in Google Cloud, and what its deployer needs for that: from its settings, without an engine.

To run the foundation for it would take doctor seconds of processor, and each image and package would be read. So
`Needs` says the types once more, and no decision: what is outside the stack's project, its accounts, and what is
granted have their homes in the settings and in `targets.gcp`. tests/components/doctor/test_needs.py compares it with
what the program registers.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from vertex_api.job import Job
from vertex_api.jobspec import image_name

from ..data.listing import BUCKET, TABLE
from ..images.declaration import is_built_here, uses_cloud_build
from ..runtime.refusals import DEPLOYER
from ..settings.names import builder_account
from ..settings.settings import Settings
from ..targets.gcp.network import Interface
from ..targets.gcp.project import account_email, is_own_account
from .findings import Place

_SECRETS_ROLE = "roles/cloudkms.cryptoKeyEncrypterDecrypter"
_SUBNETWORK_USE = "compute.subnetworks.use"
_SECRETS_PERMISSIONS = ("cloudkms.cryptoKeyVersions.useToEncrypt", "cloudkms.cryptoKeyVersions.useToDecrypt")


class Needs:
    """The settings of a stack with target `gcp`, in terms of what exists and what the stack creates.

    `secrets_key` is the key of Cloud KMS that encrypts the secrets of the stack.
    """

    def __init__(self, settings: Settings, secrets_key: str | None = None) -> None:
        assert settings.cloud is not None
        self.settings, self.cloud, self._secrets_key = settings, settings.cloud, secrets_key
        self.project, self.region, self.number = settings.project, settings.region, settings.cloud["projectNumber"]
        self.own = Place("project", self.project)
        registry, identity, bucket = self.cloud["registry"], self.cloud["identity"], self.cloud["bucket"]
        self.bucket = bucket.get("existing") or bucket["name"]
        #: The bucket's place: itself if it exists, else its project.
        self.bucket_place = Place("bucket", self.bucket) if "existing" in bucket else self.own
        self.repository_project = registry.get("project", self.project)
        #: The repository's place: itself if it exists, else its project; `None` for a registry that is not Google's.
        self.repository = None if "url" in registry else Place("project", self.repository_project)
        if name := registry.get("existing"):
            self.repository, self.repository_project = Place("repository", name), name.split("/")[1]
        #: The keys by their path in the stack file.
        self.keys: dict[str, str] = {"kmsKey": self.cloud["kmsKey"]} if "kmsKey" in self.cloud else {}
        for part, values in (("registry", registry), ("bucket", bucket)):
            if key := values.get("kmsKey"):
                self.keys[f"{part}.kmsKey"] = str(key)
        self.cloud_build = self.cloud.get("builder", {}).get("cloudBuild")
        network = self.cloud.get("network", {})
        #: The keys below `network.peering` and `network.attachment`; empty without them.
        self.peering: Mapping[str, Any] = network.get("peering", {})
        self.attachment = network.get("attachment", {})
        self.interface = Interface(self.attachment, {self.project, self.number})
        #: E-mails of accounts that are there, and of those that the stack creates, with the keys that name others.
        self.existing_accounts: list[str] = []
        self.created_accounts: list[str] = []
        self.account_paths: list[str] = []
        self.account = self._account(identity, identity.get("account", ""), "identity.existing")
        self.builder = None
        if self.cloud_build is not None:
            own_builder = builder_account(settings.pulumi_project, settings.stack)
            path = "builder.cloudBuild.serviceAccount"
            self.builder = self._account({"existing": self.cloud_build.get("serviceAccount")}, own_builder, path)
        #: The accounts of schedules, if there are any.
        self.schedulers = {
            key: self._account(part, part.get("account", ""), f"scheduling.{key}.existing")
            for key, part in self.cloud["scheduling"].items()
            if key in ("scheduler", "workflow") and isinstance(part, dict) and settings.schedules
        }
        self.submitters = identity.get("submitters", [])

    def _account(self, part: Mapping[str, Any], account_id: str, path: str) -> str:
        """Return the e-mail of an account, and note it. An existing one is named at a `path` of the stack file."""
        email: str = part.get("existing") or account_email(account_id, self.project)
        if part.get("existing"):
            self.existing_accounts.append(email)
        else:
            self.created_accounts.append(email)
            self.account_paths.append(path)
        return email

    @property
    def subnetwork(self) -> Place | None:
        """The subnetwork of a network attachment that the stack creates, which may be of a Shared VPC."""
        name: str | None = self.attachment.get("subnetwork")
        if name is None:
            return None
        own = f"projects/{self.project}/regions/{self.region}/subnetworks/{name}"
        return Place("subnetwork", name[name.index("projects/") :] if "projects/" in name else own)

    @property
    def network_project(self) -> str | None:
        """The project of a network, a subnetwork or an attachment that exists outside the stack's project."""
        if self.peering:
            owner: str = self.peering["network"].split("/")[1]
            return None if owner in (self.project, self.number) else owner
        return self.interface.owner or self.interface.host

    @property
    def left_dns_projects(self) -> list[str]:
        """The other projects in which the stack leaves it to their owners that jobs may peer zones."""
        return [] if self.attachment.get("grant", True) else self.interface.dns

    @property
    def has_foreign_account(self) -> bool:
        """Whether jobs run as an account of another project."""
        return not is_own_account(self.account, self.project, self.number)

    @property
    def secrets(self) -> list[Place]:
        """The secrets of Secret Manager that the code of jobs reads, or builds."""
        names = dict.fromkeys([*self.cloud["identity"].get("secrets", []), *self.settings.build_secrets])
        return [Place("secret", name if "/" in name else f"projects/{self.project}/secrets/{name}") for name in names]

    @property
    def read_uris(self) -> dict[str, str]:
        """The `gs://` and `bq://` URIs that jobs read as their account, each with what has it.

        Not those that the stack grants.
        """
        uris = {each.uri: f"data.{each.name}" for each in self.settings.data.values() if not each.is_granted}
        for training, pool in self._pools():
            for uri in pool.get("pythonPackageSpec", {}).get("packageUris", ()):
                uris.setdefault(uri, training)
        return {uri: user for uri, user in uris.items() if uri.startswith((BUCKET, TABLE))}

    @property
    def read_images(self) -> list[str]:
        """The names of images that the stack does not build."""
        names = [image["uri"] for image in self.settings.images.values() if "uri" in image]
        names += filter(None, (image_name(pool) for _, pool in self._pools()))
        return [*dict.fromkeys(names)]

    @property
    def reservations(self) -> dict[str, str]:
        """The reservations that jobs name, each with one of these jobs."""
        found: dict[str, str] = {}
        for training, pool in self._pools():
            affinity = pool.get("machineSpec", {}).get("reservationAffinity", {})
            for value in affinity.get("values", ()):
                found.setdefault(value.partition("/reservationBlocks/")[0], training)
        return found

    def _pools(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield each worker pool with the name of its job, as far as its fields are known."""
        for training in self.settings.plan.trainings:
            if isinstance(training.spec, Job):
                yield from ((training.name, pool) for pool in training.spec.job_spec.get("workerPoolSpecs", ()) if pool)

    @property
    def looked_at(self) -> set[str]:
        """The names of what a check of its own says that it does not exist."""
        repository = self.repository.name if self.repository else ""
        return {self.bucket, repository, *self.keys.values(), *self.existing_accounts, *(s.name for s in self.secrets)}

    def permissions(self) -> dict[Place, dict[str, list[str]]]:
        """Return the permissions that the deployer needs, by place and by the role that has them."""
        needed: dict[Place, dict[str, list[str]]] = {}
        if self._secrets_key:
            needed[Place("key", self._secrets_key)] = {_SECRETS_ROLE: list(_SECRETS_PERMISSIONS)}
        for at, kind, place in dict.fromkeys(self.made()):
            for role in DEPLOYER:
                if role.at == at and kind in role.permissions:
                    permissions = needed.setdefault(place, {}).setdefault(role.role, [])
                    permissions += [each for each in role.permissions[kind].split() if each not in permissions]
        if self.subnetwork and self.interface.host:  # of a Shared VPC, which answers for itself
            needed[self.own]["roles/compute.networkAdmin"].remove(_SUBNETWORK_USE)
            needed[self.subnetwork] = {"roles/compute.networkUser": [_SUBNETWORK_USE]}
        return needed

    def made(self) -> Iterator[tuple[str, str, Place]]:
        """Yield what the stack makes: its type as `projects.Service`, where a grant for it counts, and in which way.

        The ways are those of `Role.at`. An account that the stack creates is a place, too.
        """
        for kind, place in self._resources():
            yield "resource", kind, place
        account = Place("account", self.account)
        kinds = {f"vertex-training.{job.kind.type}" for job in self.settings.jobs if not job.is_adopted}
        yield from (("account", kind, account) for kind in kinds)
        for image in self.settings.images.values():
            if is_built_here(image) and uses_cloud_build(self.cloud.get("builder"), image) and self.builder:
                image_kind = "vertex-training.TrainingImage"
                yield "builder", image_kind, self.own
                yield "sources", image_kind, self.bucket_place
                yield "account", image_kind, Place("account", self.builder)
                own: dict[str, Any] = {**(self.cloud_build or {}), **image.get("builder", {}).get("cloudBuild", {})}
                if "pool" in own:
                    yield "pool", image_kind, Place("project", own["pool"].split("/")[1])
        for key, email in self.schedulers.items():
            kind = "workflows.Workflow" if key == "workflow" else "cloudscheduler.Job"
            yield "account", kind, Place("account", email)

    def _resources(self) -> Iterator[tuple[str, Place]]:
        cloud, own = self.cloud, self.own
        identity, bucket = cloud["identity"], cloud["bucket"]
        kinds = ["projects.Service", "vertex-training.Ledger"]
        kinds += ["iam.WorkloadIdentityServiceAgent"] if identity.get("createAgents", True) else []
        if identity.get("agentRoles", True) or self.created_accounts:
            kinds.append("projects.IAMMember")
        if self.created_accounts:
            kinds.append("serviceaccount.Account")
            kinds += ["serviceaccount.IAMMember"] if self.submitters else []
        kinds += [] if "existing" in bucket else ["storage.Bucket"]
        kinds += ["vertex.AiPersistentResource"] if "persistentResource" in cloud else []
        kinds += ["vertex.AiTensorboard"] if "existing" not in cloud.get("tensorboard", {"existing": ""}) else []
        if "alerts" in cloud:
            kinds.append("monitoring.AlertPolicy")
            has_email = any("@" in each for each in cloud["alerts"]["channels"])
            kinds += ["monitoring.NotificationChannel"] if has_email else []
        if self.attachment and not self.interface.owner:
            kinds += ["projects.IAMCustomRole", "projects.IAMMember"]
        kinds += ["compute.NetworkAttachment"] if "subnetwork" in self.attachment else []
        kinds += self._of_jobs()
        yield from ((kind, own) for kind in kinds)
        if self.schedulers:
            training = own if self.account in self.created_accounts else Place("account", self.account)
            yield "serviceaccount.IAMMember", training
        yield "storage.BucketIAMMember", self.bucket_place
        for name in cloud["registry"].get("legacyBuckets", []):
            yield "storage.BucketIAMMember", Place("bucket", name)
        if self.settings.packages:
            yield "vertex-training.PythonPackage", self.bucket_place
        if self.repository:
            yield from self._of_repository(self.repository)
            if any(map(is_built_here, self.settings.images.values())):
                yield "vertex-training.TrainingImage", self.repository
        for path, key in self.keys.items():
            if path != "registry.kmsKey" or self.repository_project == self.project:
                yield "kms.CryptoKeyIAMMember", Place("key", key)
        yield from (("secretmanager.SecretIamMember", secret) for secret in self.secrets)
        if "prefixLength" in self.peering:
            host = Place("project", self.peering["network"].split("/")[1])
            yield "compute.GlobalAddress", host
            yield "servicenetworking.Connection", host
        for name in cloud["registry"].get("alsoRead", []):
            yield "artifactregistry.RepositoryIamMember", Place("repository", name)
        granted = self.settings.granted_data
        for other in sorted({uri.split("/")[2] for uri in granted if uri.startswith(BUCKET)}):
            yield "storage.BucketIAMMember", Place("bucket", other)
        for table in sorted(uri.removeprefix(TABLE) for uri in granted if uri.startswith(TABLE)):
            yield "bigquery.IamMember", Place("project", table.split(".")[0])
            yield "projects.IAMMember", own
        yield from self._of_network()
        if self.has_foreign_account:
            yield "serviceaccount.IAMMember", Place("account", self.account)

    def _of_network(self) -> Iterator[tuple[str, Place]]:
        if self.attachment.get("dnsPeering"):
            yield "projects.IAMMember", self.own
        if self.attachment.get("grant", True):
            others = [*self.interface.dns, *filter(None, [self.interface.host])]
            yield from (("projects.IAMMember", Place("project", other)) for other in others)

    def _of_jobs(self) -> Iterator[str]:
        jobs = self.settings.jobs
        yield from sorted({f"vertex-training.{job.kind.type}" for job in jobs})
        if any(job.lifecycle.get("wait") for job in jobs):
            yield "vertex-training.Completion"
        if self.schedulers:
            kinds = ("projects.ServiceIdentity", "workflows.Workflow", "cloudscheduler.Job", "projects.IAMMember")
            yield from (*kinds, "vertex-training.ScheduleStatus")
            if any(email in self.created_accounts for email in self.schedulers.values()):
                yield "projects.IAMCustomRole"

    def _of_repository(self, place: Place) -> Iterator[tuple[str, Place]]:
        yield "artifactregistry.RepositoryIamMember", place
        if place.kind == "project":
            yield "artifactregistry.Repository", place
            if "kmsKey" in self.cloud["registry"] and place == self.own:
                yield "projects.ServiceIdentity", self.own
