"""What an ended container tells beyond its exit code: lines that the emulator adds to a job's log.

The service has no such lines, so each begins with `vertex_api.errors.FOUND_HERE`.
"""

import re
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from difflib import get_close_matches
from itertools import islice
from posixpath import basename, dirname, join

from vertex_api.errors import FOUND_HERE
from vertex_api.jobspec import output_folder, output_folders
from vertex_api.messages import truncate
from vertex_api.names import did_you_mean
from vertex_api.scalars import quote
from vertex_emulator.database.records import Job, Replica
from vertex_emulator.errors import InvalidBucketUri
from vertex_emulator.gcs.files import ROOT, BucketTree, is_bucket
from vertex_emulator.replicas.remains import Remains

_MAX_FILES, _MAX_NAMES, _MAX_NAME = 200, 5, 128
_MAX_ENTRIES = 10_000
"""How many files and folders of a job's outputs are looked at."""
_CODE_FOLDERS = ("/app", "/src", "/code", "/workspace", "/trainer", "/opt/ml/code", "/usr/src/app", "/root", "/")
"""Where public Dockerfiles put a program."""
_MAX_LINE = 10_000
_IN_BUCKET = re.compile(r"(?<![\w./-])/gcs/([a-z0-9][a-z0-9._-]{1,220}[a-z0-9])")
_SCRIPT_WITH_ARGS = 3  # -c, the script, and one argument
_NO_MODULE = re.compile(r"finding module specification for '([\w.]+)'|No module named '?([A-Za-z_][\w.]*)")
_NO_FILE = re.compile(r"can't open file '([^'\n]+)'")


def lost_outputs(job: Job, replica: Replica, remains: Remains) -> Iterator[str]:
    """Say that a program took a `gs://` URI for a path: what it wrote there is in its container, and goes with it."""
    if not remains.has("gs:"):
        return
    folders = output_folders(job.spec["jobSpec"])
    names = [name for name, uri in folders.items() if remains.has(uri.replace("gs://", "gs:/"))]
    what = f"{' and '.join(names)} {'is a URI' if len(names) == 1 else 'are URIs'}" if names else "gs://… is a URI"
    uri = f'os.environ["{names[0]}"]' if names else "URI"
    yield (
        f"{FOUND_HERE}{replica.task_name} has written to the folder {join(remains.folder, 'gs:')} of its container, "
        f"where all is lost, here and on Vertex AI: {what}, no path; "
        f'write to {uri}.replace("gs://", "/gcs/"), or by a client of Cloud Storage'
    )


def missed_fault(job: Job, seconds: float) -> Iterator[str]:
    """Say that an injected fault has hit nothing in a job that has succeeded after so many seconds."""
    fault = job.fault
    if fault is None or fault.kind not in ("fail", "preempt", "oom", "second-start"):
        return
    if fault.kind == "second-start":
        why = "no container has failed"
    elif job.restarts.preemptions or any(job.restarts.attempts.values()):
        return
    else:
        why = f"the job has ended after {seconds:.1f} s, and the fault comes after {fault.after:g} s"
    yield f"{FOUND_HERE}the injected fault {fault.kind} has hit nothing: {why}"


def unlike_storage(job: Job, tree: BucketTree) -> Iterator[str]:
    """Name files below the output folder that Cloud Storage FUSE does not have, and Vertex AI has refused."""
    found: dict[str, str] = {}
    base = output_folder(job.spec["jobSpec"])
    pending, left = [base] if base else [], _MAX_ENTRIES
    while pending and left > 0:
        folder = pending.pop()
        with suppress(OSError, InvalidBucketUri), tree.scan(folder) as entries:
            for entry in islice(entries, left):
                left -= 1
                uri = f"{folder.rstrip('/')}/{entry.name}"
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode):
                    pending.append(uri)
                elif what := _FOREIGN.get(stat.S_IFMT(status.st_mode)):
                    found.setdefault(what, uri)
                elif stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
                    found.setdefault("has a hard link", uri)
    for what, uri in found.items():
        path = uri.replace("gs://", "/gcs/")
        yield f"{FOUND_HERE}{quote(truncate(path))} {what}, which Cloud Storage FUSE refuses on Vertex AI"


_FOREIGN = {
    stat.S_IFIFO: "is a pipe",
    stat.S_IFSOCK: "is a socket",
    stat.S_IFBLK: "is a device",
    stat.S_IFCHR: "is a device",
}


def missing_bucket(lines: Iterable[str], tree: BucketTree) -> Iterator[str]:
    """Say that a program failed at a bucket that nobody has made; `lines` are its last ones."""
    named = dict.fromkeys(match[1] for line in lines for match in _IN_BUCKET.finditer(line[:_MAX_LINE]))
    with tree.scan(ROOT) as entries:
        buckets = {entry.name for entry in islice(entries, _MAX_ENTRIES) if is_bucket(entry.name)}
    for name in [name for name in named if is_bucket(name) and name not in buckets][:_MAX_NAMES]:
        yield (
            f"{FOUND_HERE}there is no bucket {name}, and writing below /gcs makes none, here and on Vertex AI: correct "
            f"the name, or make the bucket before the job starts (gcloud storage buckets create gs://{name}; in a "
            f"rehearsal, a folder of that name in --inputs){did_you_mean(name, buckets)}"
        )


def ignored_args(replica: Replica, remains: Remains) -> Iterator[str]:
    """Say that arguments, such as a trial's parameters, came to a shell that hands none of them on."""
    shell, *rest = remains.words or ("",)
    if basename(shell) not in ("sh", "bash", "dash") or len(rest) < _SCRIPT_WITH_ARGS or rest[0] != "-c":
        return
    _, script, *args = rest
    if not re.search(r"\$(?:[@*0-9]|\{[@*0-9])", script):
        yield (
            f"{FOUND_HERE}{replica.task_name} has ignored its arguments ({truncate(' '.join(args))}): a shell runs "
            f"{quote(truncate(script))}, and does not hand them on; "
            'write ENTRYPOINT or command as a list without a shell (["python", "train.py"]), or add "$@"'
        )


def missing_code(lines: Iterable[str], find_remains: Callable[[], Remains | None]) -> Iterator[str]:
    """Say what a container has where its program looked for a module or a file in vain; `lines` are its last ones."""
    text = "\n".join(lines)
    no_file, no_module = _NO_FILE.search(text), _NO_MODULE.search(text)
    remains = find_remains() if no_file or no_module else None
    if remains is None:
        return
    if no_file:
        path = join(remains.folder, no_file[1])
        yield from _instead(path, dirname(path), remains)
    elif no_module:
        module = no_module[1] or no_module[2]
        path = f"{module.replace('.', '/')}.py"
        top = module.partition(".")[0]
        script = next((word for word in remains.words if word.endswith(".py")), "")
        searched = join(remains.folder, dirname(script))
        is_run = f"-m {top}" in " ".join(remains.words)  # the program itself, and nothing that it imports
        places = [searched, *(place for place in (dirname(searched), *_CODE_FOLDERS) if place != searched)]
        if not is_run:
            places = [place for place in places if place != "/"]  # which has bin, lib and home
        place = next((place for place in places if remains.has(join(place, top))), None)
        if place == searched:
            yield from _instead(join(place, path), join(place, top), remains)
        elif place is not None:
            yield (
                f"{FOUND_HERE}{top} is in {place}, and Python looks in {searched}: set ENV PYTHONPATH={place} in the "
                f"Dockerfile{'' if script else f', or WORKDIR {place}'}"
            )
        elif is_run and remains.folder != "/":
            yield from _instead(join(remains.folder, path), remains.folder, remains)


def _instead(path: str, folder: str, remains: Remains) -> Iterator[str]:
    found = remains.files(folder, _MAX_FILES)
    if found == [""]:
        yield (
            f"{FOUND_HERE}the image has no {path}, as {folder} is a file: "
            f"a folder as the target of COPY ends with / ({folder}/)"
        )
        return
    names = [name for name in found if len(name) <= _MAX_NAME and name.isprintable()]
    has = [join(folder, name) for name in names if name.endswith(".py")]
    if path in has:
        return
    # What looks most like it comes first.
    near = get_close_matches(path, has, _MAX_NAMES) or get_close_matches(basename(path), has, _MAX_NAMES)
    shown = list(dict.fromkeys([*near, *has]))[:_MAX_NAMES]
    more = f" and {len(has) - len(shown)} more" if len(has) > len(shown) else ""
    there = f"has {', '.join(shown)}{more}" if shown else f"has no Python file in {folder}"
    yield f"{FOUND_HERE}the image has no {path}; it {there}"
