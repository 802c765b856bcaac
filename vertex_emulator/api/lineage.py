"""The API's methods on metadata stores, and on the contexts, executions and artifacts in them (Vertex ML Metadata).

Vertex AI Experiments are contexts: an experiment, and in it a context for each run. Texts are those of reports, as
docs/fidelity.md says.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from pydantic.alias_generators import to_snake

from vertex_api import types
from vertex_api.messages import KeyPath, message_fields
from vertex_api.validation.check import validate_message
from vertex_api.validation.formats import Violation, check_common
from vertex_api.validation.shape import MUST_BE_OBJECT, FieldProblem
from vertex_emulator.api import lists
from vertex_emulator.api.lists import ListRequest
from vertex_emulator.database import Database, Transaction
from vertex_emulator.database.lineage import CHILD, MEMBER, Edge
from vertex_emulator.database.records import Resource
from vertex_emulator.errors import ApiError
from vertex_emulator.filters import And, Comparison, Filter
from vertex_emulator.http.responses import invalid_argument
from vertex_emulator.names import ID_PATTERN, LINEAGE_COLLECTIONS, STORE_PATTERN, new_id, with_number
from vertex_emulator.representation import operation_json
from vertex_emulator.times import format_time

MAX_PAGE_SIZE = 1000
"""Google's reference of each list: "Must be in range 1-1000, inclusive. Defaults to 100."."""
_MAX_NODES = 1000
"""Google's reference of queryContextLineageSubgraph and queryArtifactLineageSubgraph."""
_MAX_PARENTS, _MAX_METADATA_BYTES, _MAX_SAMPLE = 10, 200_000, 100
"""Discovery document: Context.parentContexts, Context.metadata ("200KB"), PurgeContextsResponse.purgeSample."""
_ID = re.compile("[a-z0-9-]{4,128}")
_VALUES = ("number_value", "string_value", "bool_value")
"""The types of values in `metadata` that filters name."""
_NAME = re.compile(rf"{STORE_PATTERN}/({'|'.join(LINEAGE_COLLECTIONS)})/{ID_PATTERN}")


@dataclass(frozen=True)
class _Kind:
    """Stores, contexts, executions or artifacts: `items` is the field of a list, `families` are those of its filter."""

    noun: str
    items: str
    message: Any
    families: Sequence[str] = ()
    texts: Sequence[str] = ("schemaTitle",)
    states: Sequence[str] = ()

    @property
    def id_parameter(self) -> str:
        """The query parameter with the id of a new one."""
        return f"{self.noun[0].lower()}{self.noun[1:]}Id"

    def fields(self, transaction: Transaction) -> lists.Fields[Resource]:
        """Return the fields of filters and orders."""
        times = {
            "create_time": lambda node: format_time(node.created),
            "update_time": lambda node: format_time(node.updated),
        }
        texts = {
            to_snake(name): lambda node, name=name: node.spec.get(name, "") for name in ("displayName", *self.texts)
        }
        families = {
            "metadata": _metadata_text,
            "parent_contexts": lambda node, name: _said(_full(name) in transaction.lineage.parents(node)),
            "in_context": lambda node, name: _said(_full(name) in transaction.lineage.parents(node)),
            "child_contexts": lambda node, name: _said(_full(name) in transaction.lineage.children(node)),
        }
        return lists.Fields[Resource](
            {"name": lambda node: node.name, **texts, **times},
            labels=lambda node: node.spec.get("labels", {}),
            families={name: families[name] for name in ("metadata", *self.families)},
            states=self.states,
            sortable={"display_name": texts["display_name"], **times},
        )


_STORE = _Kind("MetadataStore", "metadataStores", types.MetadataStore)
_KINDS = {
    "contexts": _Kind("Context", "contexts", types.Context, ("parent_contexts", "child_contexts")),
    "executions": _Kind(
        "Execution",
        "executions",
        types.Execution,
        ("in_context",),
        ("schemaTitle", "state"),
        get_args(get_args(types.ExecutionState)[0]),
    ),
    "artifacts": _Kind(
        "Artifact",
        "artifacts",
        types.Artifact,
        ("in_context",),
        ("schemaTitle", "state", "uri"),
        get_args(get_args(types.ArtifactState)[0]),
    ),
}
ID_PARAMETERS = frozenset(kind.id_parameter for kind in (_STORE, *_KINDS.values()))
"""The query parameters of the methods that create."""


def _kind(name: str) -> _Kind:
    """Return the kind of the name of a node, or of that of a collection."""
    parts = name.split("/")
    return _STORE if len(parts) < 7 else _KINDS[parts[6]]


def _store(name: str) -> str:
    """Return the name of the store of a node or a collection in it."""
    return "/".join(name.split("/")[:6])


@dataclass(frozen=True)
class LineageService:
    """The methods on metadata stores and what is in them, by their full names with the project's number."""

    database: Database

    def create(self, collection: str, body: Mapping[str, Any], parameters: Mapping[str, str]) -> dict[str, Any]:
        """Create a node and return it, or for a store the done operation. Raises ApiError."""
        kind = _kind(collection)
        given = parameters.get(kind.id_parameter) or new_id()
        spec = _canonical(kind, body)
        with self.database.write() as transaction:
            node = _create(transaction, kind, f"{collection}/{given}", spec)
            answer = _json(transaction, node)
            if kind != _STORE:
                return answer
            location = collection.rpartition("/")[0]
            response = {"@type": _type(kind.noun), **answer}
            operation = transaction.operations.add(location, "CreateMetadataStoreOperationMetadata", response)
        return operation_json(operation)

    def get(self, name: str) -> dict[str, Any]:
        """Return a node. Raises ApiError."""
        with self.database.read() as transaction:
            return _json(transaction, _require(transaction, name))

    def list(self, collection: str, list_request: ListRequest) -> dict[str, Any]:
        """Return a page of a collection, the newest first without `orderBy`. Raises ApiError."""
        kind = _kind(collection)
        with self.database.read() as transaction:
            _require_store(transaction, collection)
            matching = _matching(transaction, collection, list_request)
            if list_request.order:
                fields = kind.fields(transaction)
                page, token = list_request.sorted_page([*matching], fields, lambda node: node.sequence, kind.noun)
            else:
                page, token = list_request.page(matching, lambda node: node.sequence)
            return lists.reply(kind.items, [_json(transaction, node) for node in page], token)

    def patch(self, name: str, body: Mapping[str, Any], parameters: Mapping[str, str]) -> dict[str, Any]:
        """Change fields of a node, without `updateMask` those that the request has, and return it. Raises ApiError."""
        kind = _kind(name)
        sent = _canonical(kind, body, etag=True)
        mask, known = parameters.get("updateMask", ""), sent.keys() - {"etag"}
        if mask == "*":
            fields: Collection[str] = message_fields(kind.message).keys() - {"etag", "name"}
        else:
            fields = lists.update_fields(mask, kind.message) if mask else known
        changes = {field: sent.get(field) for field in fields if field != "etag"}
        with self.database.write() as transaction:
            if parameters.get("allowMissing") == "true" and transaction.lineage.get(name) is None:
                return _json(transaction, _create(transaction, kind, name, {field: sent[field] for field in known}))
            node = _require(transaction, name)
            if (etag := sent.get("etag", node.etag)) != node.etag:
                message = f"Specified {kind.noun} `etag`: `{etag}` does not match server `etag`: `{node.etag}`"
                raise ApiError("ABORTED", message)
            spec = {field: value for field, value in {**node.spec, **changes}.items() if value is not None}
            return _json(transaction, transaction.lineage.set_spec(node, spec))

    def delete(self, name: str, parameters: Mapping[str, str]) -> dict[str, Any]:
        """Delete a node and all that is in a store; return a done operation. Raises ApiError."""
        with self.database.write() as transaction:
            node = _require(transaction, name)
            if (etag := parameters.get("etag") or node.etag) != node.etag:
                message = f"etag: {etag[:40]} does not match that of {name}, {node.etag}; read it again."
                raise ApiError("FAILED_PRECONDITION", message)
            transaction.lineage.delete(name)
            parent = name.rpartition("/")[0].rpartition("/")[0]
            operation = transaction.operations.add(parent, "DeleteOperationMetadata")
        return operation_json(operation)

    def purge(self, collection: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Delete what a filter matches, without `force` only say what that is; return a done operation.

        Raises ApiError.
        """
        request = _validated(types.PurgeContextsRequest, body)
        plural = f"{_kind(collection).noun}s"
        with self.database.write() as transaction:
            _require_store(transaction, collection)
            nodes = [*_matching(transaction, collection, ListRequest(filter=request["filter"]))]
            response: dict[str, Any] = {"@type": _type(f"Purge{plural}Response"), "purgeCount": str(len(nodes))}
            if request.get("force"):
                for node in nodes:
                    transaction.lineage.delete(node.name)
            elif nodes:
                response["purgeSample"] = [node.name for node in nodes[:_MAX_SAMPLE]]
            operation = transaction.operations.add(_store(collection), f"Purge{plural}Metadata", response)
        return operation_json(operation)

    def add_members(self, context: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Add artifacts and executions to a context; those that it has already are skipped. Raises ApiError."""
        request = _validated(types.AddContextArtifactsAndExecutionsRequest, body, "context")
        with self.database.write() as transaction:
            node = _require(transaction, context)
            for field in ("artifacts", "executions"):
                for member in _members(transaction, context, request, field, field):
                    transaction.lineage.connect(node, member, MEMBER)
        return {}

    def add_children(self, context: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Add contexts to a context; those that it has already are skipped. Raises ApiError."""
        request = _validated(types.AddContextChildrenRequest, body, "context")
        with self.database.write() as transaction:
            node = _require(transaction, context)
            for child in _members(transaction, context, request, "childContexts", "contexts"):
                parents = transaction.lineage.parents(child)
                if node.name in parents:
                    continue
                if child.name in _with_ancestors(transaction, node):
                    message = f"{child.name} would be in itself"
                elif len(parents) >= _MAX_PARENTS:
                    message = f"{child.name} is in {_MAX_PARENTS} contexts already, the most that are allowed"
                else:
                    transaction.lineage.connect(node, child, CHILD)
                    continue
                raise invalid_argument([FieldProblem(("childContexts",), message)])
        return {}

    def remove_children(self, context: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Take contexts out of a context; those that are not in it are skipped. Raises ApiError."""
        request = _validated(types.AddContextChildrenRequest, body, "context")
        with self.database.write() as transaction:
            node = _require(transaction, context)
            for child in _members(transaction, context, request, "childContexts", "contexts"):
                transaction.lineage.disconnect(node, child)
        return {}

    def add_events(self, execution: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Add events to an execution; for an artifact with which it has one already, none. Raises ApiError."""
        request = _validated(types.AddExecutionEventsRequest, body, "execution")
        with self.database.write() as transaction:
            node = _require(transaction, execution)
            for index, event in enumerate(request.get("events", ())):
                if event.get("type", "TYPE_UNSPECIFIED") == "TYPE_UNSPECIFIED":
                    raise invalid_argument([FieldProblem(("events", index, "type"), "is required")])
                path = ("events", index, "artifact")
                artifact = _member(transaction, execution, event["artifact"], "artifacts", path)
                transaction.lineage.connect(node, artifact, event["type"], event.get("labels"))
        return {}

    def inputs_and_outputs(self, execution: str) -> dict[str, Any]:
        """Return an execution with its artifacts and the events in between. Raises ApiError."""
        with self.database.read() as transaction:
            node = _require(transaction, execution)
            events = transaction.lineage.events([node])
            artifacts = transaction.lineage.named(event.target for event in events)
            return _subgraph(transaction, [node, *artifacts.values()], events)

    def of_context(self, context: str) -> dict[str, Any]:
        """Return the artifacts and executions of a context, and the events between these. Raises ApiError."""
        with self.database.read() as transaction:
            node = _require(transaction, context)
            members = transaction.lineage.named(transaction.lineage.children(node))
            nodes = [member for name, member in members.items() if _kind(name) != _KINDS["contexts"]]
            events = transaction.lineage.events(nodes)
            inside = [event for event in events if event.source in members and event.target in members]
            return _subgraph(transaction, nodes, inside)

    def of_artifact(self, artifact: str, parameters: Mapping[str, str]) -> dict[str, Any]:
        """Return what leads to an artifact and what came of it, at most `maxHops` events away. Raises ApiError.

        Artifacts that `filter` does not match are left out, with what they alone lead to.
        """
        hops = parameters.get("maxHops", "")
        if hops and not re.fullmatch("[0-9]{1,9}", hops):
            message = f'"{hops[:20]}" must be a number that is not negative'
            raise invalid_argument([FieldProblem(("maxHops",), message)])
        with self.database.read() as transaction:
            node = _require(transaction, artifact)
            matches = _condition(transaction, "artifacts", ListRequest(filter=parameters.get("filter", "")))
            found, latest, events = {node.name: node}, [node], dict[tuple[str, str], Edge]()
            left = int(hops) if hops else -1
            while latest and left and len(found) <= 2 * _MAX_NODES:
                new = dict[str, Resource]()
                edges = transaction.lineage.events(latest)
                ends = transaction.lineage.named(end for edge in edges for end in (edge.source, edge.target))
                for edge in edges:
                    one, other = ends[edge.source], ends[edge.target]
                    if other.name in found or matches(other):
                        events[edge.source, edge.target] = edge
                        new |= {each.name: each for each in (one, other) if each.name not in found}
                found |= new
                latest, left = [*new.values()], left - 1
            return _subgraph(transaction, [*found.values()], [*events.values()])


def _validated(message_type: Any, body: Mapping[str, Any], itself: str = "") -> Any:
    """Return a request, which may have the name that is in its path, too. Raises ApiError."""
    fields = {key: value for key, value in body.items() if key != (itself or "parent")}
    request, problems = validate_message(message_type, fields, lambda _: (), output_only="drop")
    if problems:
        raise invalid_argument(problems)
    return request


def _canonical(kind: _Kind, body: Mapping[str, Any], *, etag: bool = False) -> dict[str, Any]:
    """Return a message in canonical form, with its metadata as it is. Raises ApiError with every problem."""
    metadata = body.get("metadata")
    rest = {key: value for key, value in body.items() if key not in ("name", *(("metadata",) if metadata else ()))}
    canonical, problems = validate_message(kind.message, rest, _violations, output_only="drop")
    if metadata and kind != _STORE:
        if not isinstance(metadata, Mapping):
            problems = [*problems, FieldProblem(("metadata",), MUST_BE_OBJECT)]
        else:
            metadata = {key.strip(" "): value for key, value in metadata.items()}
            if len(json.dumps(metadata, ensure_ascii=False).encode()) > _MAX_METADATA_BYTES:
                message = f"is larger than {_MAX_METADATA_BYTES} bytes"
                problems = [*problems, FieldProblem(("metadata",), message)]
            canonical = {**canonical, "metadata": metadata}
    if problems:
        raise invalid_argument(problems)
    return {field: value for field, value in canonical.items() if field != "etag" or (etag and value)}


def _violations(message: Mapping[str, Any]) -> Iterator[Violation]:
    yield from check_common({"displayName": "optional", **{key: value for key, value in message.items() if value}})


def _create(transaction: Transaction, kind: _Kind, name: str, spec: Mapping[str, Any]) -> Resource:
    if not _ID.fullmatch(name.rpartition("/")[2]):
        message = "Must be 4-128 characters in length. Valid characters are /[a-z][0-9]-/."
        raise invalid_argument([FieldProblem((kind.id_parameter,), message)])
    _require_store(transaction, name)
    node = transaction.lineage.add(name, spec)
    if node is None:
        raise ApiError("ALREADY_EXISTS", f"{kind.noun} with name {name} already exists")
    return node


def _require(transaction: Transaction, name: str) -> Resource:
    node = transaction.lineage.get(name)
    if node is None:
        noun = _kind(name).noun
        lower = f"{noun[0].lower()}{noun[1:]}"
        message = f"Resource not found.; Get{noun} is unable to find {lower} resource with name: {name}"
        raise ApiError("NOT_FOUND", message)
    return node


def _require_store(transaction: Transaction, name: str) -> None:
    """Raise ApiError if a node or a collection would be in a store that does not exist."""
    if _kind(name) != _STORE:
        _require(transaction, _store(name))


def _members(
    transaction: Transaction, owner: str, request: Mapping[str, Any], field: str, collection: str
) -> Iterator[Resource]:
    for index, name in enumerate(request.get(field, ())):
        yield _member(transaction, owner, name, collection, (field, index))


def _member(transaction: Transaction, owner: str, name: str, collection: str, path: KeyPath) -> Resource:
    """Return a node of a collection of the owner's store by the name that a request has. Raises ApiError."""
    full = _full(name)
    if not full.startswith(f"{_store(owner)}/{collection}/"):
        message = f'"{name[:200]}" is none of the {collection} of {_store(owner)}'
        raise invalid_argument([FieldProblem(path, message)])
    return _require(transaction, full)


def _full(name: str) -> str:
    """Return the name of a node with the project's number, and any other text as it is."""
    return with_number(name) if _NAME.fullmatch(name) else name


def _with_ancestors(transaction: Transaction, node: Resource) -> set[str]:
    found, latest = {node.name}, [node]
    while latest:
        above = {name for each in latest for name in transaction.lineage.parents(each)} - found
        found |= above
        latest = [*transaction.lineage.named(above).values()]
    return found


def _matching(transaction: Transaction, collection: str, list_request: ListRequest) -> Iterator[Resource]:
    """Yield the nodes of a collection that a list asks for, the newest first; those after its position if unordered."""
    condition = _parsed(transaction, collection, list_request)
    fields = _kind(collection).fields(transaction)
    before = None if list_request.order else list_request.position(int)
    inside = _required(condition, "parent_contexts") or _required(condition, "in_context")
    around = _required(condition, "child_contexts")
    nodes = transaction.lineage.of(collection, before, inside, around)
    return (node for node in nodes if fields.match(condition, node))


def _condition(transaction: Transaction, items: str, list_request: ListRequest) -> Any:
    condition, fields = _parsed(transaction, items, list_request), _KINDS[items].fields(transaction)
    return lambda node: fields.match(condition, node)


def _parsed(transaction: Transaction, collection: str, list_request: ListRequest) -> Filter:
    """Return the filter of a list, with the values of metadata as `_metadata_text` writes them. Raises ApiError."""
    kind = _KINDS.get(collection) or _kind(collection)
    return list_request.condition(kind.fields(transaction)).replace(_written)


def _written(comparison: Comparison) -> Comparison:
    family, _, key = comparison.field.partition(".")
    if family != "metadata":
        return comparison
    value, type_name = comparison.value, key.rpartition(".")[2]
    if type_name not in _VALUES:
        text = f"{comparison.field!r} must end with {', '.join(_VALUES)}"
        raise ApiError("INVALID_ARGUMENT", f"Invalid filter: {text}", [("filter", text)])
    if type_name == "number_value":
        try:
            value = repr(float(value))
        except ValueError as error:
            text = f"{comparison.field} must be compared with a number, not {value!r}"
            raise ApiError("INVALID_ARGUMENT", f"Invalid filter: {text}", [("filter", text)]) from error
    return Comparison(comparison.field, comparison.operator, value)


def _required(condition: Filter, family: str) -> str | None:
    """Return the context that a filter demands for anything to match, None if it demands none."""
    terms = condition.terms if isinstance(condition, And) else (condition,)
    for term in terms:
        if isinstance(term, Comparison) and term.field.startswith(f"{family}."):
            return _full(term.field.partition(".")[2])
    return None


def _said(is_so: bool) -> str | None:
    return "" if is_so else None


def _metadata_text(node: Resource, key: str) -> str | None:
    """Return the value that `FIELD.TYPE` names, None if there is none of that type; FIELD may lead into objects."""
    path, _, type_name = key.rpartition(".")
    value: Any = node.spec.get("metadata", {})
    while path:
        if not isinstance(value, Mapping):
            return None
        if path in value:
            value, path = value[path], ""
            break
        head, dot, path = path.partition(".")
        if not dot or head not in value:
            return None
        value = value[head]
    match value:
        case bool():
            return str(value).lower() if type_name == "bool_value" else None
        case int() | float():
            return repr(float(value)) if type_name == "number_value" else None
        case str():
            return value if type_name == "string_value" else None
    return None


def _subgraph(transaction: Transaction, nodes: Sequence[Resource], events: Sequence[Edge]) -> dict[str, Any]:
    """Return a LineageSubgraph. Raises ApiError for more than the service returns."""
    by_kind = {
        items: [_json(transaction, node) for node in nodes if _kind(node.name) == _KINDS[items]]
        for items in ("artifacts", "executions")
    }
    found = {**by_kind, "events": [_event_json(event) for event in events]}
    for items, each in found.items():
        if len(each) > _MAX_NODES:
            message = f"The subgraph has {len(each)} {items}; at most {_MAX_NODES} are returned."
            raise ApiError("FAILED_PRECONDITION", message)
    return {items: each for items, each in found.items() if each}


def _event_json(event: Edge) -> dict[str, Any]:
    ends = {"artifact": event.target, "execution": event.source}
    labels = {"labels": event.labels} if event.labels else {}
    return {**ends, "eventTime": format_time(event.created), "type": event.type, **labels}


def _json(transaction: Transaction, node: Resource) -> dict[str, Any]:
    """Return a node as GET returns it."""
    times = {"createTime": format_time(node.created), "updateTime": format_time(node.updated)}
    body = {"name": node.name, **node.spec, **times}
    kind = _kind(node.name)
    if kind == _STORE:
        return {**body, "state": {}}
    if kind == _KINDS["contexts"] and (parents := transaction.lineage.parents(node)):
        body["parentContexts"] = parents
    return {**body, "etag": node.etag}


def _type(noun: str) -> str:
    return f"type.googleapis.com/google.cloud.aiplatform.v1.{noun}"
