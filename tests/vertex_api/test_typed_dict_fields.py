from vertex_api import types
from vertex_api.typed_dict_fields import get_fields_by_name


def test_a_field_says_what_it_holds() -> None:
    known = get_fields_by_name(types.CustomJobSpec)
    assert (known["workerPoolSpecs"].message_type, known["workerPoolSpecs"].cardinality) == (
        types.WorkerPoolSpec,
        "list",
    )
    assert (known["scheduling"].message_type, known["scheduling"].cardinality) == (types.Scheduling, "one")
    assert (known["network"].message_type, known["network"].is_int64) == (None, False)
    assert get_fields_by_name(types.CustomJob)["labels"].cardinality == "map"
    assert get_fields_by_name(types.WorkerPoolSpec)["replicaCount"].is_int64
    assert not get_fields_by_name(types.MachineSpec)["acceleratorCount"].is_int64
