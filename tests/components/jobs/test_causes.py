"""The likely cause of what a failed job and its log say: each subject in the ways in which it arises."""

import re

import pytest
from vertex_training.jobs.causes import likely_causes

EXITED = "The replica workerpool1-0 exited with a non-zero status of 1."
LOW_ON_MEMORY = "Replicas low on memory: workerpool0. Specify a machine with larger memory and try again."
RUNTIME = "OCI runtime create failed: container_linux.go:380: starting container process caused: "


def not_found(word: str) -> str:
    return f'{RUNTIME}exec: "{word}": executable file not found in $PATH: unknown'


def no_file(word: str) -> str:
    return f'{RUNTIME}exec: "{word}": stat {word}: no such file or directory: unknown'


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        (LOW_ON_MEMORY, "it needs more memory: take a larger machineType or smaller batches"),
        ("The replica workerpool0-0 exited with a non-zero status of 137.", "it needs more memory: "),
        ("MemoryError: Unable to allocate 30 GiB", "it needs more memory: "),
        ("OSError: [Errno 12] Cannot allocate memory", "it needs more memory: "),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", "the memory of the GPU is full"),
        ("RuntimeError: DataLoader worker (pid 7) is killed by signal: Bus error.", "/dev/shm is full"),
    ],
)
def test_memory_is_told_by_its_kind(line: str, cause: str) -> None:
    check(line, cause)


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        (not_found("train"), "the image has no program train: correct the command, or add it to the image"),
        (not_found("t"), "the command is taken letter by letter (t, …), as a text was sent where a list belongs"),
        (
            not_found("--lr=0.01"),
            "args, such as a trial's parameters (--lr=0.01), replace the image's CMD, and it has no",
        ),
        (not_found("python train.py --lr=1"), '"python train.py --lr=1" is taken for the name of one program: write'),
        (no_file("/app/run.sh"), "the image has no /app/run.sh, or not the program in its first line (#!…), which a W"),
        (no_file("./train.py"), "the image has no ./train.py, or not the program in its first line"),
        (no_file("/usr/bin/python4"), "the image has no program /usr/bin/python4: correct the command"),
        (f'{RUNTIME}exec: "./run.sh": permission denied: unknown', "./run.sh may not be executed: run chmod +x on it"),
        (
            "standard_init_linux.go:228: exec user process caused: exec format error",
            "the program is for another proces",
        ),
        ("exec /app/run.sh: exec format error", "the program is for another processor"),
        ("/bin/sh: 1: gsutil: not found", "the image has no gsutil: build upon one that has it (FROM google/cloud-sdk"),
        ("/bin/sh: gcloud: not found", "the image has no gcloud: build upon one that has it"),
        ("./run.sh: line 3: bq: command not found", "the image has no bq: build upon one that has it"),
        ("bash: gsutil: command not found", "the image has no gsutil: build upon one that has it"),
        (not_found("gsutil"), "the image has no gsutil: build upon one that has it"),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'gsutil'", "the image has no gsutil: build upon one"),
        ("/app/run.sh: 2: wget: not found", "the image has no program wget: correct its name, or install what has it"),
        (
            "/bin/sh: 1: [python,: not found",
            "CMD or ENTRYPOINT is no list in JSON, so a shell has run its text: write it",
        ),
        ("run.sh: line 2: $'\\r': command not found", "the script has Windows line ends (CRLF): save it with LF"),
    ],
)
def test_a_program_that_cannot_start_is_told_why(line: str, cause: str) -> None:
    check(line, cause)


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        (
            "/usr/bin/python3: No module named trainer.tsk",
            "the image has the package trainer, and no module trainer.tsk",
        ),
        ("/usr/bin/python3: No module named trainer", "Python finds no module trainer in the working directory and"),
        (
            "python: Error while finding module specification for 'trainer.task' (ModuleNotFoundError: No module named "
            "'trainer')",
            "Python finds no module trainer.task in the working directory and PYTHONPATH: COPY it there (WORKDIR)",
        ),
        (
            "ModuleNotFoundError: No module named 'trainer.data'",
            "the image has no Python module trainer.data: if it is",
        ),
        ("ModuleNotFoundError: No module named 'torch'", "the image has no Python module torch: if it is yours, COPY"),
        (
            "ModuleNotFoundError: No module named 'sklearn.svm'",
            "the image lacks scikit-learn, which has the Python modul",
        ),
        ("ModuleNotFoundError: No module named 'hypertune'", "the image lacks cloudml-hypertune, which has"),
        ("No module named 'google.cloud.storage'", "the image lacks google-cloud-storage, which has"),
        (
            "ModuleNotFoundError: No module named 'torch.nn'; 'torch' is not a package",
            "a file torch.py hides the package torch, as Python finds it first: rename that file",
        ),
        (
            "python: can't open file '/app/trian.py': [Errno 2] No such file or directory",
            "the image has no file /app/tr",
        ),
    ],
)
def test_missing_code_is_told_by_where_it_belongs(line: str, cause: str) -> None:
    check(line, cause)


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        (
            "FileNotFoundError: [Errno 2] No such file or directory: 'gs://b/run/model/weights'",
            'gs://b/run/model/weights is a URI and no path: Python opens it below /gcs/, by .replace("gs://"',
        ),
        ("NotADirectoryError: [Errno 20] Not a directory: 'gs:/b/run'", "gs:/b/run is a URI and no path"),
        (
            "FileNotFoundError: [Errno 2] No such file or directory: '/gcs/b/run/model/weights'",
            "/gcs/b/run/model/weights is not there: check the bucket and the path, and to write, make its folder first",
        ),
        ("OSError: [Errno 30] Read-only file system: '/gcs/buket'", "/gcs/buket is no bucket that exists"),
        ("OSError: [Errno 38] Function not implemented: '/gcs/buket'", "/gcs/buket is no bucket that exists"),
        ("train.py: error: unrecognized arguments: --units=8", "the program does not know --units=8: add the argument"),
        (
            "train.py: error: argument --units: invalid int value: '8.0'",
            "--units comes as 8.0, as the service has whole numbers of a search as doubles",
        ),
        ("train.py: error: the following arguments are required: --data", "the program needs --data: add it to args"),
    ],
)
def test_paths_and_arguments_have_their_causes(line: str, cause: str) -> None:
    check(line, cause)


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        (
            "403 GET https://storage: trainer@acme.iam.gserviceaccount.com does not have storage.objects.get access",
            "trainer@acme.iam.gserviceaccount.com lacks the permission storage.objects.get: let the stack grant it by "
            "grant: true at the data, or grant it a role on the bucket, such as roles/storage.objectViewer",
        ),
        (
            "t@acme.iam.gserviceaccount.com does not have storage.objects.create access to the object.",
            "t@acme.iam.gserviceaccount.com lacks the permission storage.objects.create there: "
            "write below AIP_MODEL_DIR; name the folder in bucket.writableFolders",
        ),
        (
            "The following quota metrics exceed quota limits: aiplatform.googleapis.com/custom_model_training_l4",
            "the quota aiplatform.googleapis.com/custom_model_training_l4 is used up: ",
        ),
        (
            "403 Access Denied: Table s:eu.orders: Permission bigquery.tables.getData denied on table s:eu.orders",
            "the job's account lacks bigquery.tables.getData: let the stack grant it by grant: true at the data",
        ),
        (
            "403 Request is prohibited by organization's policy. vpcServiceControlsUniqueIdentifier: a1b2",
            "a service perimeter keeps the job from what it asks for",
        ),
        ("Request is prohibited by organization's policy.", "a service perimeter keeps the job from what it asks for"),
        ("Resources are insufficient in region: us-east1. Try a different region", "the region is out of such mach"),
        ("Internal error occurred for the current attempt", "this is the service's own failure: run it again"),
    ],
)
def test_the_service_s_refusals_have_their_causes(line: str, cause: str) -> None:
    check(line, cause)


NO_CREDENTIALS = (
    "it finds no credentials: on Vertex AI it has the job's account; on target local it has the emulator's "
)
NO_TRUST = "a client does not trust the server's certificate: on target local, that of Google's names is the emu"


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("google.auth.exceptions.DefaultCredentialsError: Your default credentials were not found.", NO_CREDENTIALS),
        ("java.io.IOException: Your default credentials were not found. To set up", NO_CREDENTIALS),
        ("google: could not find default credentials. See https://cloud.google.com", NO_CREDENTIALS),
        ("Error: Could not load the default credentials. Browse to", NO_CREDENTIALS),
        ("com.google.cloud.storage.StorageException: PKIX path building failed: sun.security", NO_TRUST),
        ("ssl.SSLCertVerificationError: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: unable", NO_TRUST),
        ("FetchError: request to https://x failed, reason: self-signed certificate in certificate chain", NO_TRUST),
        ("OSError: Project was not passed and could not be determined from the environment.", "it finds no project: "),
        (
            "Forbidden: 403 GET https://x: Permission denied on resource 'projects/g1-tp' (or it may",
            "projects/g1-tp is none that the job may use, often that of google.auth.default(), which is Vertex AI's",
        ),
        (
            "NotFound: 404 GET http://172.17.0.1:2/b/x?a=1: The specified bucket does not exist: cloud-samples-data.",
            "target local has no bucket cloud-samples-data: put its objects below .emulator/gcs/cloud-samples-data, "
            "or give them to run and rehearse by --inputs DIR, as DIR/cloud-samples-data "
            "(`vertex-training docs google`)",
        ),
        (
            "NotFound: 404 Secret [projects/642872260880/secrets/chrun-key] not found or has no versions.",
            "the project has no secret chrun-key, or it has no version: correct its name, or add it; on target local, "
            "by `pulumi config set --secret --path vertex-training:emulator.secrets.chrun-key`, and for run",
        ),
        ("404 GET https://storage.googleapis.com/x: The specified bucket does not exist.", "correct the bucket's name"),
        (
            "gcsfs.retry.HttpError: bucket does not exist, 404",
            "correct the bucket's name, or create it; on target local",
        ),
        (
            "NotFound: 404 GET http://172.17.0.1:2/x: No such object: acme-data/train/a.csv: ('Request failed",
            "gs://acme-data/train/a.csv is not there: correct its name; on target local, put it at .emulator/",
        ),
        (
            "MethodNotImplemented: 501 pubsub.googleapis.com is not emulated at home. Give",
            "target local has no pubsub.",
        ),
        (
            "Unauthorized: 401 Request had invalid authentication credentials. Expected",
            "its token counts on target loc",
        ),
        (
            "PermissionDenied: 403 Permission 'secretmanager.versions.access' denied for resource 'projects/1",
            "the job's account lacks secretmanager.versions.access: grant it a role that has it "
            "(`vertex-training docs access`)",
        ),
        (
            "requests.exceptions.HTTPError: 403 Client Error: Forbidden for url: https://x",
            "the job's account lacks a pe",
        ),
    ],
)
def test_what_google_s_clients_lack_has_a_page(line: str, cause: str) -> None:
    check(line, cause)
    (found,) = likely_causes([line])
    assert re.search(r"\(`vertex-training docs (google|access)`\)$", found)


def check(line: str, cause: str) -> None:
    (found,) = likely_causes([EXITED, line, "the end"])
    assert found.startswith(cause)


@pytest.mark.parametrize("line", [EXITED, "ValueError: no data", "epoch 137", "status of 1370", ""])
def test_no_cause_is_made_up(line: str) -> None:
    assert list(likely_causes([line])) == []
