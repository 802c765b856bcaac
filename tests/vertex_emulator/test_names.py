import pytest

from vertex_emulator.names import new_id, parse_path, project_number, replica_hostname


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("projects/p/locations/r/customJobs", ("customJobs", None, False, None, None)),
        ("projects/p/locations/r/customJobs/12", ("customJobs", "12", False, None, None)),
        ("projects/p/locations/r/customJobs/12:cancel", ("customJobs", "12", False, None, "cancel")),
        ("projects/p/locations/r/customJobs/12/operations", ("customJobs", "12", True, None, None)),
        ("projects/p/locations/r/customJobs/12/operations/3", ("customJobs", "12", True, "3", None)),
        ("projects/p/locations/r/operations/3:wait", (None, None, True, "3", "wait")),
        ("projects/p/locations/r/operations", (None, None, True, None, None)),
    ],
)
def test_paths_come_apart(text: str, parts: tuple[str | None, ...]) -> None:
    path = parse_path(text)
    assert path is not None
    assert (path.collection, path.id, path.in_operations, path.operation, path.verb) == parts
    assert path.location.project == "p"


@pytest.mark.parametrize("text", ["", "projects/p", "projects/p/locations/r/customJobs/1/2", "projects//locations/r/x"])
def test_other_paths_are_none(text: str) -> None:
    assert parse_path(text) is None


def test_a_project_of_a_domain_keeps_its_colon() -> None:
    path = parse_path("projects/example.com:p/locations/r/customJobs/1")
    assert path is not None
    assert path.location.project == "example.com:p"


def test_a_project_s_number_is_stable_and_digits_stay() -> None:
    assert project_number("123456") == "123456"
    assert project_number("my-project") == project_number("my-project")
    assert len(project_number("my-project")) == 12
    assert project_number("my-project") != project_number("other-project")


def test_ids_are_numbers_of_nineteen_digits_that_fit_int64() -> None:
    ids = {new_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert all(len(each) == 19 and int(each) < 2**63 for each in ids)


def test_host_names_differ_by_place_only_and_share_the_job_s_ten_digits() -> None:
    first, second = replica_hostname("1", 0, 0), replica_hostname("1", 1, 2)
    assert first.split("-")[3] == second.split("-")[3]
    assert len(first.split("-")[3]) == 10
    assert second.startswith("cmle-training-workerpool1-")
    assert second.endswith("-2")
