import re

from vertex_emulator.replicas.hostnames import build_cluster_spec_hostname, build_pod_hostname


def test_host_names_share_the_digits_of_their_job() -> None:
    first, second = build_cluster_spec_hostname("1", 0, 0), build_cluster_spec_hostname("1", 1, 2)
    assert first.split("-")[3] == second.split("-")[3]
    assert len(first.split("-")[3]) == 10
    assert second.startswith("cmle-training-workerpool1-")
    assert second.endswith("-2")


def test_a_container_s_own_name_has_a_suffix() -> None:
    names = {build_pod_hostname("1", 0, index) for index in range(3)}
    assert all(
        re.fullmatch(r"cmle-training-workerpool0-[0-9a-f]{10}-[012]-[bcdfghjklmnpqrstvwxz2456789]{5}", name)
        for name in names
    )
    assert len({name[-5:] for name in names}) == 3
    assert build_pod_hostname("1", 0, 0) in names
