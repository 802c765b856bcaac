"""The usual causes of what the service, Docker, Python and Google's libraries say of a job that has failed."""

import re
from collections.abc import Iterator, Sequence

from ..runtime.refusals import PERIMETER

STOCKOUT = r"Resources are insufficient in region"


def likely_causes(lines: Sequence[str]) -> Iterator[str]:
    """Yield the usual causes of messages of the service and of lines of a log, each once; one of each subject."""
    text = "\n".join(lines)
    for subject in _SUBJECTS:
        matches = ((re.search(pattern, text), cause) for pattern, cause in subject)
        if first := next(((match, cause) for match, cause in matches if match), None):
            yield first[0].expand(first[1])


_MEMORY = [
    (
        r"CUDA out of memory|CUDA_ERROR_OUT_OF_MEMORY|torch\.OutOfMemoryError",
        "the memory of the GPU is full, which no larger machineType changes: take smaller batches, or an accelerator "
        "with more memory",
    ),
    (
        r"(?i)bus error|insufficient shared memory",
        "/dev/shm is full: load data with fewer workers, or take a machineType with more memory",
    ),
    (
        r"low on memory|\bMemoryError\b|Cannot allocate memory",
        "it needs more memory: take a larger machineType or smaller batches",
    ),
    (
        r"status of 137\b",
        "it needs more memory: take a larger machineType or smaller batches; else something has killed it",
    ),
]

_NO_PROGRAM = r"(?:executable file not found|(?:stat [^\n:]+: )?no such file or directory)"
_CLOUD_TOOLS = (
    r"the image has no \1: build upon one that has it (FROM google/cloud-sdk:slim), or do without: files are below "
    "/gcs/, and Python has google-cloud-storage and google-cloud-bigquery"
)
_SHELL = r"(?m)(?:sh|bash|: \d+|line \d+): "
_PROGRAM = [
    *(
        (text, _CLOUD_TOOLS)
        for text in (
            _SHELL + r"(gsutil|gcloud|bq): (?:command )?not found",
            r"No such file or directory: '(gsutil|gcloud|bq)'",
            r'exec: "?(gsutil|gcloud|bq)"?: ' + _NO_PROGRAM,
        )
    ),
    (
        _SHELL + r"\$'\\r': command not found",
        "the script has Windows line ends (CRLF): save it with LF",
    ),
    (
        _SHELL + r"\[(\S+?),?: (?:command )?not found",
        r"CMD or ENTRYPOINT is no list in JSON, so a shell has run its text: write it with double quotes, [\"\1\", …]",
    ),
    (
        _SHELL + r"([\w.+-]+): (?:command )?not found",
        r"the image has no program \1: correct its name, or install what has it in the Dockerfile",
    ),
    (
        r'exec: "?(\w)"?: ' + _NO_PROGRAM,
        r"the command is taken letter by letter (\1, …), as a text was sent where a list belongs: write "
        r'command: ["python", "train.py"]',
    ),
    (
        r'exec: "?(-[^"\n]*?)"?: ' + _NO_PROGRAM,
        r"args, such as a trial's parameters (\1), replace the image's CMD, and it has no ENTRYPOINT: put the program "
        'there (ENTRYPOINT ["python", "train.py"]), or into command',
    ),
    (
        r'exec: "(\S+)( [^"\n]+)": ' + _NO_PROGRAM,
        r'"\1\2" is taken for the name of one program: write each word as an item of a list, ["\1", …]',
    ),
    (
        r'exec: "?([^":\n]+\.(?:sh|py))"?: ' + _NO_PROGRAM,
        r"the image has no \1, or not the program in its first line (#!…), which a Windows line end (CRLF) spoils too: "
        "COPY it there, correct the path, or save it with LF",
    ),
    (
        r'exec: "?([^":\n]+)"?: ' + _NO_PROGRAM,
        r"the image has no program \1: correct the command, or add it to the image",
    ),
    (
        r'exec: "?([^":\n]+)"?: permission denied',
        r"\1 may not be executed: run chmod +x on it before COPY, or start it by its interpreter (bash \1)",
    ),
    (
        r"exec format error",
        "the program is for another processor (build with --platform linux/amd64), or a script without a first line "
        "such as #!/bin/sh",
    ),
]

_LIBRARIES = {
    "cv2": "opencv-python-headless",
    "hypertune": "cloudml-hypertune",
    "PIL": "Pillow",
    "sklearn": "scikit-learn",
    "skimage": "scikit-image",
    "yaml": "PyYAML",
    "google.cloud.aiplatform": "google-cloud-aiplatform",
    "google.cloud.storage": "google-cloud-storage",
    "google.cloud.bigquery": "google-cloud-bigquery",
}
"""Modules whose package has another name."""
_MODULE = [
    (
        r"No module named '([\w.]+)'; '([\w.]+)' is not a package",
        r"a file \2.py hides the package \2, as Python finds it first: rename that file",
    ),
    *(
        (
            rf"No module named '({re.escape(module)})\b",
            rf"the image lacks {package}, which has the Python module \1: add it to the image's requirements",
        )
        for module, package in _LIBRARIES.items()
    ),
    (
        # Without quotes it is of `python -m`, which names the whole path once it has found the package.
        r"No module named ([A-Za-z_]\w*)\.([\w.]+)(?:$|\n)",
        r"the image has the package \1, and no module \1.\2: correct the name in the command, or COPY the file there",
    ),
    (
        r"No module named ([A-Za-z_][\w.]*)(?:$|\n)|Error while finding module specification for '([\w.]+)'",
        r"Python finds no module \1\2 in the working directory and PYTHONPATH: COPY it there (WORKDIR), or correct the "
        "name in the command",
    ),
    (
        r"No module named '([\w.]+)'",
        r"the image has no Python module \1: if it is yours, COPY it to the working directory or add its folder to "
        "PYTHONPATH; else add the package that has it to the image's requirements",
    ),
    (
        r"can't open file '([^'\n]+)'",
        r"the image has no file \1: COPY it there, or correct the path in the command (it begins at WORKDIR)",
    ),
]

_PATH = [
    (
        r"(?:No such file or directory|NotADirectoryError|FileNotFoundError)[^\n]*?'(gs:/[^'\n]+)'",
        r'\1 is a URI and no path: Python opens it below /gcs/, by .replace("gs://", "/gcs/")',
    ),
    (
        r"(?:Read-only file system|Function not implemented): '(/gcs/[^'/\n]+)",
        r"\1 is no bucket that exists, and writing makes none: correct its name, or make it first",
    ),
    (
        r"No such file or directory: '(/gcs/[^'\n]+)'",
        r"\1 is not there: check the bucket and the path, and to write, make its folder first "
        "(os.makedirs(os.path.dirname(path), exist_ok=True)), as Cloud Storage has none of its own",
    ),
]

_ARGUMENTS = [
    (
        r"error: unrecognized arguments: ([^\n]{1,200})",
        r"the program does not know \1: add the argument, or correct its name; a search hands over each parameter as "
        "--ID=VALUE",
    ),
    (
        r"error: argument ([^\n:]{1,80}): invalid int value: '(\d+\.0)'",
        r"\1 comes as \2, as the service has whole numbers of a search as doubles: read it by "
        "type=lambda text: int(float(text))",
    ),
    (
        r"error: the following arguments are required: ([^\n]{1,200})",
        r"the program needs \1: add it to args",
    ),
]

_ACCESS = [
    (
        PERIMETER.pattern,
        "a service perimeter keeps the job from what it asks for: let the perimeter have it (`vertex-training docs "
        "perimeter`)",
    ),
    (
        r"(?:Access Denied: [^\n]*?)?Permission (bigquery\.\S+) denied",
        r"the job's account lacks \1: let the stack grant it by grant: true at the data, or grant "
        "roles/bigquery.dataViewer on the table and roles/bigquery.jobUser on the project",
    ),
    (
        r"(\S+@\S+) does not have (storage\.objects\.(?:create|delete|update))",
        r"\1 lacks the permission \2 there: write below AIP_MODEL_DIR; name the folder in bucket.writableFolders if it "
        "is in the stack's bucket; or grant the account a role on that other bucket",
    ),
    (
        r"(\S+@\S+) does not have (storage\.\S+)",
        r"\1 lacks the permission \2: let the stack grant it by grant: true at the data, or grant it a role on the "
        "bucket, such as roles/storage.objectViewer",
    ),
]

_GOOGLE = [
    (
        r"([a-z0-9-]+\.googleapis\.com) is not emulated at home",
        r"target local has no \1: run the job with --as account or user, name a stand-in in the stack's emulator: "
        r"{endpoints: {\1: URL}}, or give it credentials of its own by GOOGLE_APPLICATION_CREDENTIALS in its env "
        "(`vertex-training docs google`)",
    ),
    (
        r"DefaultCredentialsError|[Dd]efault credentials were not found|could not find default credentials|"
        r"[Cc]ould not (?:automatically determine|load the default) credentials",
        "it finds no credentials: on Vertex AI it has the job's account; on target local it has the emulator's where "
        "containers reach this machine (not with emulator: {egress: false} nor Docker Desktop), else give it its own "
        "by GOOGLE_APPLICATION_CREDENTIALS in its env (`vertex-training docs google`)",
    ),
    (
        r"PKIX path building failed|CERTIFICATE_VERIFY_FAILED|"
        r"self-signed certificate in certificate chain|unable to get local issuer certificate",
        "a client does not trust the server's certificate: on target local, that of Google's names is the emulator's, "
        "which clients with certificates of their own refuse (`vertex-training docs google`)",
    ),
    (
        r"Unable to find your project|[Pp]roject (?:was not passed and )?could not be determined",
        'it finds no project: give the client os.environ["CLOUD_ML_PROJECT_ID"] (`vertex-training docs google`)',
    ),
    (
        r"Permission denied on resource '?(projects/[^'\s/]+)",
        r"\1 is none that the job may use, often that of google.auth.default(), which is Vertex AI's own: give the "
        'client os.environ["CLOUD_ML_PROJECT_ID"] (`vertex-training docs google`)',
    ),
    (
        r"The specified bucket does not exist: ([a-z0-9._-]+[a-z0-9])",
        r"target local has no bucket \1: put its objects below .emulator/gcs/\1, or give them to run and rehearse by "
        r"--inputs DIR, as DIR/\1 (`vertex-training docs google`)",
    ),
    (
        r"Secret \[projects/[^/\]]+/secrets/([\w-]+)\] not found",
        r"the project has no secret \1, or it has no version: correct its name, or add it; on target local, by `pulumi "
        r"config set --secret --path vertex-training:emulator.secrets.\1`, and for run and rehearse by --secret \1 "
        "(`vertex-training docs google`)",
    ),
    (
        r"No such object: ([a-z0-9._-]+/[^\s\"'?]*[^\s\"'?.:])",
        r"gs://\1 is not there: correct its name; on target local, put it at .emulator/gcs/\1, or give it to run and "
        r"rehearse by --inputs DIR, as DIR/\1 (`vertex-training docs google`)",
    ),
    (
        r"[Bb]ucket (?:does not exist|not found)|NoSuchBucket",
        "correct the bucket's name, or create it; on target local, put its objects below .emulator/gcs, or give them "
        "to run and rehearse by --inputs (`vertex-training docs google`)",
    ),
    (
        r"invalid authentication credentials|Invalid Credentials",
        "its token counts on target local alone, while the job runs: the call has reached Google, or the token is that "
        "of another job; the job's log says which clients are not led to the emulator (`vertex-training docs google`)",
    ),
    (
        r"Permission '?([a-z][\w]+\.[\w.]+)'? denied(?: (?:on|for) resource '?([^'\s]+))?",
        r"the job's account lacks \1: grant it a role that has it (`vertex-training docs access`)",
    ),
    (
        r"\b403\b[^\n]*(?:Forbidden|[Pp]ermission|PERMISSION_DENIED)|PermissionDenied: 403",
        "the job's account lacks a permission: the stack grants roles by its identity, and by grant: true at data "
        "(`vertex-training docs access`)",
    ),
]

_CAPACITY = [
    (
        r"exceed quota limits: (\S+)",
        r"the quota \1 is used up: ask for more, take another region or machine, or run fewer jobs at a time",
    ),
    (STOCKOUT, "the region is out of such machines for now: try later, or change the job as below"),
    (r"Internal error occurred", "this is the service's own failure: run it again"),
]

_SUBJECTS = (_MEMORY, _PROGRAM, _MODULE, _PATH, _ARGUMENTS, [*_ACCESS, *_GOOGLE], _CAPACITY)
"""By subject, texts and what they mean, the most special first. They are the service's (its pages on training, and
errors that its users report), Docker's, Python's and Cloud Storage's."""
