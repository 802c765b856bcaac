"""What all parts of a project share: components and their retries, enabled APIs, e-mails of accounts and agents."""

from __future__ import annotations  # loads the provider's types only if they are used

import asyncio
import itertools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

import pulumi
from pulumi import ResourceOptions
from pulumi_gcp import kms, projects, serviceaccount

from vertex_api.retry import NEW_GRANT, PROPAGATION_SECONDS, SUBNETWORK_ACCESS, find_propagation, pause_before

from ...data.listing import TABLE
from ...runtime import refusals
from ...schema import shapes

LOG_WRITER = "roles/logging.logWriter"
"""Of an account in its own project: without it what it runs has no logs."""
ACT_AS = "roles/iam.serviceAccountUser"
_KEY_USER = "roles/cloudkms.cryptoKeyEncrypterDecrypter"
_REPORT_SECONDS = 60.0
_hook_numbers = itertools.count(1)


class Component(pulumi.ComponentResource):
    """A component of this package. Its type token is `vertex-training:index:` with the name of its class.

    All resources below it that can have labels have `labels`.
    """

    def __init__(self, name: str, opts: ResourceOptions | None = None, labels: Mapping[str, str] | None = None) -> None:
        opts = ResourceOptions.merge(ResourceOptions(transformations=[labelling(labels or {})]), opts)
        super().__init__(f"vertex-training:index:{type(self).__name__}", name, None, opts)

    def retrying(self, *upstream: pulumi.Resource, protect: bool | None = None) -> ResourceOptions:
        """Return options of a child whose creation is tried again after a refusal that passes."""
        return retrying(self, *upstream, protect=protect)

    def advising(self, *upstream: pulumi.Resource) -> ResourceOptions:
        """Return options of a child of whose failure it is said what to do, and that is not tried again."""
        return ResourceOptions(parent=self, depends_on=upstream, hooks=_hooks(_advise))


def labelling(
    labels: Mapping[str, str],
) -> Callable[[pulumi.ResourceTransformationArgs], pulumi.ResourceTransformationResult | None]:
    """Return a transformation that gives `labels` to each resource that can have some; its own labels win."""

    def add(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
        key, own = "labels", labels
        if hasattr(type(args.resource), "user_labels"):
            # Keys begin with a letter (Monitoring's REST reference, AlertPolicy). A channel's `labels` are its address.
            key, own = "user_labels", {name: value for name, value in labels.items() if name[:1].isalpha()}
        if not own or not hasattr(type(args.resource), key):
            return None
        given: Any = args.props.get(key)
        return pulumi.ResourceTransformationResult({**args.props, key: {**own, **(given or {})}}, args.opts)

    return add


def retrying(parent: pulumi.Resource, *upstream: pulumi.Resource, protect: bool | None = None) -> ResourceOptions:
    """Return options of a resource whose creation is tried again after a refusal that passes.

    Google Cloud refuses some because something new is not known everywhere yet.
    """
    return ResourceOptions(parent=parent, depends_on=upstream, protect=protect, hooks=_hooks(_await_retry))


def _hooks(on_error: pulumi.ErrorHookFunction) -> pulumi.ResourceHookBinding:
    # Pulumi needs a name for each hook that is unique in the program.
    name = "until-known" if on_error is _await_retry else "advice"
    return pulumi.ResourceHookBinding(on_error=[pulumi.ErrorHook(f"{name}-{next(_hook_numbers)}", on_error)])


async def _await_retry(failure: pulumi.ErrorHookArgs) -> bool:
    """Return whether to try a failed creation again, after a pause. Says why at first, and then once a minute."""
    propagation = find_propagation(failure.errors[0])
    # Who creates an attachment uses the subnetwork itself, by a role that no stack grants.
    if propagation is None or (propagation is SUBNETWORK_ACCESS and failure.type.endswith(":NetworkAttachment")):
        return _advise(failure)
    pause = retry_pause(failure.errors)
    if pause is None:
        reason = f"{propagation.reason}, after {PROPAGATION_SECONDS:.0f} s"
        pulumi.log.warn(f"{failure.name}: {reason}; {propagation.remedy}")
        return False
    waited = _waited(len(failure.errors))
    if waited == 0 or waited // _REPORT_SECONDS < (waited + pause) // _REPORT_SECONDS:
        left = PROPAGATION_SECONDS - waited
        pulumi.log.info(f"{failure.name}: {propagation.reason}; trying again for up to {left:.0f} s")
    await asyncio.sleep(pause)
    return True


def _advise(failure: pulumi.ErrorHookArgs) -> bool:
    """Say what to do about a refusal that does not pass. Returns that it is not tried again."""
    module, _, kind = failure.type.removeprefix("gcp:").partition(":")
    advice = refusals.remedy(failure.errors[0], f"{module.partition('/')[0]}.{kind}")
    if kind == "WorkloadIdentityServiceAgent":
        # The API is young: Google, a policy or a perimeter may refuse it to whoever may do all the rest.
        without = "identity.createAgents: false does without this call (`vertex-training docs access`)"
        advice = f"{advice}; or {without}" if advice else without
    if advice:
        pulumi.log.warn(f"{failure.name}: {advice}")
    return False


def retry_pause(errors: Sequence[str]) -> float | None:
    """Return the seconds to wait after these errors of one resource, the newest first; `None` for no retry."""
    if find_propagation(errors[0]) is None:
        return None
    return pause_before(NEW_GRANT, len(errors), _waited(len(errors)), None, 0.0)


def _waited(tries: int) -> float:
    """Return the sum of the pauses between so many tries."""
    return sum(pause_before(NEW_GRANT, earlier, 0.0, None, 0.0) or 0.0 for earlier in range(1, tries))


REQUIRED_APIS = (
    "aiplatform",
    "artifactregistry",
    # The provider reads the project before it enables an API or grants a role (terraform-provider-google #6101,
    # #11435). docs/first-run.md has these two enabled by hand, once; here they are recorded with the others.
    "cloudresourcemanager",
    "serviceusage",
    "iam",
    "logging",
    "storage",
    "workloadidentity",
)
"""The APIs that every stack needs: for jobs, images, grants, service accounts, logs, outputs and service agents."""


def required_apis(cloud: shapes.Cloud, granted: Iterable[str] = ()) -> set[str]:
    """Return the short names of the APIs that a stack needs that grants the data at the URIs `granted`."""
    apis = set(REQUIRED_APIS)
    if not cloud["identity"].get("createAgents", True):
        apis.remove("workloadidentity")
    if any(uri.startswith(TABLE) for uri in granted):
        apis |= {"bigquery", "bigquerystorage"}
    if network := cloud.get("network", {}):
        apis.add("compute")
    if "prefixLength" in network.get("peering", {}):
        apis.add("servicenetworking")
    if network.get("attachment", {}).get("dnsPeering"):
        apis.add("dns")
    if "alerts" in cloud:
        apis.add("monitoring")
    cloud_build = cloud.get("builder", {}).get("cloudBuild")
    if cloud_build is not None:
        apis.add("cloudbuild")
    if cloud["identity"].get("secrets") or (cloud_build or {}).get("secrets"):
        apis.add("secretmanager")
    if any("kmsKey" in part for part in (cloud, cloud["registry"], cloud["bucket"])):
        apis.add("cloudkms")
    return apis


class ServicesArgs(TypedDict):
    """`apis` are short names: `aiplatform` is `aiplatform.googleapis.com`."""

    project: str
    apis: Collection[str]


class Services(Component):
    """Enabled APIs of a project. Destroying the stack leaves them enabled: other parts may need them."""

    def __init__(self, name: str, args: ServicesArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        self.enabled = [
            projects.Service(
                f"{name}-{api}",
                project=args["project"],
                service=f"{api}.googleapis.com",
                disable_on_destroy=False,
                # Not retried: it needs two APIs that somebody has enabled by hand, long ago.
                opts=self.advising(),
            )
            for api in sorted(args["apis"])
        ]
        self.register_outputs({})


@dataclass(frozen=True)
class ServiceAgents:
    """The service agents with which Google's services act in the project with this number, as IAM members.

    They depend on the number alone (Google's page on Vertex AI service agents), so a preview shows every grant.
    """

    project_number: str

    @property
    def vertex(self) -> str:
        """The Vertex AI Service Agent, which manages jobs, uses keys and peers DNS zones."""
        return self._member("gcp-sa-aiplatform")

    @property
    def custom_code(self) -> str:
        """The Custom Code Service Agent, which pulls training images and runs jobs without an account of their own."""
        return self._member("gcp-sa-aiplatform-cc")

    @property
    def legacy(self) -> str:
        """The agent of AI Platform Training, which still reads older images in Container Registry."""
        return f"serviceAccount:service-{self.project_number}@cloud-ml.google.com.iam.gserviceaccount.com"

    @property
    def artifact_registry(self) -> str:
        """The agent of Artifact Registry, which encrypts repositories."""
        return self._member("gcp-sa-artifactregistry")

    @property
    def storage(self) -> str:
        """The agent of Cloud Storage, which encrypts buckets."""
        return self._member("gs-project-accounts")

    @property
    def workflows(self) -> str:
        """The agent of Workflows, which runs workflows as their accounts."""
        return self._member("gcp-sa-workflows")

    @property
    def image_readers(self) -> dict[str, str]:
        """Both agents that need to read training images, by a short name (vertex-ai-samples#2176)."""
        return {"vertex": self.vertex, "custom-code": self.custom_code}

    def _member(self, domain: str) -> str:
        return f"serviceAccount:service-{self.project_number}@{domain}.iam.gserviceaccount.com"


def account_email(account_id: str, project: str) -> str:
    """Return the e-mail of a project's account. Of a domain's project `d:p` it has `p.d` (IAM's page on accounts)."""
    domain, _, name = project.rpartition(":")
    return f"{account_id}@{f'{name}.{domain}' if domain else name}.iam.gserviceaccount.com"


def account_project(email: str) -> str:
    """Return the id of the project that an account is in; of a default account but App Engine's, its number."""
    name, _, domain = email.partition("@")
    own, iam, _ = domain.partition(".iam.gserviceaccount.com")
    if not iam and not domain.startswith("appspot."):
        return name.partition("-")[0]
    part, _, owner = (own if iam else name).partition(".")
    return f"{owner}:{part}" if owner else part


def is_own_account(email: str, project: str, project_number: str) -> bool:
    """Whether an account belongs to a project: one of its own, or the default one of a service."""
    return account_project(email) in (project, project_number)


def grant_key(name: str, key: str, member: pulumi.Input[str], opts: ResourceOptions) -> kms.CryptoKeyIAMMember:
    """Grant a service agent the right to encrypt and decrypt with a customer-managed key of Cloud KMS."""
    return kms.CryptoKeyIAMMember(name, crypto_key_id=key, role=_KEY_USER, member=member, opts=opts)


def grant_act_as(name: str, email: str, members: Sequence[str], project: str, opts: ResourceOptions) -> None:
    """Let IAM members submit what runs as an account of a project."""
    for member in members:
        serviceaccount.IAMMember(
            f"{name}-{member}",
            service_account_id=f"projects/{project}/serviceAccounts/{email}",
            role=ACT_AS,
            member=member,
            opts=opts,
        )
