from vertex_api import types
from vertex_api.messages import message_fields


def test_a_field_says_what_it_holds() -> None:
    known = message_fields(types.CustomJobSpec)
    assert (known["workerPoolSpecs"].message_type, known["workerPoolSpecs"].cardinality) == (
        types.WorkerPoolSpec,
        "list",
    )
    assert (known["scheduling"].message_type, known["scheduling"].cardinality) == (types.Scheduling, "one")
    assert (known["network"].message_type, known["network"].is_int64) == (None, False)
    assert message_fields(types.CustomJob)["labels"].cardinality == "map"
    assert message_fields(types.WorkerPoolSpec)["replicaCount"].is_int64
    assert not message_fields(types.MachineSpec)["acceleratorCount"].is_int64
