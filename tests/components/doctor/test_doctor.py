"""`vertex-training doctor` against a stand-in for a project: what it says of one fault, and that it changes nothing."""

import contextlib
import copy
import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml
from google.auth.exceptions import DefaultCredentialsError, RefreshError
from google.oauth2.credentials import Credentials
from vertex_training import cli
from vertex_training.doctor import cloud, command, machine
from vertex_training.doctor.checks import allows
from vertex_training.doctor.findings import CHECKS, PAGE, POWERS, RULES, UNNAMED, Place
from vertex_training.runtime.refusals import DEPLOYER
from vertex_training.settings.offline import read_stack

from tests.blocks import taken
from tests.components.projects import write
from tests.standins import remedies
from tests.standins.google_project import GoogleProject, answer_in_memory, google_project
from tests.vertex_emulator.running import PATIENCE_SECONDS
from vertex_api import credentials

ROOT = Path(__file__).parents[3]
KEY = "projects/acme-dev/locations/europe-west4/keyRings/ring/cryptoKeys/data"
OTHER_KEY = KEY.replace("data", "other")
REPOSITORY = "projects/acme-dev/locations/europe-west4/repositories/images"
NETWORK = "projects/777777/global/networks/vpc"
ATTACHMENT = "projects/host-project/regions/europe-west4/networkAttachments/jobs"
SUBNETWORK = "projects/acme-dev/regions/europe-west4/subnetworks/jobs"
BOARD = "projects/acme-dev/locations/europe-west4/tensorboards/55"
CHANNEL = "projects/acme-dev/notificationChannels/7"
ACCOUNT, OTHER_ACCOUNT = "train@acme-dev.iam.gserviceaccount.com", "train@other-project.iam.gserviceaccount.com"
AGENT = "serviceAccount:service-123456789012@gcp-sa-aiplatform.iam.gserviceaccount.com"
SECRET = "projects/acme-dev/secrets/hf-token"
PLAIN: dict[str, Any] = {
    "target": "gcp",
    "project": "acme-dev",
    "projectNumber": "123456789012",
    "region": "europe-west4",
    "include": ["jobs.yaml"],
}
EXISTING: dict[str, Any] = {
    "kmsKey": KEY,
    "registry": {"existing": REPOSITORY},
    "bucket": {"existing": "theirs", "location": "europe-west4"},
    "identity": {"existing": ACCOUNT, "secrets": ["hf-token"]},
    "network": {"peering": {"network": NETWORK, "reservedIpRanges": ["google"]}},
    "tensorboard": {"existing": BOARD},
    "alerts": {"channels": [CHANNEL]},
}
CODE_AGENT = AGENT.replace("aiplatform", "aiplatform-cc")
ITS_AGENT = "serviceAccount:service-999999@gcp-sa-artifactregistry.iam.gserviceaccount.com"
IMAGES = "projects/images-project/locations/us/repositories/shared"
TABLE = "projects/acme/datasets/sales/tables/orders"
DATA: dict[str, Any] = {"data": {"train": {"uri": "gs://acme/train/*"}, "orders": {"uri": "bq://acme.sales.orders"}}}
GRANTED: dict[str, Any] = {
    "data": {name: {**each, "grant": True} for name, each in DATA["data"].items()},
    "registry": {"alsoRead": [IMAGES]},
    "images": {"theirs": {"uri": "us-docker.pkg.dev/images-project/shared/train:1"}},
    "network": {"attachment": {"subnetwork": "projects/host-project/regions/europe-west4/subnetworks/jobs"}},
}
RESERVATION = "projects/acme-dev/zones/europe-west4-b/reservations/h200"
RESERVED: dict[str, Any] = {
    "customJobs": {
        "reserved": {
            "jobSpec": {
                "workerPoolSpecs": [
                    {
                        "machineSpec": {
                            "machineType": "n1-standard-8",
                            "reservationAffinity": {
                                "reservationAffinityType": "SPECIFIC_RESERVATION",
                                "key": "compute.googleapis.com/reservation-name",
                                "values": [RESERVATION],
                            },
                        },
                        "containerSpec": {"imageUri": "europe-west4-docker.pkg.dev/acme-dev/images/train:1"},
                    }
                ]
            }
        }
    }
}
HOSTED = "projects/host-project/regions/europe-west4/subnetworks/jobs"
SHARED: dict[str, Any] = {"network": {"attachment": {"subnetwork": HOSTED, "grant": False}}}
OWN: dict[str, list[tuple[str, str]]] = {
    "projects/acme-dev": [
        ("roles/logging.logWriter", f"serviceAccount:{ACCOUNT}"),
        ("roles/bigquery.jobUser", f"serviceAccount:{ACCOUNT}"),
    ]
}
ZONE = {"domain": "corp.", "targetProject": "dns-project", "targetNetwork": "n"}
PEERED = {"network": {"peering": {"network": NETWORK, "prefixLength": 16, "name": "jobs"}}}
ATTACHED = {"network": {"attachment": {"existing": ATTACHMENT}}}
JOBS = """\
customJobs:
  train:
    jobSpec:
      workerPoolSpecs:
        - machineSpec: {machineType: n1-standard-8}
          containerSpec: {imageUri: "europe-west4-docker.pkg.dev/acme-dev/images/train:1"}
"""


def healthy() -> GoogleProject:
    """A project in which nothing stands in the way of PLAIN and of EXISTING, and all else that the tests name."""
    numbers = {"acme-dev": "123456789012", "images-project": "999999", "777777": "777777"}
    there: dict[str, Any] = {
        f"cloudresourcemanager/projects/{name}": {"projectNumber": number, "lifecycleState": "ACTIVE"}
        for name, number in numbers.items()
    }
    there |= {
        "openidconnect/userinfo": {"email": "ann@example.com"},
        "cloudbilling/projects/acme-dev/billingInfo": {"billingEnabled": True},
        "storage/b/theirs": {
            "location": "EUROPE-WEST4",
            "projectNumber": "123456789012",
            "iamConfiguration": {"uniformBucketLevelAccess": {"enabled": True}},
        },
        f"artifactregistry/{REPOSITORY}": {"format": "DOCKER"},
        **{
            f"cloudkms/{key}": {
                "purpose": "ENCRYPT_DECRYPT",
                "primary": {"name": f"{key}/cryptoKeyVersions/3", "state": "ENABLED"},
            }
            for key in (KEY, OTHER_KEY)
        },
        f"secretmanager/{SECRET}": {},
        f"compute/{NETWORK}": {},
        f"compute/{ATTACHMENT}": {},
        f"compute/{SUBNETWORK}": {},
        f"compute/{SUBNETWORK.replace('acme-dev', 'host-project')}": {},
        f"compute/{RESERVATION}": {"reservationSharingPolicy": {"serviceShareType": "ALLOW_ALL"}},
        "storage/b/acme": {"projectNumber": "555"},
        "bigquery/projects/acme/datasets/sales": {"access": [{"role": "OWNER", "specialGroup": "projectOwners"}]},
        "servicenetworking/services/servicenetworking.googleapis.com/connections": {
            "connections": [{"reservedPeeringRanges": ["google"]}]
        },
        f"aiplatform/{BOARD}": {},
        f"monitoring/{CHANNEL}": {},
        f"iam/projects/-/serviceAccounts/{ACCOUNT}": {"email": ACCOUNT},
        f"iam/projects/-/serviceAccounts/{OTHER_ACCOUNT}": {"email": OTHER_ACCOUNT},
    }
    roles = ["roles/logging.logWriter", "roles/aiplatform.serviceAgent", "roles/compute.networkAdmin"]
    own, agent, host = zip(roles, [f"serviceAccount:{ACCOUNT}", AGENT, AGENT], strict=True)
    return GoogleProject(resources=there, grants={"projects/acme-dev": [own, agent], "projects/host-project": [host]})


@dataclass
class Fault:
    """One thing that is wrong in a healthy project with this stack: the rule that says so, and the remedy."""

    rule: str
    remedy: str
    stack: dict[str, Any] = field(default_factory=dict)
    resources: dict[str, Any] = field(default_factory=dict)
    """Answers in place of the healthy ones; 404 for what does not exist."""
    project: dict[str, Any] = field(default_factory=dict)
    """Fields of the project in place of the healthy ones."""
    variables: dict[str, str] = field(default_factory=dict)
    besides: str | None = None
    """What the remedy does besides, in place of the rule's text."""

    @property
    def role(self) -> str:
        """The role that the remedy grants, if it grants one to the deployer."""
        return self.remedy.partition("--role=")[2].partition(" ")[0] if self.rule == "role-missing" else ""


def policy(constraint: str, **values: Any) -> dict[str, Any]:
    kind = "booleanPolicy" if "enforced" in values else "listPolicy"
    return {"policies": {constraint: {kind: values}}}


def grant(role: str, member: str = "user:ann@example.com", project: str = "acme-dev") -> str:
    return f"gcloud projects add-iam-policy-binding {project} --member={member} --role={role} --condition=None"


SET = "pulumi config set --stack dev"
CONNECTIONS = "servicenetworking/services/servicenetworking.googleapis.com/connections"
POLICIES = "gcloud resource-manager org-policies"
RING = "--keyring=ring --location=europe-west4 --project=acme-dev"
NEW_KEY = "projects/acme-dev/locations/europe-west4/keyRings/RING/cryptoKeys/KEY"
OTHERS_KEY = {"registry": {"project": "images-project", "kmsKey": KEY}}
FAULTS = [
    Fault("pulumi-missing", 'sh -c "$(curl -fsSL https://get.pulumi.com)"', variables={"PATH": "/nowhere"}),
    Fault(
        "plugin-missing",
        f"pulumi plugin install resource gcp {version('pulumi-gcp')}",
        variables={"PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true", "PULUMI_HOME": "/nowhere"},
    ),
    Fault(
        "docker-missing",
        "sudo systemctl start docker",
        {"images": {"built": {"context": "trainer"}}},
        variables={"DOCKER_HOST": "tcp://127.0.0.1:9"},
    ),
    Fault(
        "token-refused",
        'export GOOGLE_OAUTH_ACCESS_TOKEN="$(gcloud auth print-access-token)"',
        resources={"cloudresourcemanager/projects/acme-dev": 401},
    ),
    Fault("project-missing", grant("roles/browser"), resources={"cloudresourcemanager/projects/acme-dev": 403}),
    Fault(
        "project-deleted",
        "gcloud projects undelete acme-dev",
        resources={
            "cloudresourcemanager/projects/acme-dev": {"projectNumber": "1", "lifecycleState": "DELETE_REQUESTED"}
        },
    ),
    Fault("project-number", f"{SET} vertex-training:projectNumber 123456789012", {"projectNumber": "999999999999"}),
    Fault(
        "api-off",
        "gcloud services enable cloudresourcemanager.googleapis.com serviceusage.googleapis.com --project=acme-dev",
        project={"disabled": {"cloudresourcemanager"}},
    ),
    Fault(
        "api-off",
        "gcloud services enable cloudresourcemanager.googleapis.com serviceusage.googleapis.com --project=acme-dev",
        project={"off": {"projects/acme-dev/services/serviceusage.googleapis.com"}},
    ),
    Fault(
        "network-api-off",
        "gcloud services enable servicenetworking.googleapis.com --project=777777",
        PEERED,
        {CONNECTIONS: {}},
        {"off": {"projects/777777/services/servicenetworking.googleapis.com"}},
    ),
    Fault(
        "billing-off",
        "gcloud billing projects link acme-dev --billing-account=BILLING_ACCOUNT",
        resources={"cloudbilling/projects/acme-dev/billingInfo": {"billingEnabled": False}},
    ),
    Fault(
        "role-missing",
        grant("roles/workloadidentity.admin"),
        project={"lacking": {"workloadidentity.serviceAgents.create"}},
    ),
    Fault(
        "role-missing",
        grant("roles/compute.networkAdmin", project="777777"),
        PEERED,
        {CONNECTIONS: {}},
        {"lacking": {"compute.networks.use"}},
    ),
    Fault(
        "role-missing",
        "gcloud storage buckets add-iam-policy-binding gs://theirs --member=user:ann@example.com "
        "--role=roles/storage.admin",
        EXISTING,
        project={"lacking": {"storage.buckets.setIamPolicy"}},
    ),
    Fault(
        "role-missing",
        "gcloud artifacts repositories add-iam-policy-binding images --location=europe-west4 --project=acme-dev "
        "--member=user:ann@example.com --role=roles/artifactregistry.admin",
        EXISTING,
        project={"lacking": {"artifactregistry.repositories.setIamPolicy"}},
    ),
    Fault(
        "role-missing",
        "gcloud kms keys add-iam-policy-binding data --keyring=ring --location=europe-west4 --project=acme-dev "
        "--member=user:ann@example.com --role=roles/cloudkms.admin",
        EXISTING,
        project={"lacking": {"cloudkms.cryptoKeys.setIamPolicy"}},
    ),
    Fault(
        "role-missing",
        "gcloud secrets add-iam-policy-binding hf-token --project=acme-dev --member=user:ann@example.com "
        "--role=roles/secretmanager.admin",
        EXISTING,
        project={"lacking": {"secretmanager.secrets.setIamPolicy"}},
    ),
    Fault(
        "role-missing",
        f"gcloud iam service-accounts add-iam-policy-binding {ACCOUNT} --member=user:ann@example.com "
        "--role=roles/iam.serviceAccountUser",
        EXISTING,
        project={"lacking": {"iam.serviceAccounts.actAs"}},
    ),
    Fault(
        "submitter-missing",
        f"{SET} --path 'vertex-training:identity.submitters[1]' user:ann@example.com",
        {"identity": {"submitters": ["user:bob@example.com"]}},
        project={"lacking": {"iam.serviceAccounts.actAs"}},
    ),
    Fault(
        "agent-role",
        grant("roles/aiplatform.serviceAgent", AGENT),
        {"identity": {"agentRoles": False}},
        project={"grants": {}},
    ),
    Fault(
        "account-role", grant("roles/logging.logWriter", f"serviceAccount:{ACCOUNT}"), EXISTING, project={"grants": {}}
    ),
    Fault(
        "attachment-grant",
        grant("roles/compute.networkAdmin", AGENT, "host-project"),
        ATTACHED,
        project={"grants": {}},
    ),
    Fault(
        "registry-key-grant",
        "gcloud kms keys add-iam-policy-binding data --keyring=ring --location=europe-west4 --project=acme-dev "
        "--member=serviceAccount:service-999999@gcp-sa-artifactregistry.iam.gserviceaccount.com "
        "--role=roles/cloudkms.cryptoKeyEncrypterDecrypter",
        OTHERS_KEY,
    ),
    Fault(
        "account-missing",
        "gcloud iam service-accounts create train --project=acme-dev",
        EXISTING,
        {f"iam/projects/-/serviceAccounts/{ACCOUNT}": 404},
    ),
    Fault(
        "account-disabled",
        f"gcloud iam service-accounts enable {ACCOUNT} --project=acme-dev",
        EXISTING,
        {f"iam/projects/-/serviceAccounts/{ACCOUNT}": {"disabled": True}},
    ),
    Fault(
        "bucket-missing",
        "gcloud storage buckets create gs://theirs --location=europe-west4 --uniform-bucket-level-access "
        "--project=acme-dev",
        EXISTING,
        {"storage/b/theirs": 404},
    ),
    Fault(
        "bucket-region",
        "gcloud storage buckets create gs://theirs-europe-west4 --location=europe-west4 --uniform-bucket-level-access "
        f"--project=acme-dev && {SET} --path vertex-training:bucket.existing theirs-europe-west4",
        EXISTING,
        {"storage/b/theirs": {"location": "US", "iamConfiguration": {"uniformBucketLevelAccess": {"enabled": True}}}},
    ),
    Fault(
        "bucket-uniform",
        f"{SET} --path 'vertex-training:bucket.writableFolders[0]' /",
        EXISTING,
        {"storage/b/theirs": {"location": "EUROPE-WEST4"}},
    ),
    Fault(
        "bucket-taken",
        f"{SET} --path vertex-training:bucket.name acme-dev-team-dev-123456789012",
        resources={"storage/b/acme-dev-team-dev": {"location": "US", "projectNumber": "1"}},
    ),
    Fault(
        "registry-missing",
        "gcloud artifacts repositories create images --repository-format=docker --location=europe-west4 "
        "--project=acme-dev",
        EXISTING,
        {f"artifactregistry/{REPOSITORY}": 404},
    ),
    Fault(
        "registry-format",
        "gcloud artifacts repositories create images-docker --repository-format=docker --location=europe-west4 "
        f"--project=acme-dev && {SET} --path vertex-training:registry.existing {REPOSITORY}-docker",
        EXISTING,
        {f"artifactregistry/{REPOSITORY}": {"format": "MAVEN"}},
    ),
    Fault("key-missing", f"gcloud kms keys list {RING}", EXISTING, {f"cloudkms/{KEY}": 404}),
    Fault(
        "key-purpose",
        f"{SET} --path vertex-training:kmsKey {NEW_KEY}",
        EXISTING,
        {f"cloudkms/{KEY}": {"purpose": "ASYMMETRIC_SIGN"}},
    ),
    Fault(
        "key-disabled",
        "gcloud kms keys versions enable 3 --key=data --keyring=ring --location=europe-west4 --project=acme-dev",
        EXISTING,
        {
            f"cloudkms/{KEY}": {
                "purpose": "ENCRYPT_DECRYPT",
                "primary": {"name": f"{KEY}/cryptoKeyVersions/3", "state": "DISABLED"},
            }
        },
    ),
    Fault(
        "key-disabled",
        f"gcloud kms keys versions restore 3 --key=data {RING} && gcloud kms keys versions enable 3 --key=data {RING}",
        EXISTING,
        {
            f"cloudkms/{KEY}": {
                "purpose": "ENCRYPT_DECRYPT",
                "primary": {"name": f"{KEY}/cryptoKeyVersions/3", "state": "DESTROY_SCHEDULED"},
            }
        },
    ),
    Fault(
        "secret-missing",
        "gcloud secrets create hf-token --replication-policy=automatic --project=acme-dev",
        EXISTING,
        {f"secretmanager/{SECRET}": 404},
    ),
    Fault(
        "network-missing",
        "gcloud compute networks create vpc --subnet-mode=custom --project=777777",
        EXISTING,
        {f"compute/{NETWORK}": 404},
    ),
    Fault(
        "connection-missing",
        f"{SET} --path vertex-training:network.peering.prefixLength 16",
        EXISTING,
        {CONNECTIONS: {}},
    ),
    Fault("connection-ranges", f"{SET} --path 'vertex-training:network.peering.reservedIpRanges[0]' google", PEERED),
    Fault(
        "range-missing",
        "gcloud services vpc-peerings update --service=servicenetworking.googleapis.com --network=vpc "
        "--ranges=elsewhere,google --project=777777",
        EXISTING,
        {CONNECTIONS: {"connections": [{"reservedPeeringRanges": ["elsewhere"]}]}},
    ),
    Fault(
        "attachment-missing",
        "gcloud compute network-attachments create jobs --region=europe-west4 --subnets=SUBNETWORK "
        "--connection-preference=ACCEPT_MANUAL --project=host-project",
        ATTACHED,
        {f"compute/{ATTACHMENT}": 404},
    ),
    Fault(
        "subnetwork-missing",
        "gcloud compute networks subnets create jobs --region=europe-west4 --network=NETWORK --range=RANGE "
        "--project=acme-dev",
        {"network": {"attachment": {"subnetwork": "jobs"}}},
        {f"compute/{SUBNETWORK}": 404},
    ),
    Fault(
        "tensorboard-missing",
        "pulumi config rm --stack dev --path vertex-training:tensorboard.existing",
        EXISTING,
        {f"aiplatform/{BOARD}": 404},
    ),
    Fault(
        "channel-missing",
        "gcloud beta monitoring channels list --project=acme-dev",
        EXISTING,
        {f"monitoring/{CHANNEL}": 404},
    ),
    Fault(
        "quota-short",
        "gcloud beta quotas preferences create --service=aiplatform.googleapis.com "
        "--quota-id=CustomModelTrainingCPUsPerProjectPerRegion --preferred-value=8 --dimensions=region=europe-west4 "
        "--email=ann@example.com --project=acme-dev",
        project={"quotas": {"cpus": 4}},
    ),
    Fault(
        "location-refused",
        f"{POLICIES} describe gcp.resourceLocations --effective --project=acme-dev",
        project=policy("gcp.resourceLocations", allowedValues=["in:us-locations", "europe-west1"]),
    ),
    Fault(
        "service-refused",
        f"{POLICIES} describe gcp.restrictServiceUsage --effective --project=acme-dev",
        project=policy("gcp.restrictServiceUsage", deniedValues=["is:aiplatform.googleapis.com"]),
    ),
    Fault(
        "service-refused",
        f"{POLICIES} describe gcp.restrictServiceUsage --effective --project=acme-dev",
        project=policy(
            "gcp.restrictServiceUsage", allowedValues=["aiplatform.googleapis.com", "artifactregistry.googleapis.com"]
        ),
    ),
    Fault(
        "accounts-refused",
        f"{SET} --path vertex-training:identity.existing ACCOUNT",
        project=policy("iam.disableServiceAccountCreation", enforced=True),
    ),
    Fault(
        "account-elsewhere",
        "pulumi config rm --stack dev --path vertex-training:identity.existing",
        {"identity": {"existing": OTHER_ACCOUNT}},
        project=policy("iam.disableCrossProjectServiceAccountUsage", enforced=True),
    ),
    Fault(
        "key-required",
        f"{SET} --path vertex-training:kmsKey projects/acme-dev/locations/europe-west4/keyRings/RING/cryptoKeys/KEY",
        project=policy("gcp.restrictNonCmekServices", deniedValues=["aiplatform.googleapis.com"]),
    ),
    Fault(
        "key-refused",
        f"{POLICIES} describe gcp.restrictCmekCryptoKeyProjects --effective --project=acme-dev",
        EXISTING,
        project=policy("gcp.restrictCmekCryptoKeyProjects", allowedValues=["under:projects/keys"]),
    ),
    Fault(
        "members-refused",
        f"{POLICIES} describe iam.allowedPolicyMemberDomains --effective --project=acme-dev",
        {"identity": {"submitters": ["user:ann@example.com", "user:eve@else.org"]}},
        project=policy("iam.allowedPolicyMemberDomains", allowedValues=["C01abcdef"]),
    ),
    Fault(
        "bucket-hidden",
        f"{SET} --path vertex-training:bucket.name acme-dev-team-dev-123456789012",
        resources={"storage/b/acme-dev-team-dev": 403},
    ),
    Fault(
        "subnetwork-grant",
        "gcloud compute networks subnets add-iam-policy-binding jobs --region=europe-west4 --project=host-project "
        f"--member={AGENT} --role=roles/compute.networkUser",
        SHARED,
        project={"grants": {}},
    ),
    Fault(
        "dns-grant",
        grant("roles/dns.peer", AGENT, "dns-project"),
        {"network": {"attachment": {"subnetwork": "jobs", "dnsPeering": [ZONE], "grant": False}}},
    ),
    Fault(
        "reservation-missing",
        "gcloud compute reservations list --project=acme-dev",
        RESERVED,
        {f"compute/{RESERVATION}": 404},
    ),
    Fault(
        "reservation-unshared",
        "gcloud compute reservations update h200 --zone=europe-west4-b --reservation-sharing-policy=ALLOW_ALL "
        "--project=acme-dev",
        RESERVED,
        {f"compute/{RESERVATION}": {"reservationSharingPolicy": {"serviceShareType": "DISALLOW_ALL"}}},
    ),
    Fault(
        "data-unreadable",
        f"gcloud storage buckets add-iam-policy-binding gs://acme --member=serviceAccount:{ACCOUNT} "
        "--role=roles/storage.objectViewer",
        {**DATA, **EXISTING},
        project={"grants": OWN | {f"{TABLE}": [("roles/bigquery.dataViewer", f"serviceAccount:{ACCOUNT}")]}},
    ),
    Fault(
        "table-unreadable",
        f"bq add-iam-policy-binding --member=serviceAccount:{ACCOUNT} --role=roles/bigquery.dataViewer --table=true "
        "acme:sales.orders",
        {**DATA, **EXISTING},
        project={"grants": OWN | {"b/acme": [("roles/storage.objectViewer", f"serviceAccount:{ACCOUNT}")]}},
    ),
    Fault(
        "queries-refused",
        grant("roles/bigquery.jobUser", f"serviceAccount:{ACCOUNT}"),
        {**DATA, **EXISTING},
        project={
            "grants": {
                "projects/acme-dev": [("roles/logging.logWriter", f"serviceAccount:{ACCOUNT}")],
                "projects/acme": [("roles/viewer", f"serviceAccount:{ACCOUNT}")],
                "projects/555": [("roles/viewer", f"serviceAccount:{ACCOUNT}")],
            }
        },
    ),
    Fault(
        "image-unreadable",
        " && ".join(
            "gcloud artifacts repositories add-iam-policy-binding shared --location=us --project=images-project "
            f"--member={member} --role=roles/artifactregistry.reader"
            for member in (AGENT, CODE_AGENT)
        ),
        {"images": {"theirs": {"uri": "us-docker.pkg.dev/images-project/shared/train:1"}}},
    ),
]
UNSEEN = "project-unknown"
"""What is said of the cloud where nobody is signed in."""
SECONDS = command.SECONDS
OF_CREDENTIALS = {rule for rule, about in RULES.items() if about.check == "credentials"} - {"token-refused"}


@pytest.fixture
def project(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GoogleProject]:
    """A healthy project behind the endpoints of this process, whose folder is that of a Pulumi project."""
    pulumi = tmp_path_factory.mktemp("programs") / "pulumi"
    pulumi.touch(0o755)
    monkeypatch.setenv("PATH", str(pulumi.parent))
    monkeypatch.delenv("PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION", raising=False)
    with google_project(healthy()) as served:
        answer_in_memory(served, monkeypatch)  # test_healthy.py: over HTTP
        for name, address in served.variables.items():
            monkeypatch.setenv(name, address)
        monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", "token")
        monkeypatch.chdir(tmp_path)
        # A busy machine takes longer than a person waits.
        for module, name in ((command, "SECONDS"), (cloud, "CALL_SECONDS"), (machine, "_DOCKER_SECONDS")):
            monkeypatch.setattr(module, name, PATIENCE_SECONDS)
        yield served
    credentials.use_config({})


def prepare(folder: Path, stack: dict[str, Any], **config: Any) -> None:
    """Write a project with a stack `dev`."""
    keys = {f"vertex-training:{key}": value for key, value in {**PLAIN, **stack}.items()}
    write(
        folder,
        {
            "Pulumi.yaml": "name: team\nruntime: python\nstackConfigDir: stacks\n",
            "stacks/Pulumi.dev.yaml": yaml.safe_dump({"config": {**keys, **config}}),
            "stacks/Pulumi.local.yaml": "config: {vertex-training:target: local}\n",
            "jobs.yaml": JOBS,
            "trainer/Dockerfile": "FROM scratch\n",
        },
    )


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[str]]:
    """The exit code and the lines of the command."""
    code = cli.main(["doctor", *arguments])
    return code, capsys.readouterr().out.splitlines()


def findings(capsys: pytest.CaptureFixture[str]) -> dict[str, tuple[str, str]]:
    """Message and remedy by id."""
    cli.main(["doctor", "--stack", "dev", "--json"])
    found = json.loads(capsys.readouterr().out)["findings"]
    assert len({each["id"] for each in found}) == len(found)
    return {each["id"]: (each["message"], each["remedy"]) for each in found}


def changes(project: GoogleProject) -> list[tuple[str, str]]:
    """Requests that could change something: all but a GET and the POSTs that Google's references call reads."""
    reads = (":testIamPermissions", "/testIamPermissions", ":getIamPolicy", ":getEffectiveOrgPolicy", ":getAncestry")
    return [
        each for each in project.requests if each[0] != "GET" and not (each[0] == "POST" and each[1].endswith(reads))
    ]


@pytest.mark.parametrize(
    "stack",
    [{}, EXISTING, ATTACHED, OTHERS_KEY, {**DATA, **EXISTING}, RESERVED, GRANTED],
    ids=["plain", "existing", "attached", "key", "data", "reserved", "granted"],
)
def test_a_healthy_project_is_one_line(
    project: GoogleProject, tmp_path: Path, capsys: pytest.CaptureFixture[str], stack: dict[str, Any]
) -> None:
    project.grants[KEY] = [("roles/cloudkms.cryptoKeyEncrypterDecrypter", ITS_AGENT)]
    reader = f"serviceAccount:{ACCOUNT}"
    project.grants |= {
        "b/acme": [("roles/storage.objectViewer", reader)],
        TABLE: [("roles/bigquery.dataViewer", reader)],
    }
    project.grants["projects/acme-dev"].append(("roles/bigquery.jobUser", reader))
    prepare(tmp_path, stack)
    code, lines = run(capsys, "--stack", "dev")
    assert code == 0
    count = len(project.requests)
    assert lines == [
        "stack dev, project acme-dev, as user:ann@example.com: nothing stands in the way of `pulumi up` "
        f"({count} look-ups)"
    ]
    assert changes(project) == []


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.rule)
def test_one_fault_is_told_with_its_remedy(
    project: GoogleProject,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    fault: Fault,
) -> None:
    project.resources |= fault.resources
    for name, value in fault.project.items():
        setattr(project, name, value)
    for name, text in fault.variables.items():
        monkeypatch.setenv(name, text)
    prepare(tmp_path, fault.stack)
    code, lines = run(capsys)
    kind = RULES[fault.rule].level
    pattern = re.sub(r"\\\{\w+\\\}", ".+", re.escape(RULES[fault.rule].message))
    besides = POWERS.get(fault.role, RULES[fault.rule].besides) if fault.besides is None else fault.besides
    assert len(lines) == 3 + bool(besides), lines
    assert re.fullmatch(f"{kind}: {CHECKS[RULES[fault.rule].check].title}: {pattern}", lines[1])
    assert lines[2:] == [f"  {fault.remedy}", *([f"  # {besides}"] if besides else [])]
    assert code == {"problem": 1, "cannot tell": 2, "note": 0}[kind]
    assert changes(project) == []


LOOKS_ONLY = {
    "reservation-missing",
    "key-missing",
    "channel-missing",
    "location-refused",
    "service-refused",
    "key-refused",
} | {"members-refused"}
OF_THIS_MACHINE = {"pulumi-missing", "plugin-missing", "docker-missing"}
ROLES = {role.role: {each for needed in role.permissions.values() for each in needed.split()} for role in DEPLOYER}
FILLED = {"BILLING_ACCOUNT": "1", "SUBNETWORK": "s", "NETWORK": "n", "RANGE": "10.9.0.0/28", "ACCOUNT": ACCOUNT}


CHANGES: list[tuple[str, list[str]]] = [
    ("token-refused", ["cloudresourcemanager/projects/acme-dev"]),
    (
        "project-missing",
        ["cloudresourcemanager/projects/acme-dev", "grant projects/acme-dev roles/browser user:ann@example.com"],
    ),
    ("project-deleted", ["cloudresourcemanager/projects/acme-dev"]),
    ("project-number", ["config vertex-training:projectNumber"]),
    ("api-off", ["off cloudresourcemanager"]),
    ("api-off", ["off projects/acme-dev/services/serviceusage.googleapis.com"]),
    ("network-api-off", ["off projects/777777/services/servicenetworking.googleapis.com"]),
    ("billing-off", ["cloudbilling/projects/acme-dev/billingInfo"]),
    ("role-missing", ["grant projects/acme-dev roles/workloadidentity.admin user:ann@example.com"]),
    ("role-missing", ["grant projects/777777 roles/compute.networkAdmin user:ann@example.com"]),
    ("role-missing", ["grant b/theirs roles/storage.admin user:ann@example.com"]),
    ("role-missing", [f"grant {REPOSITORY} roles/artifactregistry.admin user:ann@example.com"]),
    ("role-missing", [f"grant {KEY} roles/cloudkms.admin user:ann@example.com"]),
    ("role-missing", [f"grant {SECRET} roles/secretmanager.admin user:ann@example.com"]),
    ("role-missing", [f"grant projects/-/serviceAccounts/{ACCOUNT} roles/iam.serviceAccountUser user:ann@example.com"]),
    ("submitter-missing", ["config vertex-training:identity.submitters[1]"]),
    ("agent-role", [f"grant projects/acme-dev roles/aiplatform.serviceAgent {AGENT}"]),
    ("account-role", [f"grant projects/acme-dev roles/logging.logWriter serviceAccount:{ACCOUNT}"]),
    ("attachment-grant", [f"grant projects/host-project roles/compute.networkAdmin {AGENT}"]),
    (
        "registry-key-grant",
        [f"grant {KEY} roles/cloudkms.cryptoKeyEncrypterDecrypter {ITS_AGENT}"],
    ),
    ("account-missing", [f"iam/projects/-/serviceAccounts/{ACCOUNT}"]),
    ("account-disabled", [f"iam/projects/-/serviceAccounts/{ACCOUNT}"]),
    ("bucket-missing", ["storage/b/theirs"]),
    ("bucket-region", ["config vertex-training:bucket.existing", "storage/b/theirs-europe-west4"]),
    ("bucket-uniform", ["config vertex-training:bucket.writableFolders[0]"]),
    ("bucket-taken", ["config vertex-training:bucket.name"]),
    ("registry-missing", [f"artifactregistry/{REPOSITORY}"]),
    ("registry-format", [f"artifactregistry/{REPOSITORY}-docker", "config vertex-training:registry.existing"]),
    ("key-missing", []),
    ("key-purpose", ["config vertex-training:kmsKey"]),
    ("key-disabled", [f"cloudkms/{KEY}"]),
    ("key-disabled", [f"cloudkms/{KEY}"]),
    ("secret-missing", [f"secretmanager/{SECRET}"]),
    ("network-missing", [f"compute/{NETWORK}"]),
    ("connection-missing", ["config vertex-training:network.peering.prefixLength"]),
    ("connection-ranges", ["config vertex-training:network.peering.reservedIpRanges[0]"]),
    ("range-missing", ["servicenetworking/services/servicenetworking.googleapis.com/connections"]),
    ("attachment-missing", [f"compute/{ATTACHMENT}"]),
    ("subnetwork-missing", [f"compute/{SUBNETWORK}"]),
    ("tensorboard-missing", ["config vertex-training:tensorboard.existing"]),
    ("channel-missing", []),
    ("quota-short", ["quota cpus"]),
    ("location-refused", []),
    ("service-refused", []),
    ("service-refused", []),
    ("accounts-refused", ["config vertex-training:identity.existing"]),
    ("account-elsewhere", ["config vertex-training:identity.existing"]),
    ("key-required", ["config vertex-training:kmsKey"]),
    ("key-refused", []),
    ("members-refused", []),
    ("bucket-hidden", ["config vertex-training:bucket.name"]),
    (
        "subnetwork-grant",
        [f"grant projects/host-project/regions/europe-west4/subnetworks/jobs roles/compute.networkUser {AGENT}"],
    ),
    ("dns-grant", [f"grant projects/dns-project roles/dns.peer {AGENT}"]),
    ("reservation-missing", []),
    ("reservation-unshared", [f"compute/{RESERVATION}"]),
    ("data-unreadable", [f"grant b/acme roles/storage.objectViewer serviceAccount:{ACCOUNT}"]),
    ("table-unreadable", [f"grant {TABLE} roles/bigquery.dataViewer serviceAccount:{ACCOUNT}"]),
    ("queries-refused", [f"grant projects/acme-dev roles/bigquery.jobUser serviceAccount:{ACCOUNT}"]),
    (
        "image-unreadable",
        [
            f"grant {IMAGES} roles/artifactregistry.reader {CODE_AGENT}",
            f"grant {IMAGES} roles/artifactregistry.reader {AGENT}",
        ],
    ),
]
"""What the remedy of each fault changes, in their order: grants, the stack file, resources, or nothing."""
OF_THE_CLOUD = [each for each in FAULTS if each.rule not in OF_THIS_MACHINE]


@pytest.mark.parametrize(
    ("fault", "changes"), [*zip(OF_THE_CLOUD, CHANGES, strict=True)], ids=[each.rule for each in OF_THE_CLOUD]
)
def test_a_remedy_mends_and_changes_nothing_else(
    project: GoogleProject,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    fault: Fault,
    changes: tuple[str, list[str]],
) -> None:
    project.resources |= fault.resources
    for name, value in fault.project.items():
        setattr(project, name, copy.deepcopy(value))
    prepare(tmp_path, fault.stack)
    stack = tmp_path / "stacks" / "Pulumi.dev.yaml"
    before = remedies.state(project, stack)
    shell = remedies.Machine(project, healthy(), stack, ROLES)
    remedy = re.sub(r"\b[A-Z_]{3,}\b(?!=)", lambda word: FILLED.get(word[0], word[0]), fault.remedy)
    shell.run(re.sub(r"projects/\S+/keyRings/RING/cryptoKeys/KEY", OTHER_KEY, remedy))
    assert (fault.rule, sorted(remedies.changed(before, remedies.state(project, stack)))) == changes
    if fault.rule not in LOOKS_ONLY:
        code, lines = run(capsys, "--stack", "dev")
        assert (code, len(lines)) == (0, 1), lines


INVERSES = {
    "gcloud": {
        "add-iam-policy-binding": "remove-iam-policy-binding",
        "create": "delete",
        "enable": "disable",
        "restore": "destroy",
        "link": "unlink",
        "undelete": "delete",
        "update": "update",
        "login": "revoke",
        "describe": "",
        "list": "",
    },
    "pulumi": {"set": "rm", "rm": "set", "install": "rm"},
    "bq": {"add-iam-policy-binding": "remove-iam-policy-binding"},
    "export": {"": "unset"},
    "unset": {"": "export"},
    "sudo": {"start": "stop"},
    "sh": {"-c": "rm -r ~/.pulumi"},
}
"""By program and verb: what undoes it, nothing for a look."""
IRREVERSIBLE = ("kms keys create", "keyrings create", "org-policies", "buckets update", "delete", "destroy")


def test_each_remedy_has_an_inverse() -> None:
    remedies = {*(rule.remedy for rule in RULES.values()), *(fault.remedy for fault in FAULTS)}
    for line in {line for remedy in remedies for line in remedy.split(" && ")}:
        program, *words = line.split()
        (inverse,) = [undo for verb, undo in INVERSES[program].items() if verb in words or not verb]
        assert not inverse or not [each for each in IRREVERSIBLE if f" {each} " in f" {line} "], line


def test_a_role_for_subnetworks_peers_no_zones(
    project: GoogleProject, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hosted = {"network": {"attachment": {**SHARED["network"]["attachment"], "dnsPeering": [ZONE]}}}
    prepare(tmp_path, hosted)
    given = {
        "roles/compute.networkUser": ["roles/dns.peer host-project"],
        "roles/dns.peer": ["roles/compute.networkUser host-project"],
        "roles/editor": [],
    }
    for role, missing in given.items():
        project.grants["projects/host-project"] = [(role, AGENT)]
        project.grants["projects/dns-project"] = [("roles/dns.peer", AGENT)]
        _, lines = run(capsys, "--stack", "dev")
        granted = [re.search(r"--role=(\S+)", line) for line in lines]
        projects = [re.search(r"host-project", line) for line in lines]
        assert [f"{role[1]} {at[0]}" for role, at in zip(granted, projects, strict=True) if role and at] == missing


@pytest.mark.parametrize(
    ("permission", "role", "place"),
    [
        ("cloudbuild.builds.list", "roles/cloudbuild.builds.editor", "project acme-dev"),
        ("logging.logEntries.list", "roles/logging.viewer", "project acme-dev"),
        ("cloudbuild.workerpools.use", "roles/cloudbuild.workerPoolUser", "project acme-pools"),
        ("storage.objects.get", "roles/storage.objectUser", "gs://theirs"),
        ("artifactregistry.repositories.uploadArtifacts", "roles/artifactregistry.admin", "repository .*/images"),
    ],
)
def test_what_builds_in_cloud_build_need_is_told(
    project: GoogleProject,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    permission: str,
    role: str,
    place: str,
) -> None:
    pool = "projects/acme-pools/locations/europe-west4/workerPools/private"
    stack = {**EXISTING, "images": {"built": {"context": "trainer"}}, "builder": {"cloudBuild": {"pool": pool}}}
    prepare(tmp_path, stack)
    assert findings(capsys) == {}
    project.lacking = {permission}
    ((message, remedy),) = findings(capsys).values()
    assert re.search(f"lacks {permission} on {place}$", message) and f"--role={role}" in remedy


def test_each_rule_has_a_fault() -> None:
    assert {fault.rule for fault in FAULTS} == RULES.keys() - OF_CREDENTIALS
    assert len(FAULTS) >= 30


def test_missing_credentials_are_told(
    project: GoogleProject, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> None:
        raise DefaultCredentialsError("none")

    monkeypatch.delenv("GOOGLE_OAUTH_ACCESS_TOKEN")
    monkeypatch.setattr(credentials, "load", missing)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:9")
    prepare(tmp_path, {"images": {"built": {"context": "trainer"}}})
    found = findings(capsys)
    assert [*found] == ["pulumi-missing", "docker-missing", "credentials-missing", UNSEEN]
    assert found["credentials-missing"][1] == "gcloud auth application-default login"
    assert found["docker-missing"][0].endswith("Cloud Build (built)")
    assert project.requests == []
    code, lines = run(capsys)
    assert (code, lines[0]) == (1, "stack dev, project acme-dev, not signed in: 3 problems, 1 not known")
    assert lines[-1] == (
        "cannot tell: the project: nobody is signed in to look at it; the stack is valid, and declares 1 image, 1 job"
    )


def test_invalid_settings_are_told_without_credentials(
    project: GoogleProject, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GOOGLE_OAUTH_ACCESS_TOKEN")
    prepare(tmp_path, {"region": "Mars"})
    assert list(findings(capsys)) == ["settings"]


@pytest.mark.parametrize("has_plugin", [True, False])
def test_an_installed_plugin_is_seen(
    project: GoogleProject,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    has_plugin: bool,
) -> None:
    monkeypatch.setenv("PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION", "1")
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path / "home"))
    (tmp_path / "home" / "plugins" / f"resource-gcp-v{version('pulumi-gcp') if has_plugin else '1.0.0'}").mkdir(
        parents=True
    )
    prepare(tmp_path, {})
    assert ("plugin-missing" in findings(capsys)) != has_plugin


def test_docker_is_not_needed_where_cloud_build_builds(
    project: GoogleProject, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:9")
    prepare(tmp_path, {"images": {"built": {"context": "trainer"}}, "builder": {"cloudBuild": {}}})
    assert "docker-missing" not in findings(capsys)


def test_credentials_are_not_waited_for_long(
    project: GoogleProject, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "SIGN_IN_SECONDS", 0.0)
    monkeypatch.setattr(credentials, "load", project.closing.wait)
    prepare(tmp_path, {})
    ((rule, (message, _)), *rest) = findings(capsys).items()
    assert [each for each, _ in rest] in ([], [UNSEEN])
    assert rule == "credentials-missing" and message.endswith("nothing gave any within 0 s")


def test_an_account_that_gives_no_token_is_told(
    project: GoogleProject, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise RefreshError("Unable to acquire impersonated credentials", '{"error": {"message": "denied"}}')

    monkeypatch.delenv("GOOGLE_OAUTH_ACCESS_TOKEN")
    monkeypatch.setenv("GOOGLE_IMPERSONATE_SERVICE_ACCOUNT", ACCOUNT)
    monkeypatch.setattr(credentials, "load", refuse)
    prepare(tmp_path, {})
    ((rule, (message, remedy)), *rest) = findings(capsys).items()
    assert [each for each, _ in rest] in ([], [UNSEEN])
    assert rule == "impersonation-refused" and "GOOGLE_IMPERSONATE_SERVICE_ACCOUNT" in message
    assert remedy == (f"# grant roles/iam.serviceAccountTokenCreator on {ACCOUNT} to {UNNAMED}")


@pytest.mark.parametrize("text", ["nonsense", "{}", '{"type": "service_account"}', "[]"])
def test_what_is_no_credential_file_is_told(
    project: GoogleProject,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    text: str,
) -> None:
    monkeypatch.delenv("GOOGLE_OAUTH_ACCESS_TOKEN")
    monkeypatch.setenv("GOOGLE_CREDENTIALS", text)
    prepare(tmp_path, {})
    ((rule, (message, remedy)), *rest) = findings(capsys).items()
    assert [each for each, _ in rest] in ([], [UNSEEN])
    assert rule == "key-file-refused" and "gives no token: GOOGLE_CREDENTIALS: " in message
    assert remedy == "unset GOOGLE_CREDENTIALS && gcloud auth application-default login"
    monkeypatch.delenv("GOOGLE_CREDENTIALS")
    (tmp_path / "key.json").write_text(text)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "key.json"))
    ((rule, (message, remedy)), *rest) = findings(capsys).items()
    assert [each for each, _ in rest] in ([], [UNSEEN])
    assert rule == "key-file-refused" and "gives no token: GOOGLE_APPLICATION_CREDENTIALS: " in message
    assert remedy == "unset GOOGLE_APPLICATION_CREDENTIALS && gcloud auth application-default login"
    assert project.requests == []


def test_credentials_that_google_refuses_are_told(
    project: GoogleProject, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GOOGLE_OAUTH_ACCESS_TOKEN")
    monkeypatch.setattr(credentials, "load", lambda: Credentials("t"))
    project.resources["cloudresourcemanager/projects/acme-dev"] = 401
    prepare(tmp_path, {})
    assert {rule: remedy for rule, (_, remedy) in findings(capsys).items()} == {
        "credentials-refused": "gcloud auth application-default login"
    }


def test_a_service_perimeter_is_no_missing_permission(
    project: GoogleProject, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refusal = "Request is prohibited by organization's policy. vpcServiceControlsUniqueIdentifier: x"
    project.refusals["storage"] = (403, {"error": {"code": 403, "message": refusal}})
    prepare(tmp_path, {})
    ((rule, (message, remedy)), *rest) = findings(capsys).items()
    assert [each for each, _ in rest] in ([], [UNSEEN])
    assert (rule, remedy) == ("bucket-unknown", "") and "service perimeter" in message


def test_a_users_quota_project_is_looked_for(
    project: GoogleProject, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GOOGLE_CLOUD_QUOTA_PROJECT", raising=False)
    monkeypatch.setattr(credentials, "load", lambda: Credentials("t", refresh_token="r"))
    prepare(tmp_path, {})
    assert {rule: remedy for rule, (_, remedy) in findings(capsys).items()} == {
        "quota-project": "export GOOGLE_CLOUD_QUOTA_PROJECT=acme-dev",
        "provider-quota-project": f"{SET} gcp:userProjectOverride true && {SET} gcp:billingProject acme-dev",
    }
    monkeypatch.setattr(credentials, "load", lambda: Credentials("t", refresh_token="r", quota_project_id="acme-dev"))
    prepare(tmp_path, {}, **{"gcp:userProjectOverride": True})
    assert list(findings(capsys)) == ["provider-quota-project"]
    prepare(tmp_path, {}, **{"gcp:userProjectOverride": True, "gcp:billingProject": "acme-dev"})
    assert findings(capsys) == {}


def test_a_refused_quota_project_is_told(
    project: GoogleProject, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    refusal = {"error": {"code": 403, "message": "Caller", "details": [{"reason": "USER_PROJECT_DENIED"}]}}
    monkeypatch.setattr(project, "answer", lambda *_: (403, refusal))
    prepare(tmp_path, {})
    assert {rule: remedy for rule, (_, remedy) in findings(capsys).items()} == {
        "quota-project-refused": f"# grant roles/serviceusage.serviceUsageConsumer on acme-dev to {UNNAMED}"
    }


def test_encrypted_credentials_are_not_taken_for_ones(
    project: GoogleProject, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prepare(tmp_path, {"secrets": {"hfToken": {"secure": "v1:abc"}}}, **{"gcp:credentials": {"secure": "v1:xyz"}})
    assert {rule: remedy for rule, (_, remedy) in findings(capsys).items()} == {
        "credentials-secret": "export GOOGLE_CREDENTIALS=KEY_FILE"
    }


LOOKS = {
    "apis": ("serviceusage", {}),
    "billing": ("cloudbilling", {}),
    "accounts": ("iam", EXISTING),
    "bucket": ("storage", EXISTING),
    "registry": ("artifactregistry", EXISTING),
    "keys": ("cloudkms", EXISTING),
    "secrets": ("secretmanager", EXISTING),
    "network": ("compute", EXISTING),
    "tensorboard": ("aiplatform", EXISTING),
    "alerts": ("monitoring", EXISTING),
}
"""By check, the API that it asks, and a stack that makes it do so."""


@pytest.mark.parametrize("check", [*LOOKS, "grants", "policies"])
def test_what_may_not_be_looked_at_is_told(
    project: GoogleProject, tmp_path: Path, capsys: pytest.CaptureFixture[str], check: str
) -> None:
    api, stack = LOOKS.get(check, ("", EXISTING))
    project.forbidden = {api}
    if check == "grants":
        project.resources["cloudresourcemanager/projects/acme-dev:getIamPolicy"] = 403
    if check == "policies":
        project.resources["cloudresourcemanager/projects/acme-dev:getEffectiveOrgPolicy"] = 403
    prepare(tmp_path, stack)
    found = findings(capsys)
    # Where nobody may look, nobody is known to hold a permission either.
    found = {rule: texts for rule, texts in found.items() if rule != "role-missing"}
    (message, remedy) = found.pop(f"{check}-unknown")
    assert found.keys() <= {"quota-unknown"} and (api == "serviceusage") == bool(found)
    assert "may not look" in message and CHECKS[check].permissions in message
    assert f"--role={CHECKS[check].role}" in remedy and "--member=user:ann@example.com" in remedy


@pytest.mark.parametrize("check", LOOKS)
def test_an_api_that_is_off_cannot_be_asked(
    project: GoogleProject, tmp_path: Path, capsys: pytest.CaptureFixture[str], check: str
) -> None:
    api, stack = LOOKS[check]
    project.disabled = {api}
    prepare(tmp_path, stack)
    found = findings(capsys)
    rules = {"api-off"} if api == "serviceusage" else {f"{check}-unknown"}
    assert rules <= found.keys() <= rules | {"deployer-unknown"}
    assert all(f"{api}.googleapis.com" in remedy for _, remedy in found.values())


@pytest.mark.parametrize("api", ["cloudbilling", "cloudresourcemanager", "openidconnect"])
def test_an_api_that_hangs_takes_no_longer(
    project: GoogleProject,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    api: str,
) -> None:
    send = cloud.Cloud._send

    def hurry(self: cloud.Cloud, method: str, to: str, *request: Any, **content: Any) -> dict[str, Any]:
        # A busy machine does not answer the other calls in so short a time.
        return send(self, method, to, *request, **content, **({"limit": 0.3} if to == api else {}))

    monkeypatch.setattr(cloud.Cloud, "_send", hurry)
    project.hanging = {api}
    prepare(tmp_path, {})
    code, lines = run(capsys, "--stack", "dev")
    if api == "openidconnect":
        assert code == 0 and "as an account that its credentials do not name: nothing" in lines[0]
    else:
        assert code == 2
        assert [line for line in lines if "has not answered in full within" in line] == lines[1:]


def test_all_calls_share_the_ten_seconds(
    project: GoogleProject, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert command.SIGN_IN_SECONDS < SECONDS < 10
    monkeypatch.setattr(command, "SECONDS", 0.0)
    prepare(tmp_path, {})
    code, lines = run(capsys, "--stack", "dev")
    assert code == 2 and project.requests == []
    assert len(lines) == 2 and lines[1].endswith("was not asked, as there was no time left")


GARBAGE = ["", "<html>", "[]", "null", '"x"', "{", "[" * 100_000, '{"permissions": 7, "projectNumber": "x"}', "\x00"]


@pytest.mark.parametrize("text", GARBAGE, ids=range(len(GARBAGE)))
def test_garbage_is_no_traceback(
    project: GoogleProject, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    project.garbage = text
    prepare(tmp_path, {})
    code, lines = run(capsys, "--stack", "dev")
    assert code == 2 and len(lines) == 2 and "proxy" in lines[1]


SHAPES: list[Any] = [{"bindings": 7}, {"services": [1]}, {"services": [{}]}, {"permissions": 3}, {"listPolicy": []}]
SHAPES += [
    {"quotaInfos": [[]]},
    {"connections": {"a": 1}},
    {"primary": [], "purpose": "ENCRYPT_DECRYPT"},
    {"location": 7},
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_answers_of_other_shapes_are_no_traceback(
    project: GoogleProject,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    shape: Any,
) -> None:
    answer = project.answer

    def other(api: str, path: str, *request: Any) -> tuple[int, Any]:
        is_first = path in ("projects/acme-dev", "userinfo")
        return answer(api, path, *request) if is_first else (200, shape)

    monkeypatch.setattr(project, "answer", other)
    prepare(tmp_path, EXISTING)
    code, lines = run(capsys, "--stack", "dev")
    assert code in (1, 2) and lines


def test_a_post_that_changes_something_is_never_sent() -> None:
    reader = cloud.Cloud("acme-dev", "us-central1", 1e9, lambda _: None)
    for path in ("projects/acme-dev:setIamPolicy", "projects/acme-dev", "projects/acme-dev:undelete"):
        with pytest.raises(AssertionError, match="may change something"):
            reader.ask("cloudresourcemanager", path)


def test_credentials_go_to_google_alone(
    project: GoogleProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    signed: list[str] = []
    reader = cloud.Cloud("acme-dev", "us-central1", 1e9, lambda headers: signed.append(str(headers)))
    assert reader.get("openidconnect", "userinfo") == {"email": "ann@example.com"}
    assert signed == []


def test_a_place_that_nothing_else_looks_at_is_told(
    project: GoogleProject, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project.resources["storage/b/old/iam/testPermissions"] = 404
    prepare(tmp_path, {"registry": {"legacyBuckets": ["old"]}})
    assert findings(capsys) == {"deployer-unknown": ("the deployer's permissions: gs://old does not exist", "")}


def test_names_are_quoted_in_addresses(
    project: GoogleProject, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project.resources["compute/projects/acme-dev/regions/europe-west4/subnetworks/a?b#c"] = {}
    prepare(tmp_path, {"network": {"attachment": {"subnetwork": "a?b#c"}}})
    assert findings(capsys) == {}


def test_a_number_is_looked_up_if_missing(
    project: GoogleProject, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prepare(tmp_path, {"identity": {"agentRoles": False}})
    file = tmp_path / "stacks" / "Pulumi.dev.yaml"
    config = yaml.safe_load(file.read_text())["config"]
    del config["vertex-training:projectNumber"]
    file.write_text(yaml.safe_dump({"config": config}))
    assert findings(capsys) == {}


def test_a_project_of_the_template_is_read(
    project: GoogleProject, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(ROOT / "template", tmp_path / "made", ignore=shutil.ignore_patterns("__pycache__"))
    for file in (tmp_path / "made").rglob("*.yaml"):
        file.write_text(file.read_text().replace("${PROJECT}", "made").replace("${DESCRIPTION}", "a project"))
    stack = tmp_path / "made" / "stacks" / "Pulumi.dev.yaml"
    stack.write_text(stack.read_text() + "  gcp:project: acme-dev\n  gcp:region: europe-west4\n")
    with contextlib.chdir(tmp_path / "made" / "trainer"):
        code, lines = run(capsys)
    assert (code, len(lines)) == (0, 1) and lines[0].startswith("stack dev, project acme-dev, as user:ann@")


def test_invalid_settings_are_problems(
    project: GoogleProject, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prepare(tmp_path, {"region": "Mars"})
    assert cli.main(["doctor"]) == 1
    assert '"Mars" is not the name of a region' in capsys.readouterr().err
    assert list(findings(capsys)) == ["settings"]
    assert project.requests == []


@pytest.mark.parametrize("submitters", [["user:ann@example.com"], ["user:bob@example.com", "group:ml@example.com"]])
def test_submitters_may_act_as_new_accounts(
    project: GoogleProject, tmp_path: Path, capsys: pytest.CaptureFixture[str], submitters: list[str]
) -> None:
    project.lacking = {"iam.serviceAccounts.actAs"}
    prepare(tmp_path, {"identity": {"submitters": submitters}})
    assert findings(capsys) == {}


def test_the_stacks_own_range_is_no_strangers(
    project: GoogleProject, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project.resources[CONNECTIONS] = {"connections": [{"reservedPeeringRanges": ["jobs"]}]}
    prepare(tmp_path, PEERED)
    assert findings(capsys) == {}


def test_jobs_that_wait_for_each_other_are_no_problem(
    project: GoogleProject, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project.quotas = {"cpus": 8}
    prepare(tmp_path, {})
    (tmp_path / "jobs.yaml").write_text(JOBS + JOBS.partition("\n")[2].replace("train:", "other:", 1))
    assert findings(capsys) == {}


def test_problems_come_before_what_is_not_known(
    project: GoogleProject, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project.disabled, project.lacking = {"cloudbilling"}, {"storage.buckets.create"}
    project.resources["cloudresourcemanager/projects/acme-dev:getEffectiveOrgPolicy"] = 403
    prepare(tmp_path, {})
    code, lines = run(capsys)
    assert code == 1 and lines[0].endswith(": 1 problem, 1 not known")
    levels = [line.partition(":")[0] for line in lines[1:] if not line.startswith(" ")]
    assert levels == ["problem", "cannot tell", "note"]


def test_the_page_shows_what_is_printed(
    project: GoogleProject, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project.disabled, project.lacking = {"cloudbilling"}, {"workloadidentity.serviceAgents.create"}
    project.quotas = {"cpus": 4}
    prepare(tmp_path, {})
    _, lines = run(capsys, "--stack", "dev")
    assert taken("docs/first-run.md", "output", "stack dev") == ["".join(f"{line}\n" for line in lines)]


def test_a_local_stack_needs_this_machine_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], project: GoogleProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION", "true")
    monkeypatch.delenv("GOOGLE_OAUTH_ACCESS_TOKEN")
    prepare(tmp_path, {})
    monkeypatch.setattr(machine, "_docker_answers", lambda: True)
    assert run(capsys, "--stack", "local") == (
        0,
        ["stack local, this machine: nothing stands in the way of `pulumi up`"],
    )
    monkeypatch.setattr(machine, "_docker_answers", lambda: False)
    code, lines = run(capsys, "--stack", "local")
    assert (code, lines[0]) == (1, "stack local, this machine: 1 problem, 0 not known")
    assert lines[1].endswith(": jobs run in it") and project.requests == []


def test_an_unknown_stack_is_wrong_usage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["doctor"]) == 2
    assert "there is no Pulumi.yaml" in capsys.readouterr().err
    prepare(tmp_path, {})
    assert cli.main(["doctor", "--stack", "prod"]) == 2
    assert 'no stack file of "prod"' in capsys.readouterr().err
    (tmp_path / "stacks" / "Pulumi.dev.yaml").write_text("a: [")
    assert cli.main(["doctor", "--stack", "dev"]) == 2
    assert "cannot be read" in capsys.readouterr().err


STRANGE = [
    "[]",
    "7",
    "config: [1]",
    "config: 5",
    "config: {5: x}",
    "config: {vertex-training:target: gcp}",
    "config: {a: {b: {c}}}",
]
STRANGE += [
    "config: {vertex-training:target: gcp, vertex-training:prices: {asOf: 2026-07-30, 4: 2}, gcp:project: 2026-07-30}"
]


@pytest.mark.parametrize("text", STRANGE)
def test_strange_stack_files_are_no_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], project: GoogleProject, text: str
) -> None:
    prepare(tmp_path, {})
    (tmp_path / "stacks" / "Pulumi.dev.yaml").write_text(text)
    assert cli.main(["doctor", "--stack", "dev"]) in (1, 2)
    assert capsys.readouterr().err
    prepare(tmp_path, {})
    (tmp_path / "Pulumi.yaml").write_text(f"{text}\n" if text[0] in "[7" else f"{text}\nstackConfigDir: stacks\n")
    assert cli.main(["doctor", "--stack", "dev"]) in (0, 2)


def test_the_key_of_the_stacks_secrets_is_looked_at(
    project: GoogleProject, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prepare(tmp_path, {})
    file = tmp_path / "stacks" / "Pulumi.dev.yaml"
    file.write_text(file.read_text() + f"secretsprovider: gcpkms://{KEY}\n")
    assert findings(capsys) == {}
    project.lacking = {"cloudkms.cryptoKeyVersions.useToDecrypt"}
    assert [remedy for _, remedy in findings(capsys).values()] == [
        "gcloud kms keys add-iam-policy-binding data --keyring=ring --location=europe-west4 --project=acme-dev "
        "--member=user:ann@example.com --role=roles/cloudkms.cryptoKeyEncrypterDecrypter"
    ]


def test_config_of_the_project_file_counts(tmp_path: Path) -> None:
    about = "name: team\nstackConfigDir: s\nconfig: {gcp:project: {value: a-project}, gcp:region: us-east1, own: 3}\n"
    write(
        tmp_path,
        {"Pulumi.yaml": about, "s/Pulumi.x.yaml": "config: {vertex-training:target: gcp, gcp:region: us-west1}\n"},
    )
    file = read_stack(tmp_path / "s", None)
    assert (file.root, file.project, file.name) == (tmp_path, "team", "x")
    assert file.config == {
        "vertex-training:target": "gcp",
        "gcp:project": "a-project",
        "gcp:region": "us-west1",
        "team:own": "3",
    }


@pytest.mark.parametrize(
    ("rules", "names", "is_allowed"),
    [
        ({}, {"a"}, True),
        ({"allValues": "ALLOW"}, {"a"}, True),
        ({"allValues": "DENY"}, {"a"}, False),
        ({"allowedValues": ["is:a"]}, {"a"}, True),
        ({"allowedValues": ["b"]}, {"a"}, False),
        ({"deniedValues": ["a"]}, {"a"}, False),
        ({"deniedValues": ["b"]}, {"a"}, True),
        ({"allowedValues": ["a"], "deniedValues": ["a"]}, {"a"}, False),
    ],
)
def test_list_policies_are_read_as_documented(rules: dict[str, Any], names: set[str], is_allowed: bool) -> None:
    assert allows({"listPolicy": rules}, names) is is_allowed


def test_granted_tables_need_their_services(
    project: GoogleProject, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project.policies = {"gcp.restrictServiceUsage": {"listPolicy": {"deniedValues": ["bigquery.googleapis.com"]}}}
    prepare(tmp_path, GRANTED)
    assert {*findings(capsys)} == {"service-refused"}
    prepare(tmp_path, {**DATA, **EXISTING})
    assert "service-refused" not in findings(capsys)


@pytest.mark.parametrize(
    "group", ["in:eu-locations", "in:europe-locations", "in:europe-west4-locations", "in:low-carbon-locations"]
)
def test_groups_of_locations_hold_their_regions(
    project: GoogleProject, tmp_path: Path, capsys: pytest.CaptureFixture[str], group: str
) -> None:
    project.policies = {"gcp.resourceLocations": {"listPolicy": {"allowedValues": ["us-east1", group]}}}
    prepare(tmp_path, {})
    assert findings(capsys) == {}


def test_the_page_has_all_rules() -> None:
    page = (ROOT / "docs" / f"{PAGE}.md").read_text()
    rows = re.findall(r"^\| `([a-z-]+)` \| (.+?) \| `(.+?)` \| (.*?) ?\|$", page, re.MULTILINE)

    def readable(text: str) -> str:
        return re.sub(r"\{(\w+)\}", lambda name: name[1].upper(), text)

    expected = [
        (rule, f"{CHECKS[about.check].title}: {readable(about.message)}", readable(about.remedy), about.besides)
        for rule, about in RULES.items()
    ]
    assert rows == expected
    unsure = re.search(r"Said with `cannot tell`, as it may be right: (.+)\.\n", page)
    assert unsure
    assert re.findall(r"`([a-z-]+)`", unsure[1]) == [
        rule for rule, about in RULES.items() if about.level == "cannot tell"
    ]
    powers = re.findall(r"^\| `(roles/\S+)` \| ([^|`]+) \|$", page, re.MULTILINE)
    assert dict(powers) == POWERS
    looks = re.findall(r"^\| ([a-zA-Z' ]+) \| `([a-zA-Z., `]+)` \| `(roles/\S+)` \|$", page, re.MULTILINE)
    assert looks == [
        (about.title, "`, `".join(about.permissions.split(", ")), about.role) for about in CHECKS.values() if about.role
    ]


def test_grants_quote_what_a_shell_would_read() -> None:
    assert (
        Place("bucket", "a b")
        .grant("roles/x", "user:$(id)@x")
        .endswith("'gs://a b' '--member=user:$(id)@x' --role=roles/x")
    )
