"""Files that a user writes: read strictly, and every problem has its line."""

from pathlib import Path

import pytest

from components.schema.source_file import Source, included


def source(folder: Path, text: str | bytes, name: str = "jobs.yaml") -> Source:
    file = folder / name
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return Source(file, name)


def stack(folder: Path, text: str) -> Source:
    file = folder / "Pulumi.dev.yaml"
    file.write_text(text)
    return Source(file, "stacks/Pulumi.dev.yaml", "vertex-training:")


def unreadable(source: Source) -> str:
    content, problems = source.read()
    assert content == {}
    (problem,) = problems
    return str(problem)


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "---\n", "null\n"])
def test_an_empty_file_holds_nothing(tmp_path: Path, text: str) -> None:
    assert source(tmp_path, text).read() == ({}, [])


def test_json_is_read_as_yaml_is(tmp_path: Path) -> None:
    assert source(tmp_path, '{"vars": {"a": [1, true, null, "x"]}}').read() == (
        {"vars": {"a": [1, True, None, "x"]}},
        [],
    )


def test_a_key_that_stands_twice_is_refused_with_both_lines(tmp_path: Path) -> None:
    text = "images:\n  digits: {uri: a}\n  other: {uri: b}\n  digits: {uri: c}\n"
    assert unreadable(source(tmp_path, text)) == 'jobs.yaml:4: "digits" is there twice, lines 2 and 4'


def test_keys_are_equal_in_mappings_of_their_own(tmp_path: Path) -> None:
    content, problems = source(tmp_path, "images:\n  a: {uri: x}\n  b: {uri: x}\n").read()
    assert (content, problems) == ({"images": {"a": {"uri": "x"}, "b": {"uri": "x"}}}, [])


def test_a_merged_mapping_may_be_overridden_which_is_what_merging_is_for(tmp_path: Path) -> None:
    text = "vars:\n  base: &base {cpu: 1, gpu: 0}\n  big: {<<: *base, gpu: 2}\n"
    assert source(tmp_path, text).read() == (
        {"vars": {"base": {"cpu": 1, "gpu": 0}, "big": {"cpu": 1, "gpu": 2}}},
        [],
    )


def test_a_key_that_stands_twice_beside_a_merge_is_still_refused(tmp_path: Path) -> None:
    text = "vars:\n  base: &base {cpu: 1}\n  big:\n    <<: *base\n    gpu: 2\n    gpu: 3\n"
    assert unreadable(source(tmp_path, text)) == 'jobs.yaml:6: "gpu" is there twice, lines 5 and 6'


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("images:\n  a: b: c\n", 2),
        ("images: {\n", 2),
        ("images:\n\t- x\n", 2),
        ("a: 1\nb: 'unfinished\n", 3),
        ("vars: !unknown {}\n", 1),
        ("a: *nowhere\n", 1),
        ("? [a, b]\n: 1\n", 1),
    ],
)
def test_broken_yaml_is_reported_with_its_line_in_one_line(tmp_path: Path, text: str, line: int) -> None:
    problem = unreadable(source(tmp_path, text))
    assert problem.startswith(f"jobs.yaml:{line}: ")
    assert len(problem.splitlines()) == 1


@pytest.mark.parametrize("text", [b"\x80\x81", b"a: \xe9\n", b"a: \x01\n"])
def test_what_is_no_text_is_reported_in_one_line(tmp_path: Path, text: bytes) -> None:
    problem = unreadable(source(tmp_path, text))
    assert problem.startswith("jobs.yaml")
    assert "is not valid YAML" in problem
    assert len(problem.splitlines()) == 1


def test_two_documents_in_one_file_are_refused(tmp_path: Path) -> None:
    assert unreadable(source(tmp_path, "a: 1\n---\nb: 2\n")).startswith("jobs.yaml:2: ")


@pytest.mark.parametrize("text", ["- a\n", "word\n", "3\n"])
def test_a_file_that_holds_no_object_is_refused(tmp_path: Path, text: str) -> None:
    assert unreadable(source(tmp_path, text)) == "jobs.yaml: must be an object with named fields"


def test_an_alias_to_itself_is_refused_and_no_endless_loop(tmp_path: Path) -> None:
    assert unreadable(source(tmp_path, "vars:\n  loop: &loop [*loop]\n")).startswith("jobs.yaml")


def test_a_file_that_is_gone_is_reported(tmp_path: Path) -> None:
    assert unreadable(Source(tmp_path / "x.yaml", "x.yaml")) == "x.yaml: cannot be read: No such file or directory"


TEXT = """\
vars: {epochs: 5}
customJobs:
  digits:
    job_spec:
      workerPoolSpecs:
        - container_spec:
            imageUri: x
            args:
              - a
              - b
"""
POOL = ("customJobs", "digits", "jobSpec", "workerPoolSpecs", 0)


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("vars", "epochs"), 1),
        (("customJobs",), 2),
        (("customJobs", "digits"), 3),
        (("customJobs", "digits", "jobSpec"), 4),
        ((*POOL, "containerSpec"), 6),
        ((*POOL, "containerSpec", "imageUri"), 7),
        ((*POOL, "containerSpec", "args", 1), 10),
        ((*POOL, "containerSpec", "args", 7), 8),
        ((*POOL, "replicaCount"), 6),
    ],
)
def test_a_place_is_the_line_of_the_deepest_key_that_is_there_in_either_spelling(
    tmp_path: Path, path: tuple[str | int, ...], line: int
) -> None:
    assert source(tmp_path, TEXT).place(path) == f"jobs.yaml:{line}"


def test_the_place_of_what_is_not_there_at_all_is_the_file(tmp_path: Path) -> None:
    assert source(tmp_path, TEXT).place(("images", "a")) == "jobs.yaml"
    assert Source(tmp_path / "gone.yaml", "gone.yaml").place(("images",)) == "gone.yaml"


def test_a_stack_s_keys_stand_under_config_with_the_namespace_and_are_shown_with_it(tmp_path: Path) -> None:
    text = "config:\n  gcp:region: a\n  vertex-training:vars:\n    epochs: 5\n"
    problem = stack(tmp_path, text).problem(("vars", "epochs"), "is odd")
    assert str(problem) == "stacks/Pulumi.dev.yaml:4: vertex-training:vars.epochs: is odd"
    assert stack(tmp_path, text).place(("region",)) == "stacks/Pulumi.dev.yaml:1"


def test_a_stack_s_values_are_quoted_as_they_were_written(tmp_path: Path) -> None:
    text = "config:\n  vertex-training:labels:\n    python: 3.10\n"
    problem = stack(tmp_path, text).problem(("labels", "python"), '3.1 is not a string; write "3.1" in quotes')
    assert problem.place == "stacks/Pulumi.dev.yaml:3"
    assert problem.message == '3.10 is read as the number 3.1; write "3.10" in quotes'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    for name in ("training/b.yaml", "training/a.yml", "training/c.json", "training/notes.md", "training/deep/d.yaml"):
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("{}")
    return root


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        (["training/b.yaml"], ["training/b.yaml"]),
        (["training"], ["training/a.yml", "training/b.yaml", "training/c.json"]),
        (["training/*.yaml"], ["training/b.yaml"]),
        (["training/**/*"], ["training/a.yml", "training/b.yaml", "training/c.json", "training/deep/d.yaml"]),
        (["training/notes.md"], ["training/notes.md"]),
        (["training/b.yaml", "training", "training/b.yaml"], ["training/b.yaml", "training/a.yml", "training/c.json"]),
        ([], []),
    ],
)
def test_include_takes_files_folders_and_globs_each_file_once(
    project: Path, patterns: list[str], names: list[str]
) -> None:
    sources, problems = included(project, patterns, stack(project, ""))
    assert ([source.name for source in sources], problems) == (names, [])
    assert all(source.file == project / source.name for source in sources)


@pytest.mark.parametrize("pattern", ["training/x.yaml", "training/*.md", "nowhere", "/nowhere/*.yaml"])
def test_an_include_that_names_no_file_is_reported_with_its_line(project: Path, pattern: str) -> None:
    text = f"config:\n  vertex-training:include:\n    - training\n    - '{pattern}'\n"
    sources, problems = included(project, ["training/b.yaml", pattern], stack(project, text))
    place = "stacks/Pulumi.dev.yaml:4: vertex-training:include[1]"
    assert [str(problem) for problem in problems] == [f'{place}: "{pattern}" names no file in project/']
    assert [source.name for source in sources] == ["training/b.yaml"]


def test_a_file_outside_of_the_project_is_shown_with_its_whole_path(project: Path, tmp_path: Path) -> None:
    shared = tmp_path / "shared.yaml"
    shared.write_text("{}")
    sources, _ = included(project, [str(shared)], stack(project, ""))
    assert [source.name for source in sources] == [str(shared)]
