from vertex_emulator.names import Location, new_id, parse_model, project_number


def test_a_model_name_is_parsed() -> None:
    assert parse_model("projects/p/locations/r/models/12") == (Location("p", "r"), "12")
    for text in ("", "projects/p", "projects/p/locations/r/customJobs/1", "projects//locations/r/models/1"):
        assert parse_model(text) is None


def test_domain_projects_keep_their_colon() -> None:
    assert parse_model("projects/example.com:p/locations/r/models/1") == (
        Location("example.com:p", "r"),
        "1",
    )


def test_project_number_is_stable_and_keeps_digits() -> None:
    assert project_number("123456") == "123456"
    assert project_number("my-project") == project_number("my-project")
    assert len(project_number("my-project")) == 12
    assert project_number("my-project") != project_number("other-project")


def test_ids_are_nineteen_digits_that_fit_int64() -> None:
    ids = {new_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert all(len(each) == 19 and int(each) < 2**63 for each in ids)
