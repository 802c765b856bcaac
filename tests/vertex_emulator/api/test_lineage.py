"""Metadata stores, and the contexts, executions and artifacts in them, with what connects these."""

import itertools
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests

from tests.vertex_emulator.running import RunningEmulator, until

LOCATION = "projects/lineage/locations/us-central1"
MISSING = "Resource not found.; Get{} is unable to find {} resource with name: {}"


@pytest.fixture
def store(shared: RunningEmulator) -> Iterator[str]:
    """The name of a new metadata store."""
    made = shared.call("POST", f"v1/{LOCATION}/metadataStores?metadataStoreId=default", {"description": "mine"})
    name = made["response"]["name"]
    yield name
    shared.call("DELETE", f"v1/{name}")


def add(shared: RunningEmulator, store: str, kind: str, id_: str, **fields: Any) -> str:
    """A new node's name."""
    path = f"v1/{store}/{kind}s?{kind}Id={id_}"
    return str(shared.call("POST", path, {"displayName": id_, **fields})["name"])


def message(shared: RunningEmulator, method: str, path: str, body: Any = None, expect: int = 400) -> str:
    """The text with which a request is refused."""
    return str(shared.call(method, path, body, expect=expect)["error"]["message"])


def ids(found: dict[str, Any], items: str) -> list[str]:
    return [each["name"].rpartition("/")[2] for each in found.get(items, ())]


def listed(shared: RunningEmulator, store: str, items: str, **query: Any) -> list[str]:
    """The ids of a list's first page."""
    reply = shared.http.get(f"{shared.url}/v1/{store}/{items}", params=query)
    assert reply.ok, reply.text
    return ids(reply.json(), items)


def test_a_store_is_made_found_and_deleted(shared: RunningEmulator, store: str) -> None:
    found = shared.call("GET", f"v1beta1/{store}")
    assert (found["name"], found["description"], found["state"]) == (store, "mine", {})
    assert ids(shared.call("GET", f"v1/{LOCATION}/metadataStores"), "metadataStores") == ["default"]
    again = message(shared, "POST", f"v1/{LOCATION}/metadataStores?metadataStoreId=default", {}, 409)
    assert again == f"MetadataStore with name {store} already exists"
    second = shared.call("POST", f"v1/{LOCATION}/metadataStores?metadataStoreId=second", {})["response"]["name"]
    context = add(shared, second, "context", "gone")
    shared.call("DELETE", f"v1/{second}")
    assert message(shared, "GET", f"v1/{context}", expect=404) == MISSING.format("Context", "context", context)
    missing = message(shared, "POST", f"v1/{second}/contexts?contextId=gone", {}, 404)
    assert missing == MISSING.format("MetadataStore", "metadataStore", second)


def test_metadata_is_kept_as_it_is_sent(shared: RunningEmulator, store: str) -> None:
    metadata = {" lr ": 0.5, "empty": [], "nothing": None, "deep": {"list": [1, None, {}], "name": "a"}, "yes": True}
    name = add(shared, store, "context", "exact", metadata=metadata, schemaTitle="system.Experiment")
    found = shared.call("GET", f"v1/{name}")
    assert found["metadata"] == {"lr": 0.5, **{key: metadata[key] for key in metadata if key != " lr "}}
    assert message(shared, "PATCH", f"v1/{name}", {"metadata": [1]}).startswith("List of found errors:\t1.Field: metad")
    assert "larger than 200000" in message(shared, "PATCH", f"v1/{name}", {"metadata": {"x": "y" * 200_000}})


def test_ids_are_as_documented(shared: RunningEmulator, store: str) -> None:
    for wrong in ("Upper", "a_b", "abc", "x" * 129):
        assert "1.Field: context_id;" in message(shared, "POST", f"v1/{store}/contexts?contextId={wrong}", {})
    assert shared.call("POST", f"v1/{store}/contexts", {})["name"].rpartition("/")[2].isdecimal()
    name = add(shared, store, "context", "there")
    assert message(shared, "POST", f"v1/{store}/contexts?contextId=there", {}, 409) == (
        f"Context with name {name} already exists"
    )


def test_patches_without_a_mask_change_what_they_have(shared: RunningEmulator, store: str) -> None:
    name = add(shared, store, "execution", "fields", metadata={"a": 1}, description="old", state="NEW")
    read = shared.call("GET", f"v1/{name}")
    changed = shared.call("PATCH", f"v1/{name}", {**read, "metadata": {"b": 2}, "state": 2})
    assert (changed["metadata"], changed["description"], changed["state"]) == ({"b": 2}, "old", "RUNNING")
    masked = shared.call("PATCH", f"v1/{name}?updateMask=description", {"state": "FAILED"})
    assert ("description" in masked, masked["state"]) == (False, "RUNNING")
    everything = shared.call("PATCH", f"v1/{name}?updateMask=*", {"displayName": "new"})
    assert {"displayName"} == everything.keys() - {"name", "createTime", "updateTime", "etag"}
    other = f"{name}-2"
    assert message(shared, "PATCH", f"v1/{other}", {}, 404) == MISSING.format("Execution", "execution", other)
    made = shared.call("PATCH", f"v1/{other}?allowMissing=true", {"displayName": "made"})
    assert (made["name"], made["displayName"]) == (other, "made")


def test_outdated_etags_are_refused(shared: RunningEmulator, store: str) -> None:
    name = add(shared, store, "context", "etags")
    old = shared.call("GET", f"v1/{name}")
    new = old
    for count in range(3):
        new = shared.call("PATCH", f"v1/{name}", {**new, "metadata": {"count": count}})
    assert int(new["etag"]) >= int(old["etag"]) + 3
    reply = shared.call("PATCH", f"v1/{name}", old, expect=409)["error"]
    assert reply["status"] == "ABORTED"
    assert reply["message"] == (
        f"Specified Context `etag`: `{old['etag']}` does not match server `etag`: `{new['etag']}`"
    )
    assert shared.call("DELETE", f"v1/{name}?etag=1", expect=400)["error"]["status"] == "FAILED_PRECONDITION"
    assert shared.call("DELETE", f"v1/{name}?etag={new['etag']}")["done"]


def test_contexts_are_in_contexts(shared: RunningEmulator, store: str) -> None:
    parent, child, other = (add(shared, store, "context", each) for each in ("parent", "child", "other"))
    for _ in range(2):  # the second time, it is there already
        shared.call("POST", f"v1/{parent}:addContextChildren", {"childContexts": [child]})
    assert shared.call("GET", f"v1/{child}")["parentContexts"] == [parent]
    by_id = parent.replace(parent.split("/")[1], "lineage")
    for name in (parent, by_id):
        assert listed(shared, store, "contexts", filter=f'parent_contexts:"{name}"') == ["child"]
        assert listed(shared, store, "contexts", filter=f'NOT parent_contexts:"{name}"') == ["other", "parent"]
    assert listed(shared, store, "contexts", filter=f'child_contexts:"{child}"') == ["parent"]
    shared.call("POST", f"v1/{child}:addContextChildren", {"childContexts": [other]})
    cycle = message(shared, "POST", f"v1/{other}:addContextChildren", {"childContexts": [parent]})
    assert "would be in itself" in cycle
    shared.call("POST", f"v1/{parent}:removeContextChildren", {"childContexts": [child, other]})
    assert "parentContexts" not in shared.call("GET", f"v1/{child}")


def test_a_context_has_ten_parents_at_most(shared: RunningEmulator, store: str) -> None:
    child = add(shared, store, "context", "child")
    parents = [add(shared, store, "context", f"parent-{count}") for count in range(11)]
    for parent in parents[:10]:
        shared.call("POST", f"v1/{parent}:addContextChildren", {"childContexts": [child]})
    text = message(shared, "POST", f"v1/{parents[10]}:addContextChildren", {"childContexts": [child]})
    assert "is in 10 contexts already" in text
    assert len(shared.call("GET", f"v1/{child}")["parentContexts"]) == 10


def test_lists_are_filtered_by_all_that_is_documented(shared: RunningEmulator, store: str) -> None:
    run = add(shared, store, "context", "a-run")
    for count, state in enumerate(("LIVE", "PENDING", "LIVE")):
        metadata = {"loss": count / 2, "name": f"n{count}", "deep": {"a:b": count}, "ok": count == 1}
        fields = {
            "schemaTitle": f"system.{state}",
            "uri": f"gs://b/{count}",
            "state": state,
            "labels": {"n": str(count)},
        }
        name = add(shared, store, "artifact", f"file-{count}", metadata=metadata, **fields)
        if count:
            shared.call("POST", f"v1/{run}:addContextArtifactsAndExecutions", {"artifacts": [name]})
    cases = {
        "": [2, 1, 0],
        'schema_title="system.LIVE"': [2, 0],
        '(schema_title="system.LIVE" OR schema_title="system.PENDING") AND uri="gs://b/1"': [1],
        f'in_context("{run}")': [2, 1],
        f'schema_title="system.LIVE" AND in_context("{run}")': [2],
        f'in_context("{run}-no")': [],
        "metadata.loss.number_value = 1": [2],
        "metadata.loss.number_value < 1.0": [1, 0],
        'metadata.deep."a:b".number_value=2.0': [2],
        "metadata.ok.bool_value = true": [1],
        'metadata.name.string_value = "n0"': [0],
        "metadata.name.number_value = 0": [],
        'state = "PENDING"': [1],
        'display_name = "file-2" OR labels.n = "0"': [2, 0],
        "create_time > 2020-11-19T11:30:00-04:00": [2, 1, 0],
    }
    found = {text: listed(shared, store, "artifacts", filter=text) for text in cases}
    assert found == {text: [f"file-{count}" for count in counts] for text, counts in cases.items()}
    assert listed(shared, store, "artifacts", orderBy="display_name") == ["file-0", "file-1", "file-2"]
    wrong = {"state = DEAD": "not a state", "metadata.loss = 1": "must end with", "size = 1": "cannot be filtered on"}
    wrong["metadata.loss.number_value = x"] = "must be compared with a number"
    for text, reason in wrong.items():
        assert reason in shared.http.get(f"{shared.url}/v1/{store}/artifacts", params={"filter": text}).text


def test_pages_have_each_node_once(shared: RunningEmulator, store: str) -> None:
    parent = add(shared, store, "context", "parent")
    children = [add(shared, store, "context", f"child-{count}") for count in range(7)]
    shared.call("POST", f"v1/{parent}:addContextChildren", {"childContexts": children[::-1]})
    query: dict[str, Any] = {"pageSize": 3, "filter": f'parent_contexts:"{parent}"'}
    for order, expected in (("", children[::-1]), ("create_time", children)):
        found, token = list[str](), ""
        while token or not found:
            params = {**query, "orderBy": order, "pageToken": token}
            page = shared.http.get(f"{shared.url}/v1/{store}/contexts", params=params).json()
            found, token = found + [each["name"] for each in page["contexts"]], page.get("nextPageToken", "")
        assert found == expected
    many = [add(shared, store, "artifact", f"many-{count}") for count in range(101)]
    assert len(listed(shared, store, "artifacts")) == 100
    assert len(listed(shared, store, "artifacts", pageSize=1000)) == len(many)


@pytest.fixture
def graph(shared: RunningEmulator, store: str) -> dict[str, str]:
    """A dataset, of which `train` makes a model, of which `test` makes a report, which alone is not in a context."""
    artifacts = {each: add(shared, store, "artifact", each, state="LIVE") for each in ("dataset", "model", "report")}
    executions = {each: add(shared, store, "execution", each) for each in ("train", "test")}
    for execution, (read, made) in (("train", ("dataset", "model")), ("test", ("model", "report"))):
        events = [{"artifact": artifacts[read], "type": "INPUT"}, {"artifact": artifacts[made], "type": 2}]
        shared.call("POST", f"v1/{executions[execution]}:addExecutionEvents", {"events": events})
    context = add(shared, store, "context", "both")
    members = {"artifacts": [artifacts["dataset"], artifacts["model"]], "executions": [*executions.values()]}
    for _ in range(2):
        shared.call("POST", f"v1/{context}:addContextArtifactsAndExecutions", members)
    return {**artifacts, **executions, "both": context}


def edges(found: dict[str, Any]) -> set[tuple[str, str, str]]:
    last = {
        each: each.rpartition("/")[2] for event in found["events"] for each in (event["artifact"], event["execution"])
    }
    return {(last[event["execution"]], event["type"], last[event["artifact"]]) for event in found["events"]}


def test_lineage_is_found_from_either_end(shared: RunningEmulator, graph: dict[str, str]) -> None:
    of_train = {("train", "INPUT", "dataset"), ("train", "OUTPUT", "model")}
    found = shared.call("GET", f"v1/{graph['train']}:queryExecutionInputsAndOutputs")
    assert (ids(found, "executions"), {*ids(found, "artifacts")}) == (["train"], {"dataset", "model"})
    assert edges(found) == of_train
    found = shared.call("GET", f"v1/{graph['both']}:queryContextLineageSubgraph")
    assert ({*ids(found, "executions")}, {*ids(found, "artifacts")}) == ({"train", "test"}, {"dataset", "model"})
    assert edges(found) == {*of_train, ("test", "INPUT", "model")}
    numbers = shared.call("GET", f"v1/{graph['train']}:queryExecutionInputsAndOutputs?$alt=json;enum-encoding=int")
    assert ({each["type"] for each in numbers["events"]}, numbers["artifacts"][0]["state"]) == ({1, 2}, 2)


def test_lineage_of_an_artifact_has_an_extent(shared: RunningEmulator, graph: dict[str, str]) -> None:
    path = f"v1/{graph['dataset']}:queryArtifactLineageSubgraph"
    whole = shared.call("GET", path)
    assert ({*ids(whole, "artifacts")}, len(whole["events"])) == ({"dataset", "model", "report"}, 4)
    assert shared.call("GET", f"{path}?maxHops=0").keys() == {"artifacts"}
    near = shared.call("GET", f"{path}?maxHops=2")
    assert ({*ids(near, "artifacts")}, ids(near, "executions")) == ({"dataset", "model"}, ["train"])
    shown = shared.http.get(f"{shared.url}/{path}", params={"filter": 'display_name != "model"'}).json()
    assert (ids(shown, "artifacts"), edges(shown)) == (["dataset"], {("train", "INPUT", "dataset")})
    assert "must be a number" in message(shared, "GET", f"{path}?maxHops=-1")
    assert f'"{"9" * 20}" must be' in message(shared, "GET", f"{path}?maxHops={'9' * 30}")


def test_an_artifact_has_one_event_with_an_execution(shared: RunningEmulator, graph: dict[str, str]) -> None:
    again = {"events": [{"artifact": graph["dataset"], "type": "OUTPUT"}]}
    shared.call("POST", f"v1/{graph['train']}:addExecutionEvents", again)
    found = shared.call("GET", f"v1/{graph['train']}:queryExecutionInputsAndOutputs")
    assert edges(found) == {("train", "INPUT", "dataset"), ("train", "OUTPUT", "model")}


def test_edges_end_in_their_own_store(shared: RunningEmulator, store: str) -> None:
    run, execution = add(shared, store, "context", "a-run"), add(shared, store, "execution", "a-step")
    elsewhere = "projects/other/locations/us-central1/metadataStores/default"
    members = f"v1/{run}:addContextArtifactsAndExecutions"
    for wrong in (f"{elsewhere}/artifacts/file", execution, "file"):
        assert "artifacts[0]; Message: " in message(shared, "POST", members, {"artifacts": [wrong]})
    missing = f"{store}/artifacts/missing"
    text = message(shared, "POST", members, {"executions": [execution], "artifacts": [missing]}, 404)
    assert text == MISSING.format("Artifact", "artifact", missing)
    assert shared.call("GET", f"v1/{run}:queryContextLineageSubgraph") == {}  # all or none
    events = f"v1/{execution}:addExecutionEvents"
    file = add(shared, store, "artifact", "file")
    assert "events[0].type; Message: is required" in message(shared, "POST", events, {"events": [{"artifact": file}]})


def test_what_is_deleted_takes_its_edges_along(shared: RunningEmulator, graph: dict[str, str]) -> None:
    shared.call("DELETE", f"v1/{graph['model']}")
    found = shared.call("GET", f"v1/{graph['both']}:queryContextLineageSubgraph")
    assert (ids(found, "artifacts"), edges(found)) == (["dataset"], {("train", "INPUT", "dataset")})


def test_a_purge_tells_before_it_deletes(shared: RunningEmulator, store: str) -> None:
    for count in range(3):
        add(shared, store, "artifact", f"file-{count}", uri=f"gs://b/{count % 2}")
    purge = f"v1/{store}/artifacts:purge"
    told = shared.call("POST", purge, {"filter": 'uri = "gs://b/0"'})["response"]
    assert (told["purgeCount"], [each[-6:] for each in told["purgeSample"]]) == ("2", ["file-2", "file-0"])
    done = shared.call("POST", purge, {"filter": 'uri = "gs://b/0"', "force": True})["response"]
    assert (done["purgeCount"], "purgeSample" in done) == ("2", False)
    assert listed(shared, store, "artifacts") == ["file-1"]
    assert "filter; Message: is required" in message(shared, "POST", purge, {"force": True})


def test_a_kill_loses_nothing_that_was_answered(own: RunningEmulator) -> None:
    made = own.call("POST", f"v1/{LOCATION}/metadataStores?metadataStoreId=default", {})["response"]["name"]
    parent = add(own, made, "context", "experiment")
    answered: dict[str, int] = {}

    def write() -> None:
        with requests.Session() as http:
            http.trust_env = False
            for count in itertools.count():
                run = f"run-{count // 3}"
                name = f"{made}/contexts/{run}"
                body = {"metadata": {"_metrics": {"count": count}}}
                http.patch(f"{url}/v1/{name}?allowMissing=true", json=body).raise_for_status()
                http.post(f"{url}/v1/{parent}:addContextChildren", json={"childContexts": [name]}).raise_for_status()
                answered[run] = count

    url = own.url
    with ThreadPoolExecutor(1) as pool:
        writer = pool.submit(write)
        until(lambda: len(answered) > 20, "some runs")
        own.end(signal.SIGKILL)
        with pytest.raises(requests.ConnectionError):
            writer.result()
    own.start()
    query = {"filter": f'parent_contexts:"{parent}"', "pageSize": 1000}
    found = own.http.get(f"{own.url}/v1/{made}/contexts", params=query).json()["contexts"]
    counts = {each["name"].rpartition("/")[2]: each["metadata"]["_metrics"]["count"] for each in found}
    # What was under way may be there or not.
    assert {run for run, count in answered.items() if counts[run] != count} <= {[*answered][-1]}
    assert all(counts[run] - count in (0, 1) for run, count in answered.items())
