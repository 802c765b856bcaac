"""What a builder takes as its input: the archive of a build context, and an ignored Dockerfile apart from it.

Docker reads a Dockerfile that `.dockerignore` excludes, and lets no `COPY` see it. A `COPY` sees everything in an
archive, so BuildKit is given a folder and the Dockerfile beside it, and the classic builder is told what to remove (in
Moby's source, `remotecontext` removes the Dockerfile and `.dockerignore` if the latter names them).
"""

import re
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from ..errors import ContextUnusable
from ..files.reproducible_tar_archives import add_text_file
from .build_context import BuildContext

_IGNORE_FILE = ".dockerignore"


@contextmanager
def open_buildx_dockerfile_context_and_stdin(context: BuildContext) -> Iterator[tuple[str, str, IO[bytes] | int]]:
    """Yield what `docker buildx build` takes: the Dockerfile, the context (`-` or a folder), and standard input.

    Raises ContextUnusable for a Dockerfile that is a link to nothing in the context.
    """
    with context.open_archive() as archive:
        if not context.is_dockerfile_ignored:
            yield context.dockerfile, "-", archive
            return
        with TemporaryDirectory() as temporary:
            folder, dockerfile = Path(temporary, "context"), Path(temporary, "Dockerfile")
            folder.mkdir()
            # tar creates the folders in between: with the same mode whatever the umask.
            subprocess.run(["tar", "-xpf", "-", "-C", folder], stdin=archive, umask=0o022, check=True)
            try:
                dockerfile.write_bytes((folder / context.dockerfile).read_bytes())
            except FileNotFoundError:
                raise ContextUnusable(
                    f"{context.folder / context.dockerfile} is a link to a file that is not in the build context; "
                    'include that by a line "!…" in .dockerignore'
                ) from None
            (folder / context.dockerfile).unlink()
            # Replaces a .dockerignore in the folder, which is already applied.
            dockerfile.with_suffix(_IGNORE_FILE).touch()
            yield str(dockerfile), str(folder), subprocess.DEVNULL


@contextmanager
def open_classic_builder_input(context: BuildContext) -> Iterator[IO[bytes]]:
    """Yield the archive that the daemon's classic builder takes."""
    with context.open_archive() as archive:
        # If the context contains .dockerignore, the daemon reads there what to remove.
        if context.is_dockerfile_ignored and _IGNORE_FILE not in context.digests_by_context_path:
            with tarfile.open(fileobj=archive, mode="a") as tar:
                pattern = re.sub(r"([*?\[\]\\!#])", r"\\\1", context.dockerfile)
                add_text_file(tar, _IGNORE_FILE, f"{_IGNORE_FILE}\n{pattern}\n")
            archive.seek(0)
        yield archive
