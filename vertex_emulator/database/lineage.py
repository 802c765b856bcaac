"""Vertex ML Metadata: stores, their contexts, executions and artifacts, all in one table by name; and their edges."""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json

from vertex_emulator.database.records import Table, batches
from vertex_emulator.times import now_ns

CHILD, MEMBER = "CHILD", "MEMBER"
"""The types of a context's edges: to a context in it, and to an artifact or execution of it."""
INPUT, OUTPUT = "INPUT", "OUTPUT"
"""The types of an execution's edges, which the API calls events: to the artifacts that it reads and writes."""
EDGES = (CHILD, MEMBER, INPUT, OUTPUT)
_CONTAINS = f"('{CHILD}', '{MEMBER}')"
_MILLISECOND = 10**6


@dataclass(frozen=True)
class Node:
    """A metadata store, context, execution or artifact; `spec` is the request's message in canonical form."""

    sequence: int
    name: str
    spec: Mapping[str, Any]
    created: int
    updated: int

    @property
    def id(self) -> str:
        """The last part of the name."""
        return self.name.rpartition("/")[2]

    @property
    def etag(self) -> str:
        """The time of the last change in ms, as the service's (docs/fidelity.md, captures); each change has another."""
        return str(self.updated // _MILLISECOND)


@dataclass(frozen=True)
class Edge:
    """An edge between two nodes, which are given by name."""

    source: str
    target: str
    type: str
    created: int
    labels: Mapping[str, str]


class Lineage(Table):
    """The statements on metadata stores and all that is in them.

    Names have the project's number. A collection is a name without the id: `…/metadataStores/default/contexts`.
    """

    def add(self, name: str, spec: Mapping[str, Any]) -> Node | None:
        """Store a node and return it; None if its name is taken."""
        now = now_ns()
        try:
            self._insert(
                "lineage_nodes", name=name, collection=name.rpartition("/")[0], spec=spec, created=now, updated=now
            )
        except sqlite3.IntegrityError:
            return None
        return self.get(name)

    def get(self, name: str) -> Node | None:
        """Return a node; None if it does not exist."""
        row = self._first("SELECT * FROM lineage_nodes WHERE name = ?", name)
        return _parse(row) if row else None

    def named(self, names: Iterable[str]) -> dict[str, Node]:
        """Return the nodes of these names that exist, by name."""
        found = dict[str, Node]()
        for some in batches(dict.fromkeys(names)):
            query = f"SELECT * FROM lineage_nodes WHERE name IN ({', '.join('?' * len(some))})"
            found |= {row["name"]: _parse(row) for row in self._connection.execute(query, some)}
        return found

    def of(
        self, collection: str, before: int | None = None, inside: str | None = None, around: str | None = None
    ) -> Iterator[Node]:
        """Yield the nodes of a collection, the newest first: before a sequence, in one context, around another.

        `inside` is the name of a context that has them, `around` that of a context that they have.
        """
        tables, conditions, values = ["lineage_nodes AS node"], ["node.collection = ?"], list[Any]([collection])
        place = "node.sequence"
        for other, own, its in ((around, "source", "target"), (inside, "target", "source")):
            if other is not None:
                found = self._first("SELECT sequence FROM lineage_nodes WHERE name = ?", other)
                place = f"by_{own}.{own}"
                tables.append(f"lineage_edges AS by_{own}")
                conditions += [f"{place} = node.sequence", f"by_{own}.{its} = ?", f"by_{own}.type IN {_CONTAINS}"]
                values.append(found["sequence"] if found else -1)
        if before is not None:
            conditions.append(f"{place} < ?")
            values.append(before)
        query = f"SELECT node.* FROM {', '.join(tables)} WHERE {' AND '.join(conditions)} ORDER BY {place} DESC"
        return map(_parse, self._connection.execute(query, values))

    def titled(self, schema_title: str) -> list[tuple[Node, int]]:
        """List the contexts of all stores with a schema, the newest first, each with the number of contexts in it."""
        query = f"""
            SELECT *, (SELECT count(*) FROM lineage_edges WHERE source = sequence AND type = '{CHILD}') AS children
            FROM lineage_nodes WHERE collection LIKE '%/contexts' AND json_extract(spec, '$.schemaTitle') = ?
            ORDER BY sequence DESC
        """
        return [(_parse(row), row["children"]) for row in self._connection.execute(query, (schema_title,))]

    def parents(self, node: Node) -> list[str]:
        """List the names of the contexts that a node is in, in the order in which it came into them."""
        query = f"""
            SELECT name FROM lineage_edges JOIN lineage_nodes ON sequence = source
            WHERE target = ? AND type IN {_CONTAINS} ORDER BY lineage_edges.created, sequence
        """
        return [row["name"] for row in self._connection.execute(query, (node.sequence,))]

    def children(self, node: Node) -> list[str]:
        """List the names of the contexts, artifacts and executions in a context."""
        query = f"""
            SELECT name FROM lineage_edges JOIN lineage_nodes ON sequence = target
            WHERE source = ? AND type IN {_CONTAINS} ORDER BY lineage_edges.created, sequence
        """
        return [row["name"] for row in self._connection.execute(query, (node.sequence,))]

    def events(self, nodes: Iterable[Node]) -> list[Edge]:
        """List the events that begin or end at one of some nodes, the oldest first."""
        found: dict[tuple[str, str], Edge] = {}
        for some in batches(node.sequence for node in nodes):
            marks = ", ".join("?" * len(some))
            for end in ("source", "target"):
                query = f"""
                    SELECT edge.*, one.name AS source_name, other.name AS target_name
                    FROM lineage_edges AS edge JOIN lineage_nodes AS one ON one.sequence = source
                    JOIN lineage_nodes AS other ON other.sequence = target
                    WHERE {end} IN ({marks}) AND type IN ('INPUT', 'OUTPUT')
                """
                for row in self._connection.execute(query, some):
                    edge = Edge(
                        row["source_name"], row["target_name"], row["type"], row["created"], from_json(row["labels"])
                    )
                    found[edge.source, edge.target] = edge
        return sorted(found.values(), key=lambda edge: (edge.created, edge.source, edge.target))

    def connect(self, source: Node, target: Node, type_: str, labels: Mapping[str, str] | None = None) -> None:
        """Add an edge, unless there is one already."""
        query = "SELECT type FROM lineage_edges WHERE source = ? AND target = ?"
        if self._first(query, source.sequence, target.sequence) is None:
            ends = {"source": source.sequence, "target": target.sequence}
            self._insert("lineage_edges", **ends, type=type_, created=now_ns(), labels=labels or {})

    def disconnect(self, source: Node, target: Node) -> None:
        """Remove an edge, if there is one."""
        query = "DELETE FROM lineage_edges WHERE source = ? AND target = ?"
        self._connection.execute(query, (source.sequence, target.sequence))

    def set_spec(self, node: Node, spec: Mapping[str, Any]) -> Node:
        """Set the fields of a node, and return it as it is now."""
        updated = max(now_ns(), (node.updated // _MILLISECOND + 1) * _MILLISECOND)
        self._update("lineage_nodes", {"sequence": node.sequence}, spec=spec, updated=updated)
        return Node(node.sequence, node.name, spec, node.created, updated)

    def delete(self, name: str) -> None:
        """Delete a node with its edges, and all that is in it if it is a store."""
        # By the index of names: "0" is the character after "/".
        query = "DELETE FROM lineage_nodes WHERE name = ? OR (name > ? AND name < ?)"
        self._connection.execute(query, (name, f"{name}/", f"{name}0"))


def _parse(row: sqlite3.Row) -> Node:
    columns = {name: row[name] for name in ("sequence", "name", "created", "updated")}
    return Node(**columns, spec=from_json(row["spec"]))
