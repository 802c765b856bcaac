"""The API's methods on tensorboards, and on the experiments, runs and time series in them.

Their texts are those of recordings and reports, as docs/fidelity.md says.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from vertex_api import types
from vertex_api.messages import KeyPath, int64_as_text
from vertex_api.validation.check import validate_message
from vertex_api.validation.formats import Violation, check_common
from vertex_api.validation.shape import FieldProblem
from vertex_emulator.api import lists
from vertex_emulator.api.lists import ListRequest, Mask
from vertex_emulator.api.uploads import JobUploads
from vertex_emulator.database import Database, Transaction
from vertex_emulator.database.records import Resource
from vertex_emulator.errors import ApiError
from vertex_emulator.http.responses import invalid_argument, malformed_name
from vertex_emulator.names import BOARD_COLLECTIONS, BOARD_PATTERNS, new_id, with_number
from vertex_emulator.representation import operation_json
from vertex_emulator.times import format_time

# Discovery document, WriteTensorboardRunDataRequest and BatchCreateTensorboardRunsRequest.
_MAX_POINTS, _MAX_BATCH = 5000, 1000
# Google's reference, projects.locations.tensorboards.batchRead.
_READ_LIMITS = {"SCALAR": 1000, "TENSOR": 100}
_ID = re.compile("[a-z0-9-]{1,128}")
_SERIES_ID = re.compile("[a-z0-9]{1,128}")


@dataclass(frozen=True)
class _Level:
    """Tensorboards, or one of the collections in them.

    `items` is the field of a list, `id_parameter` the query parameter with the id of a new one, `updates` are the
    fields that a patch may change. `names_are_unique` is about display names.
    """

    noun: str
    items: str
    message: Any
    id_parameter: str
    updates: Sequence[str]
    names_are_unique: bool = False


_NAMED = ("displayName", "description")
_LEVELS = [
    _Level("Tensorboard", "tensorboards", types.Tensorboard, "", (*_NAMED, "labels", "isDefault", "encryptionSpec")),
    _Level(
        "TensorboardExperiment",
        "tensorboardExperiments",
        types.TensorboardExperiment,
        "tensorboardExperimentId",
        (*_NAMED, "labels"),
    ),
    _Level("TensorboardRun", "tensorboardRuns", types.TensorboardRun, "tensorboardRunId", (*_NAMED, "labels"), True),
    _Level(
        "TensorboardTimeSeries",
        "tensorboardTimeSeries",
        types.TensorboardTimeSeries,
        "tensorboardTimeSeriesId",
        (*_NAMED, "pluginData"),
        True,
    ),
]
_BOARD, _EXPERIMENT, _RUN, _SERIES = _LEVELS
ID_PARAMETERS = frozenset(level.id_parameter for level in _LEVELS if level.id_parameter)
"""The query parameters of the methods that create."""


def _level(name: str) -> _Level:
    """Return the level of the name of a resource, or of that of a collection."""
    return _LEVELS[(name.count("/") - 4) // 2]


_FIELDS = lists.Fields[Resource](
    {
        "name": lambda each: each.name,
        "display_name": lambda each: each.spec.get("displayName", ""),
        "create_time": lambda each: format_time(each.created),
        "update_time": lambda each: format_time(each.updated),
        "is_default": lambda each: str(each.spec.get("isDefault", False)).lower(),
        "source": lambda each: each.spec.get("source"),
        "value_type": lambda each: each.spec.get("valueType"),
        "plugin_name": lambda each: each.spec.get("pluginName"),
    },
    labels=lambda each: each.spec.get("labels", {}),
    sortable={
        "display_name": lambda each: str(each.spec.get("displayName", "")),
        "create_time": lambda each: format_time(each.created),
        "update_time": lambda each: format_time(each.updated),
    },
)


@dataclass(frozen=True)
class TensorboardService:
    """The methods on tensorboards, experiments, runs and time series, by their full names with the project's number.

    Those that read first store what jobs have written meanwhile.
    """

    database: Database
    uploads: JobUploads

    def create(self, collection: str, body: Mapping[str, Any], parameters: Mapping[str, str]) -> dict[str, Any]:
        """Create a resource and return it, or for a tensorboard the done operation. Raises ApiError."""
        level = _level(collection)
        given = parameters.get(level.id_parameter, "")
        with self.database.write() as transaction:
            resource = _create(transaction, level, collection, given, body)
            if level != _BOARD:
                return _json(transaction, resource)
            # As recorded, without times and etag.
            response = {"@type": _type(level), **resource.spec, "name": resource.name}
            operation = transaction.operations.add(resource.name, "CreateTensorboardOperationMetadata", response)
        return operation_json(operation)

    def batch_create(self, experiment: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Create runs of an experiment, all or none. Raises ApiError."""
        request = _validated(types.BatchCreateTensorboardRunsRequest, body)
        return self._create_all(_RUN, experiment, "runs", request["requests"])

    def batch_create_series(self, experiment: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Create time series of runs of an experiment, all or none. Raises ApiError."""
        request = _validated(types.BatchCreateTensorboardTimeSeriesRequest, body)
        return self._create_all(_SERIES, experiment, "timeSeries", request["requests"])

    def _create_all(
        self, level: _Level, experiment: str, collection: str, creations: Sequence[Mapping[str, Any]]
    ) -> dict[str, Any]:
        _check_count(len(creations), _MAX_BATCH, "requests")
        field = level.id_parameter.removesuffix("Id")
        with self.database.write() as transaction:
            created = []
            for index, creation in enumerate(creations):
                path = ("requests", index)
                parent = _inside(creation["parent"], experiment, _LEVELS.index(level) - 1, (*path, "parent"))
                given = creation.get(level.id_parameter, "")
                created.append(
                    _create(transaction, level, f"{parent}/{collection}", given, creation[field], (*path, field))
                )
            return {level.items: [_json(transaction, resource) for resource in created]}

    def get(self, name: str) -> dict[str, Any]:
        """Return a resource. Raises ApiError."""
        self.uploads.update(name)
        with self.database.read() as transaction:
            return _json(transaction, _require(transaction, name))

    def list(self, collection: str, list_request: ListRequest) -> dict[str, Any]:
        """Return a page of a collection, the newest first without `orderBy`. Raises ApiError."""
        self.uploads.update(collection)
        level = _level(collection)
        condition = list_request.condition(_FIELDS)
        mask = Mask.parse(list_request.mask, level.message)
        with self.database.read() as transaction:
            _require_parent(transaction, collection)
            rows = [each for each in transaction.tensorboards.of(collection) if _FIELDS.match(condition, each)]
            page, token = list_request.sorted_page(rows, _FIELDS, lambda each: each.sequence, level.noun)
            bodies = [mask.apply(_json(transaction, each)) for each in page]
        return lists.reply(level.items, bodies, token)

    def patch(self, name: str, body: Mapping[str, Any], update_mask: str) -> dict[str, Any]:
        """Change fields of a resource and return it, or for a tensorboard the done operation. Raises ApiError."""
        level = _level(name)
        sent, problems = validate_message(level.message, body, lambda _: (), output_only="drop")
        # Fields that the mask leaves out may be missing.
        if problems := [each for each in problems if each.path != ("displayName",)]:
            raise invalid_argument(problems)
        fields = lists.update_fields(update_mask, level.message)
        with self.database.write() as transaction:
            resource = _require(transaction, name)
            if sent.get("etag", resource.etag) != resource.etag:
                raise ApiError("FAILED_PRECONDITION", f"etag: {name} has changed since it was read; read it again.")
            for field in fields:  # as recorded, a mask may name a field that cannot change and has not
                if field not in level.updates and sent.get(field) != resource.spec.get(field):
                    message = f"{field} cannot be changed; only {', '.join(level.updates)} can"
                    raise ApiError("INVALID_ARGUMENT", f"update_mask: {message}", [("update_mask", message)])
            changes = {field: sent.get(field) for field in fields}
            spec = {field: value for field, value in {**resource.spec, **changes}.items() if value is not None}
            _check(level, spec)
            if level.names_are_unique:
                _check_unique(transaction, level, name.rpartition("/")[0], spec, resource)
            transaction.tensorboards.set_spec(resource, spec)
            changed = _require(transaction, name)
            _keep_one_default(transaction, changed)
            answer = _json(transaction, changed)
            if level != _BOARD:
                return answer
            response = {"@type": _type(level), **answer}
            parent = name.rpartition("/tensorboards/")[0]
            operation = transaction.operations.add(parent, "UpdateTensorboardOperationMetadata", response)
        return operation_json(operation)

    def delete(self, name: str) -> dict[str, Any]:
        """Delete a resource and all that is in it; return a done operation, of what it was in. Raises ApiError."""
        with self.database.write() as transaction:
            _require(transaction, name)
            transaction.tensorboards.delete(name)
            parent = name.rpartition("/")[0].rpartition("/")[0]
            operation = transaction.operations.add(parent, "DeleteOperationMetadata")
        return operation_json(operation)

    def write(self, run: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Store points of a run's time series. Raises ApiError."""
        fields = {key: value for key, value in body.items() if key not in ("tensorboardRun", "tensorboard_run")}
        request = _validated(types.WriteTensorboardRunDataRequest, {**fields, "tensorboardRun": run})
        with self.database.write() as transaction:
            _write(transaction, run, request["timeSeriesData"], ())
        return {}

    def write_runs(self, experiment: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Store points of time series of an experiment's runs, all or none. Raises ApiError."""
        request = _validated(types.WriteTensorboardExperimentDataRequest, body)
        with self.database.write() as transaction:
            for index, each in enumerate(request["writeRunDataRequests"]):
                path = ("writeRunDataRequests", index)
                run = _inside(each["tensorboardRun"], experiment, 2, (*path, "tensorboardRun"))
                _write(transaction, run, each["timeSeriesData"], path)
        return {}

    def read(self, series: str, parameters: Mapping[str, str]) -> dict[str, Any]:
        """Return the points of a time series, at most `maxDataPoints`; -1 means all. Raises ApiError."""
        text = parameters.get("maxDataPoints", "0")
        if parameters.get("filter"):
            raise ApiError("INVALID_ARGUMENT", "filter: this emulator does not filter points; leave it out.")
        if not re.fullmatch("-1|[0-9]{1,9}", text):
            message = f'"{text[:20]}" must be a positive number, or -1 for all points'
            raise invalid_argument([FieldProblem(("maxDataPoints",), message)])
        self.uploads.update(series)
        with self.database.read() as transaction:
            return {"timeSeriesData": _data(transaction, _require(transaction, series), int(text))}

    def batch_read(self, board: str, parameters: Mapping[str, str]) -> dict[str, Any]:
        """Return the points of the time series that `timeSeries` names. Raises ApiError."""
        if not parameters.get("timeSeries"):
            raise invalid_argument([FieldProblem(("timeSeries",), "is required")])
        names = [_inside(name, board, 3, ("timeSeries",)) for name in parameters["timeSeries"].split(",")]
        for name in dict.fromkeys(name.rpartition("/runs/")[0] + "/runs" for name in names):
            self.uploads.update(name)
        with self.database.read() as transaction:
            _require(transaction, board)
            return {"timeSeriesData": [_data(transaction, _require(transaction, name), 0) for name in names]}


def _validated(message_type: Any, body: Mapping[str, Any]) -> Any:
    request, problems = validate_message(message_type, body, lambda _: (), output_only="drop")
    if problems:
        raise invalid_argument(problems)
    return request


def _create(
    transaction: Transaction,
    level: _Level,
    collection: str,
    given: str,
    body: Mapping[str, Any],
    path: KeyPath = (),
) -> Resource:
    """Store a resource with an id of the client's or, where that may be left out, of the emulator's."""
    spec = {field: value for field, value in _check(level, body, path).items() if field != "etag"}
    if not given and level in (_EXPERIMENT, _RUN):
        raise invalid_argument([FieldProblem((*path[:-1], level.id_parameter), "is required")])
    if given and not (_SERIES_ID if level == _SERIES else _ID).fullmatch(given):
        # The service's own text up to "are"; its end is that of Google's client.
        message = f"Valid characters are /[a-z][0-9]{'' if level == _SERIES else '-'}/, at most 128 of them."
        raise invalid_argument([FieldProblem((*path[:-1], level.id_parameter), message)])
    _require_parent(transaction, collection)
    if level.names_are_unique:
        _check_unique(transaction, level, collection, spec)
    name = f"{collection}/{given or new_id()}"
    resource = transaction.tensorboards.add(name, spec)
    if resource is None:
        raise ApiError("ALREADY_EXISTS", f"The {level.noun} {name} already exists.")
    _keep_one_default(transaction, resource)
    return resource


def _check(level: _Level, body: Mapping[str, Any], path: KeyPath = ()) -> Any:
    """Return a message in canonical form. Raises ApiError with every problem."""
    canonical, problems = validate_message(
        level.message, body, lambda message: _violations(level, message), output_only="drop"
    )
    if problems:
        raise invalid_argument([FieldProblem((*path, *each.path), each.message) for each in problems])
    return canonical


def _violations(level: _Level, message: Mapping[str, Any]) -> Iterator[Violation]:
    optional = level == _EXPERIMENT and not message.get("displayName")
    yield from check_common({**message, "displayName": "optional"} if optional else message)
    if level == _SERIES:
        if message.get("valueType", "VALUE_TYPE_UNSPECIFIED") == "VALUE_TYPE_UNSPECIFIED":
            yield ("valueType",), "is required"
        elif message["valueType"] not in _READ_LIMITS:
            yield ("valueType",), f"{message['valueType']} is not supported: the emulator stores no blobs"


def _check_unique(
    transaction: Transaction,
    level: _Level,
    collection: str,
    spec: Mapping[str, Any],
    itself: Resource | None = None,
) -> None:
    """Google's SDK knows a time series that exists by INVALID_ARGUMENT and "already exist" in its text."""
    names = transaction.tensorboards.named(collection, spec["displayName"])
    if [name for name in names if itself is None or name != itself.name]:
        message = f'a {level.noun} with display name "{spec["displayName"]}" already exists'
        raise invalid_argument([FieldProblem(("displayName",), message)])


def _keep_one_default(transaction: Transaction, board: Resource) -> None:
    """The newest default tensorboard of a project and region is the only one (discovery document, isDefault)."""
    if not board.spec.get("isDefault"):
        return
    for other in transaction.tensorboards.of(board.name.rpartition("/")[0]):
        if other.name != board.name and other.spec.get("isDefault"):
            spec = {field: value for field, value in other.spec.items() if field != "isDefault"}
            transaction.tensorboards.set_spec(other, spec)


def _require(transaction: Transaction, name: str) -> Resource:
    """Return a resource. Raises ApiError for the outermost resource of its name that does not exist."""
    _require_parent(transaction, name.rpartition("/")[0])
    resource = transaction.tensorboards.get(name)
    if resource is not None:
        return resource
    level = _level(name)
    if level in (_BOARD, _SERIES) and not name.rpartition("/")[2].isdecimal():
        raise malformed_name(level.noun)
    if level != _BOARD:
        raise ApiError("NOT_FOUND", f"{level.noun} {name} is not found.")
    raise ApiError("NOT_FOUND", "The Tensorboard does not exist.")


def _require_parent(transaction: Transaction, collection: str) -> None:
    parent = collection.rpartition("/")[0]
    if parent.count("/") > 3:  # not a location
        _require(transaction, parent)


def _inside(name: str, outer: str, level: int, path: KeyPath) -> str:
    """Return the full name of a resource of a level in a request on `outer`, which it must be or be in."""
    if re.fullmatch(BOARD_PATTERNS[level], name):
        full = with_number(name)
        if f"{full}/".startswith(f"{outer}/"):
            return full
    message = f'"{name[:200]}" is none of the {BOARD_COLLECTIONS[level]} of {outer}'
    raise invalid_argument([FieldProblem(path, message)])


def _check_count(count: int, limit: int, field: str) -> None:
    if count > limit:
        raise invalid_argument([FieldProblem((field,), f"has {count}; at most {limit} are allowed")])


def _write(transaction: Transaction, run: str, data: Sequence[Mapping[str, Any]], path: KeyPath) -> None:
    _require(transaction, run)
    _check_count(sum(len(each["values"]) for each in data), _MAX_POINTS, "time_series_data")
    for index, each in enumerate(data):
        series = _require(transaction, f"{run}/timeSeries/{each['tensorboardTimeSeriesId']}")
        kind = series.spec["valueType"]
        place = (*path, "timeSeriesData", index)
        if each.get("valueType", kind) != kind:
            message = f"{each['valueType']} is not that of the time series, {kind}"
            raise invalid_argument([FieldProblem((*place, "valueType"), message)])
        for number, point in enumerate(each["values"]):
            if kind.lower() not in point:
                raise invalid_argument([FieldProblem((*place, "values", number, kind.lower()), "is required")])
        transaction.tensorboards.write(series, each["values"])


def _data(transaction: Transaction, series: Resource, limit: int) -> dict[str, Any]:
    """Return the TimeSeriesData of a time series.

    Of more points than `limit` (-1 for none, 0 for the service's own), evenly spaced ones are returned, with the last.
    """
    points = transaction.tensorboards.points(series)
    limit = limit or _READ_LIMITS[series.spec["valueType"]]
    if 0 < limit < len(points):
        points = [points[(number + 1) * len(points) // limit - 1] for number in range(limit)]
    return {
        "tensorboardTimeSeriesId": series.id,
        "valueType": series.spec["valueType"],
        "values": [int64_as_text(types.TimeSeriesDataPoint, point) for point in points],
    }


def _json(transaction: Transaction, resource: Resource) -> dict[str, Any]:
    """Return a resource as GET returns it."""
    body = {
        "name": resource.name,
        **resource.spec,
        "createTime": format_time(resource.created),
        "updateTime": format_time(resource.updated),
        "etag": resource.etag,
    }
    level = _level(resource.name)
    if level == _BOARD:
        # A bucket of the project and region, in which this emulator puts nothing.
        body["blobStoragePathPrefix"] = f"cloud-ai-platform-{uuid5(NAMESPACE_URL, resource.name.rpartition('/')[0])}"
        if runs := transaction.tensorboards.count_runs(resource.name):
            body["runCount"] = runs
    elif level == _SERIES and (extent := transaction.tensorboards.extent(resource)):
        body["metadata"] = {"maxStep": str(extent[0]), **({"maxWallTime": extent[1]} if extent[1] else {})}
    return body


def _type(level: _Level) -> str:
    return f"type.googleapis.com/google.cloud.aiplatform.v1.{level.noun}"
