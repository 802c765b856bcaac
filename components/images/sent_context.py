"""How a build context reaches a builder: as an archive, and a Dockerfile that `.dockerignore` leaves out apart from it.

Docker reads such a Dockerfile and lets no `COPY` see it. An archive shows all that it holds, so there BuildKit is given
a folder and the Dockerfile beside it, and the classic builder is told what to remove (in Moby's source, `remotecontext`
removes the Dockerfile and `.dockerignore` where the latter names them).
"""

import io
import re
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from ..errors import ContextUnusable
from .context import BuildContext, let_through
from .package_context import PackageContext

_IGNORE = ".dockerignore"


@contextmanager
def for_buildkit(context: BuildContext) -> Iterator[tuple[str, str, IO[bytes] | int]]:
    """What `docker buildx build` takes: the Dockerfile, where the context is (`-` or a folder), and standard input.

    Raises ContextUnusable for a Dockerfile that is a link to nothing in the context.
    """
    with context.archive() as archive:
        if not _is_hidden(context):
            yield context.dockerfile, "-", archive
            return
        with TemporaryDirectory() as temporary:
            folder, dockerfile = Path(temporary, "context"), Path(temporary, "Dockerfile")
            folder.mkdir()
            # Folders are made on the way: the same ones whatever the umask.
            subprocess.run(["tar", "-xpf", "-", "-C", folder], stdin=archive, umask=0o022, check=True)
            try:
                dockerfile.write_bytes((folder / context.dockerfile).read_bytes())
            except FileNotFoundError:
                raise ContextUnusable(
                    f"{context.folder / context.dockerfile} is a link to what the build cannot see; let it through by "
                    'a line "!…" in .dockerignore'
                ) from None
            (folder / context.dockerfile).unlink()
            # Wins over a .dockerignore in the folder, which has been heeded.
            dockerfile.with_name(f"Dockerfile{_IGNORE}").touch()
            yield str(dockerfile), str(folder), subprocess.DEVNULL


@contextmanager
def for_classic(context: BuildContext) -> Iterator[IO[bytes]]:
    """The archive that the daemon's own builder takes."""
    with context.archive() as archive:
        # Where .dockerignore lets itself through, the daemon reads in it what is to be removed.
        if _is_hidden(context) and _IGNORE not in context.files:
            text = f"{_IGNORE}\n{_literally(context.dockerfile)}\n".encode()
            entry = tarfile.TarInfo(_IGNORE)
            entry.size = len(text)
            with tarfile.open(fileobj=archive, mode="a") as tar:
                tar.addfile(entry, io.BytesIO(text))
            archive.seek(0)
        yield archive


def _is_hidden(context: BuildContext) -> bool:
    """Whether an ignore file leaves the Dockerfile out. One that is written for a package copies no other file."""
    if isinstance(context, PackageContext):
        return False
    return context.dockerfile not in let_through(context.folder, context.dockerfile)


def _literally(path: str) -> str:
    """The pattern that matches a path and nothing else."""
    return re.sub(r"([*?\[\]\\!#])", r"\\\1", path)
