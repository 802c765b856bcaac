"""What a hostile trainer does in its container, at random: `python3 -c SOURCE SEED SECONDS SECRET HOST:PORT…`.

It knows the path of a secret file of the machine, and services that it must not reach. It stays within limits, so
that it fills neither disk nor memory of the machine that tests it.
"""

import contextlib
import json
import os
import random
import shutil
import signal
import socket
import sys
import time
from pathlib import Path

BUCKETS = [Path(f"/gcs/bucket-{number}") for number in range(4)]
NAMES = ["target", "folder", "folder/secret", "zeros", "changing", "pipe", "deep", "odd", "many", "model", "a b%2F..;é"]
ODD_NAMES = [b"caf\xe9", b"\xff\xfe", b"new\nline", b"\x1b[2J", b"%00", b"x" * 255, "\u202e\U0001f4a3".encode(), b"..."]
LINES = ["x" * 300_000, "[" * 5000, '{"severity": ["ERROR"]}', '{"message": {"a": 1e999}}', "\0\1\x1b]0;t\7", "\ud800"]
EXIT_CODES = [0, 0, 0, 3, 255]


def choose_path() -> Path:
    return dice.choice(BUCKETS) / dice.choice(NAMES)


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def swap_links() -> None:
    aims = [secret, secret.parent, "../../token", "../../emulator.db", "/dev/zero", "/proc/self/mem", "..", "."]
    path, end = choose_path(), time.monotonic() + 0.5
    while time.monotonic() < end:
        remove(path)
        kind = dice.random()
        if kind < 0.5:
            path.symlink_to(dice.choice(aims))
        elif kind < 0.75:
            path.touch()
        else:
            (path / "secret").mkdir(parents=True)


def make_special_files() -> None:
    path, kind = choose_path(), dice.random()
    remove(path)
    if kind < 0.4:
        os.mkfifo(path)
    elif kind < 0.8:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
    else:
        os.mknod(path, 0o20666, os.makedev(5, 1))


def flood_log() -> None:
    for number in range(dice.randrange(5000)):
        print(number, "y" * dice.randrange(200))
    for line in dice.choices(LINES, k=4):
        sys.stdout.buffer.write(line.encode(errors="surrogatepass") + dice.randbytes(50) + b"\n")


def fork_processes() -> None:
    for _ in range(dice.randrange(300)):
        if os.fork() == 0:
            time.sleep(1)
            os._exit(0)


def make_odd_names() -> None:
    folder = dice.choice(BUCKETS)
    for name in dice.sample(ODD_NAMES, 4):
        path = folder / os.fsdecode(name)
        if dice.random() < 0.3:
            path.mkdir(exist_ok=True)
        else:
            path.touch()


def nest_folders() -> None:
    os.chdir(dice.choice(BUCKETS))
    for _ in range(dice.choice([50, 600, 1500])):
        Path("deep").mkdir(exist_ok=True)
        os.chdir("deep")
    Path("file").touch()


def write_metrics() -> None:
    path = Path(os.environ.get("CLOUD_ML_HP_METRIC_FILE") or choose_path())
    odd = ("1", "nan", "1e999", [], {}, -5)
    entries = [{"timestamp": value, "global_step": value, "score": value} for value in odd]
    entries += [{"score": "9" * 5000, "global_step": "9" * 5000}, {"score": str(dice.random())}]
    kind = dice.random()
    if kind < 0.6:
        with path.open("a") as file:
            file.writelines(f"{json.dumps(entry)}\n" for entry in dice.choices(entries, k=dice.randrange(3000)))
    elif kind < 0.8:
        with path.open("ab") as file:
            file.write(dice.choice([b"[", b"{", b"\xff", b"1"]) * dice.randrange(8 << 20))
    else:
        remove(path)
        dice.choice([lambda: os.mkfifo(path), lambda: path.symlink_to(secret), path.mkdir])()


def make_many_files() -> None:
    folder = dice.choice(BUCKETS) / "many"
    folder.mkdir(exist_ok=True)
    for number in range(dice.randrange(3000)):
        path = folder / f"{number:05}"
        path.mkdir(exist_ok=True) if number % 50 == 0 else path.touch()


def change_modes_and_owners() -> None:
    for path in dice.choices([*BUCKETS, *(choose_path() for _ in range(8))], k=8):
        if path.exists() and not path.is_symlink():
            path.chmod(dice.choice([0, 0o4755, 0o1777, 0o200, 0o777]))
            os.chown(path, dice.choice([0, 65534, 2**31]), dice.choice([0, 65534]))


def change_times() -> None:
    nanoseconds = dice.choice([0, -1, -(2**40), 2**40, 2**62, -(2**62)])
    os.utime(choose_path(), ns=(nanoseconds, nanoseconds), follow_symlinks=False)


def change_sizes() -> None:
    path, end = dice.choice(BUCKETS) / "changing", time.monotonic() + 0.5
    while time.monotonic() < end:
        with path.open("ab") as file:
            file.truncate(dice.choice([0, 10, 100_000, 1 << 20, 3 << 20]))
    with (dice.choice(BUCKETS) / "zeros").open("ab") as file:
        file.truncate(1 << 43)


def replace_buckets() -> None:
    bucket, kind = dice.choice(BUCKETS), dice.random()
    if kind < 0.3:
        bucket.rename(f"{dice.choice(BUCKETS)}{dice.choice(['', '.Old'])}")
    else:
        remove(bucket)
        aim = dice.choice([secret.parent, "..", BUCKETS[0]])
        dice.choice([lambda: None, lambda: bucket.symlink_to(aim), lambda: os.mkfifo(bucket), bucket.touch])()
    for path in BUCKETS:
        if dice.random() < 0.7:
            if path.is_symlink() or not path.is_dir():
                remove(path)
            path.mkdir(exist_ok=True)
    for path in Path("/gcs").glob("*.Old"):
        remove(path)


def connect_to_machine() -> None:
    for host, port in (address.split(":") for address in addresses):
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
        except OSError:
            continue
        print("REACHED", host, port)


ACTIONS = [
    *(swap_links, make_special_files, flood_log, fork_processes, make_odd_names, nest_folders, write_metrics),
    *(make_many_files, change_modes_and_owners, change_times, change_sizes, replace_buckets, connect_to_machine),
]


def act(seconds: float) -> int:
    """Do hostile things for so long, remove most of what is large, and end in one of many ways; the exit code."""
    if dice.random() < 0.3:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        action = dice.choice(ACTIONS)
        try:
            action()
        except OSError as error:
            print(action.__name__, type(error).__name__, flush=True)
        os.chdir("/")
    for bucket in BUCKETS:
        with contextlib.suppress(OSError, RecursionError):
            remove(bucket / "many")
            remove(bucket / "deep")
    last = dice.random()
    if last < 0.15:
        os.kill(os.getpid(), signal.SIGSEGV)
    elif last < 0.3:
        time.sleep(600)
    return dice.choice(EXIT_CODES)


if __name__ == "__main__":
    dice = random.Random(sys.argv[1])
    secret, addresses = Path(sys.argv[3]), sys.argv[4:]
    sys.exit(act(float(sys.argv[2])))
