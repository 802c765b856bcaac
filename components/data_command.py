"""The commands `vertex-training data lock` and `data status`: what data is now, beside what `data.lock` says.

They read a stack's declarations without Pulumi, and list data without a download.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from vertex_api import credentials
from vertex_api.names import did_you_mean, location_name

from .data.listing import BUCKET, take
from .data.lock import FILE, Data, Lock, Snapshot, describe, differences, show_size
from .errors import ComponentError
from .runtime import emulator
from .runtime.target import CLOUD_PREFIX, LOCAL_PREFIX
from .settings.offline import SECRET, NoStack, StackFile, read_stack
from .settings.settings import NAMESPACE, Settings


class DataUnknown(ComponentError):
    """The stack does not declare the data: the message names what it declares."""


def lock(stack: str | None, names: Sequence[str]) -> int:
    """Write what a stack's data is now, all or the named, into its lock. Returns the exit code: 0, or 1 if it fails."""
    try:
        file, location, data = _declared(stack, names)
        found = Lock(file.root)
        if not names:
            # What is declared no more has no lock either.
            declared = {each.name for each in data}
            found.snapshots = {
                key: each for key, each in found.snapshots.items() if key[0] != file.name or key[1] in declared
            }
        for each in data:
            before, now = found.find(file.name, each), take(each.uri, file.root, location)
            found.snapshots[file.name, each.name] = now
            _say(f"{each.name}: {_change(before, now)}")
        found.write()
    except (ComponentError, NoStack) as error:
        return _fail(error, 1)
    return 0


def status(stack: str | None, names: Sequence[str]) -> int:
    """Say of a stack's data, all or the named, whether it is as locked.

    Returns the exit code: 0 if all is, 1 if something is not, 2 if that cannot be told.
    """
    try:
        file, location, data = _declared(stack, names)
        found = Lock(file.root)
        differing = 0
        for each in data:
            before = found.find(file.name, each)
            now = take(each.uri, file.root, location)
            if before is None:
                _say(f"{each.name}: is not locked: {_total(now)}; run `vertex-training data lock {each.name}`")
            elif before.digest != now.digest:
                command = f"vertex-training data lock {each.name}"
                _say(f"{each.name}: differs from {FILE}: {differences(before, now)}; run `{command}`")
            else:
                _say(f"{each.name}: is as locked: {_total(now)}")
            differing += before is None or before.digest != now.digest
    except (ComponentError, NoStack) as error:
        return _fail(error, 2)
    return int(differing > 0)


def _declared(stack: str | None, names: Sequence[str]) -> tuple[StackFile, str, list[Data]]:
    """Return a stack's file, where its jobs run, and the data that it declares, all or the named.

    Changes to the folder of the project.

    What is for Google Cloud alone in the stack file is left out: it is nothing that data depends on. Raises
    ComponentError and NoStack.
    """
    file = read_stack(Path.cwd(), stack, "local")
    os.chdir(file.root)
    settings = Settings.load_from_config(file.project, file.name, file.root, file.as_local())
    if unknown := [name for name in names if name not in settings.data]:
        raise DataUnknown(f"{unknown[0]}: is no data of the stack {file.name}{did_you_mean(unknown[0], settings.data)}")
    if not settings.data:
        raise DataUnknown(f"{file.name}: declares no data; write `data: {{train: {{uri: gs://BUCKET/FOLDER/}}}}`")
    data = [each for name, each in settings.data.items() if not names or name in names]
    return file, _location(file, settings, data), data


def _location(file: StackFile, settings: Settings, data: Sequence[Data]) -> str:
    """Return where the stack's jobs run, and let calls be made with the credentials that its file names.

    Starts the emulator of a local stack as `pulumi up` would start it, if a bucket is asked for.
    """
    if file.config.get(f"{NAMESPACE}:target") != "gcp":
        if any(each.uri.startswith(BUCKET) for each in data):
            emulator.start(emulator.serve_options(settings.emulator))
        return LOCAL_PREFIX + location_name("local", "us-central1")
    given = {key: file.config.get(key) for key in credentials.CONFIG_KEYS}
    credentials.use_config({key: None if value == SECRET else value for key, value in given.items()})
    return CLOUD_PREFIX + location_name("-", "us-central1")


def _change(before: Snapshot | None, now: Snapshot) -> str:
    if before is None or before.digest == now.digest:
        return f"{'locked' if before is None else 'as before'}: {_total(now)}"
    return describe(before.summary, now.summary)


def _total(snapshot: Snapshot) -> str:
    noun = snapshot.noun if snapshot.count != 1 else snapshot.noun[:-1]
    return f"{snapshot.count:,} {noun}, {show_size(snapshot.size)}"


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201


def _fail(error: Exception, code: int) -> int:
    sys.stderr.write(f"vertex-training: {error}\n")
    return code
