"""The table of needed and granted quotas, as it is shown and read again."""

from vertex_api.estimates.quota import UNLIMITED, parse_quota_table, quota_table

NEEDED = {
    "large": {"a3_cpus": 208, "nvidia_h100_gpus": 8, "pd_ssd": 100},
    "small": {"cpus": 1500, "pd_ssd": 100},
    "other": {"cpus": 1000, "a4 vCPUs*": 224},
    "least": {"cpus": 96},
    "fourth": {"cpus": 4},
}
GRANTED = {"a3_cpus": UNLIMITED, "cpus": 2200, "nvidia_h100_gpus": 0, "pd_ssd": 40960}


def test_the_table_shows_needed_beside_granted() -> None:
    assert quota_table("acme-dev", "us-central1", NEEDED, GRANTED) == [
        "Quota in us-central1: needed by all jobs at once, and granted to acme-dev",
        "  quota             needed    granted",
        "  a3_cpus              208  unlimited",
        "  a4 vCPUs*            224          ?",
        "  cpus               2,600      2,200",
        "  nvidia_h100_gpus       8          0",
        "  pd_ssd               200     40,960",
        "  ? no such quota is listed for the project, or its name is not on file (*)",
    ]


def test_the_mark_is_explained_only_where_it_is_shown() -> None:
    assert not any("?" in line for line in quota_table("p", "r", {"a": {"cpus": 4}}, {"cpus": 4.0}))


def test_what_is_rendered_can_be_parsed() -> None:
    table = "\n".join(quota_table("acme-dev", "us-central1", NEEDED, GRANTED))
    assert parse_quota_table(["Cost in us-central1: …", "", f"{table}\n"]) == {
        "a3_cpus": "unlimited",
        "a4 vCPUs*": "?",
        "cpus": "2,200",
        "nvidia_h100_gpus": "0",
        "pd_ssd": "40,960",
    }
    assert parse_quota_table(["Quota in us-central1: what acme-dev is granted is unknown: no permission"]) == {}
