from vertex_emulator.replicas.hostnames import build_replica_hostname


def test_host_names_share_the_digits_of_their_job() -> None:
    first, second = build_replica_hostname("1", 0, 0), build_replica_hostname("1", 1, 2)
    assert first.split("-")[3] == second.split("-")[3]
    assert len(first.split("-")[3]) == 10
    assert second.startswith("cmle-training-workerpool1-")
    assert second.endswith("-2")
