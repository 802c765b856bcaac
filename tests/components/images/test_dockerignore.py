"""`.dockerignore`: what Docker's builders copy is what a context has, pattern by pattern, in real builds."""

import io
import json
import os
import subprocess
import tarfile
import uuid
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from vertex_training.errors import ContextUnusable
from vertex_training.images.context import BuildContext, DockerfileContext

import tests.buildx

TREE = (
    "Dockerfile",
    "README.md",
    "readme.md",
    "Notes.TXT",
    "a",
    "ab",
    "a.b",
    "axb",
    "b/a",
    "b/c/a",
    "b/c/d.md",
    "b/keep/x.py",
    "b/keep/y.md",
    "bc/a",
    "c[1]",
    "c1",
    "d*e",
    "dxe",
    "e f",
    "größe/日本.txt",
    "#hash",
    "!bang",
    "p(q)+r$",
    ".hidden/x",
    "src/main.py",
    "src/__pycache__/main.pyc",
    "src/deep/__pycache__/x.pyc",
    "src/deep/er/x.py",
    "z\\y",
)
DOCKERFILE = "FROM scratch\nWORKDIR /a-layer-at-least\nCOPY . /\n"
"""Docker saves no image without a layer, as one is to which nothing is copied."""
LINKS = {"link": "a", "folder-link": "b", "src/dangling": "nowhere"}

RULES = {
    "nothing": "",
    "blank lines and comments": "\n# a\n\n   \n#b\n",
    "a comment that is indented is a pattern": "  #hash\n",
    "a name": "a\n",
    "a name without a line's end": "a",
    "Windows line ends": "a\r\nb/c\r\n",
    "a byte order mark": "\ufeffa\n",
    "spaces around": "   a  \t\n",
    "a space within": "e f\n",
    "a slash at the beginning": "/a\n",
    "two slashes at the beginning": "//a\n",
    "a slash at the end of a folder": "b/\n",
    "a slash at the end of a file": "a/\n",
    "a folder": "b\n",
    "a folder with wildcard": "b/*\n",
    "all below a folder": "b/**\n",
    "a file below": "b/c/a\n",
    "a name in every folder": "**/a\n",
    "a name in every folder of a folder": "b/**/a\n",
    "all folders of a name": "**/__pycache__\n",
    "all folders of a name with a slash": "**/__pycache__/\n",
    "all in folders of a name": "**/__pycache__/**\n",
    "an ending at the top": "*.md\n",
    "an ending everywhere": "**/*.md\n",
    "an ending everywhere, short": "**.md\n",
    "a beginning": "src**\n",
    "resync": "*\n",
    "everything, twice": "**\n",
    "everything below the top": "*/*\n",
    "everything two below": "*/*/*\n",
    "any character": "a?b\n",
    "any character is no slash": "b?a\n",
    "a set": "[ab]\n",
    "a range": "[a-b]*\n",
    "a set that is inverted": "[^a]b\n",
    "a set is one character": "c[1]\n",
    "an escaped bracket": "c\\[1\\]\n",
    "an escaped star": "d\\*e\n",
    "a star is no star's own": "d*e\n",
    "a backslash": "z\\\\y\n",
    "an escaped letter is that letter": "\\a.b\n",
    "an escaped exclamation mark": "\\!bang\n",
    "an escaped hash": "\\#hash\n",
    "an escaped letter is a regular expression's": "a*\\b\n",
    "a dot is a dot": "a.b\n",
    "other signs of regular expressions": "p(q)+r$\n",
    "a dot alone": ".\n",
    "a dot and a slash": "./a\n",
    "two dots lead back": "src/../a\n",
    "two dots lead out": "../a\n",
    "a slash alone": "/\n",
    "case counts": "readme.MD\nnotes.txt\n",
    "hidden files": ".*\n",
    "a hidden folder": ".hidden\n",
    "letters beyond ASCII": "größe\n",
    "any letter beyond ASCII": "gr??e/*.txt\n",
    "the Dockerfile": "Dockerfile\n",
    "the ignore file": ".dockerignore\n",
    "both": "Dockerfile\n.dockerignore\n",
    "a link": "link\nsrc/dangling\n",
    "a link to a folder": "folder-link\n",
    "through a link to a folder": "folder-link/a\n",
    "an exception": "*.md\n!README.md\n",
    "an exception that comes too early": "!README.md\n*.md\n",
    "an exception that is taken back": "*.md\n!README.md\nREADME.*\n",
    "all but one folder": "*\n!src\n",
    "all but one folder with a slash": "*\n!src/\n",
    "all but one file below": "*\n!b/keep/x.py\n",
    "all but a wildcard below": "*\n!b/keep/*.py\n",
    "all but an ending everywhere": "**\n!**/*.py\n",
    "all but an ending at the top": "*\n!*.md\n",
    "an excluded parent, a child let in": "b\n!b/keep\n",
    "an excluded parent, all let in": "b\n!b/**\n",
    "an excluded parent, a grandchild let in and out": "b\n!b/keep\nb/keep/y.md\n",
    "a folder out, its parent let in": "b/c\n!b\n",
    "an exception with spaces": "*\n!  src\n",
    "an exception with a slash": "*\n!/src\n",
    "an exception in a range": "*\n![a-b]\n",
    "everything, then everything but": "**\n!src/**\nsrc/**/*.pyc\n",
    "what Python leaves": "**/__pycache__\n**/*.pyc\n.hidden\n!src/deep/__pycache__\n",
}
"""What an ignore file says, by what is tried."""
CLASSIC = (
    "nothing",
    "blank lines and comments",
    "a comment that is indented is a pattern",
    "Windows line ends",
    "a byte order mark",
    "spaces around",
    "two slashes at the beginning",
    "a slash at the end of a file",
    "a name in every folder of a folder",
    "all in folders of a name",
    "an ending everywhere, short",
    "everything below the top",
    "any character is no slash",
    "a range",
    "a set that is inverted",
    "an escaped letter is a regular expression's",
    "a backslash",
    "other signs of regular expressions",
    "two dots lead back",
    "two dots lead out",
    "a slash alone",
    "any letter beyond ASCII",
    "both",
    "through a link to a folder",
    "an exception that is taken back",
    "all but one file below",
    "an excluded parent, a grandchild let in and out",
    "an exception with spaces",
    "an exception with a slash",
    "what Python leaves",
)
"""Rules that the classic builder is asked about: one for each thing that its reader of patterns, an older one, does.

It lets nothing through where `**` comes first and an exception follows ("all but an ending everywhere").
"""
REFUSED = {
    "a bracket that is open": "a\n[a-\n",
    "an empty set": "a\n[]\n",
    "a backslash at the end": "a\nb\\\n",
    "an exclamation mark alone": "a\n!\n",
    "an exclamation mark and a slash": "a\n!/\n",
}


def tree(folder: Path, ignore: str) -> BuildContext:
    for file in TREE:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(DOCKERFILE if file == "Dockerfile" else "")
    for link, target in LINKS.items():
        (folder / link).symlink_to(target)
    (folder / ".dockerignore").write_bytes(ignore.encode())
    return DockerfileContext(folder, "Dockerfile", {}, None, "linux/amd64")


def docker(*arguments: str, buildkit: bool = True) -> bytes:
    environment = os.environ | {"DOCKER_BUILDKIT": str(int(buildkit))}
    return subprocess.run(["docker", *arguments], env=environment, check=True, capture_output=True).stdout


def list_files(archive: tarfile.TarFile) -> set[str]:
    return {member.name for member in archive if not member.isdir()}


def buildx(plugin: Path, folder: Path, contexts: dict[str, BuildContext]) -> dict[str, set[str]]:
    """What `COPY . /` copies of each context with BuildKit, all built by one command; `folder` takes the results."""
    names = {f"row{number}": tried for number, tried in enumerate(contexts)}
    targets = {
        name: {
            "context": str(contexts[tried].folder),
            "dockerfile": contexts[tried].dockerfile,
            "output": [f"type=tar,dest={folder / name}.tar"],
        }
        for name, tried in names.items()
    }
    bake = folder / "bake.json"
    bake.write_text(json.dumps({"group": {"default": {"targets": [*targets]}}, "target": targets}))
    # The plugin is a program of its own as well.
    subprocess.run([plugin, "bake", f"--file={bake}"], check=True, capture_output=True)
    copied = {}
    for name, tried in names.items():
        with tarfile.open(folder / f"{name}.tar") as files:
            copied[tried] = list_files(files)
    return copied


def classic(contexts: dict[str, BuildContext]) -> dict[str, set[str]]:
    """What `COPY . /` copies of each context with the classic builder: the files of its image's layers."""
    image = f"localhost/test-dockerignore-{uuid.uuid4().hex}"
    tags = {tried: f"{image}:{number}" for number, tried in enumerate(contexts)}

    def build(tried: str) -> None:
        # Out of its cache it takes images that another build has just removed.
        options = ("--quiet", "--no-cache", f"--tag={tags[tried]}")
        docker("build", *options, str(contexts[tried].folder), buildkit=False)

    built: list[str] = []
    try:
        with ThreadPoolExecutor(4) as pool:
            for tried, _ in zip(contexts, pool.map(build, contexts), strict=True):
                built.append(tags[tried])
        saved = docker("save", *built)
    finally:
        docker("rmi", *built)
    copied: dict[str, set[str]] = {}
    with tarfile.open(fileobj=io.BytesIO(saved)) as files:
        manifest = files.extractfile("manifest.json")
        assert manifest
        images = {tag: held for held in json.load(manifest) for tag in held["RepoTags"]}
        for tried, tag in tags.items():
            copied[tried] = set()
            for layer in images[tag]["Layers"]:
                with tarfile.open(fileobj=files.extractfile(layer)) as content:
                    copied[tried] |= list_files(content)
    return copied


def list_sent_files(context: BuildContext, copied: set[str]) -> set[str]:
    """The Dockerfile is sent whether it is copied or not: it is what is built."""
    return copied | {context.dockerfile}


def trees(folder: Path, rows: Iterable[str]) -> dict[str, BuildContext]:
    return {tried: tree(folder / str(number), RULES[tried]) for number, tried in enumerate(rows)}


@pytest.fixture(scope="module")
def with_buildkit(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """What is copied in each row."""
    plugin, folder = tests.buildx.program(), tmp_path_factory.mktemp("buildkit")
    return buildx(plugin, folder, trees(folder, RULES))


@pytest.fixture(scope="module")
def with_classic_builder(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """What is copied in each row."""
    return classic(trees(tmp_path_factory.mktemp("classic"), CLASSIC))


@pytest.mark.parametrize("tried", RULES)
def test_buildkit_copies_what_the_context_has(tmp_path: Path, with_buildkit: dict[str, set[str]], tried: str) -> None:
    context = tree(tmp_path, RULES[tried])
    assert set(context.digests) == list_sent_files(context, with_buildkit[tried])


@pytest.mark.parametrize("tried", CLASSIC)
def test_the_classic_builder_copies_the_context(
    tmp_path: Path, with_classic_builder: dict[str, set[str]], tried: str
) -> None:
    context = tree(tmp_path, RULES[tried])
    assert set(context.digests) == list_sent_files(context, with_classic_builder[tried])


def test_the_ignore_file_of_a_dockerfile_wins(tmp_path: Path) -> None:
    contexts = {}
    for number, ignore in enumerate(["", "a\n", "src\n"]):
        folder = tmp_path / str(number)
        contexts[ignore] = replace(tree(folder, "b\n"), dockerfile="src/Dockerfile.gpu")
        (folder / "src/Dockerfile.gpu").write_text(DOCKERFILE)
        (folder / "src/Dockerfile.gpu.dockerignore").write_text(ignore)
    for ignore, copied in buildx(tests.buildx.program(), tmp_path, contexts).items():
        files = set(contexts[ignore].files)
        assert files == list_sent_files(contexts[ignore], copied), ignore
        assert "b/a" in files, "an empty one wins too"


@pytest.mark.parametrize("tried", REFUSED)
def test_an_invalid_pattern_is_named_with_its_line(tmp_path: Path, tried: str) -> None:
    context = tree(tmp_path, REFUSED[tried])
    with pytest.raises(subprocess.CalledProcessError):
        docker("build", "--quiet", str(context.folder), buildkit=False)
    with pytest.raises(ContextUnusable) as refused:
        context.digest  # noqa: B018
    pattern = REFUSED[tried].split("\n")[1]
    assert str(refused.value).startswith(
        f'{tmp_path}/.dockerignore, line 2: "{pattern}" is not a pattern that Docker accepts; '
    )


def test_an_ignored_folder_is_not_entered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda folder: looked.append(Path(folder).name) or scandir(folder))
    for ignore, expected in {"b\n": False, "b\n!src\n": False, "b\n!b/keep\n": True, "b\n!*/keep\n": True}.items():
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        looked.clear()
        assert tree(folder, ignore).files
        assert ("b" in looked) == expected
