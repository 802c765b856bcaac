"""Vertex ML Metadata: stores, their contexts, executions and artifacts, all in one table by name; and their edges."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json

from vertex_emulator.database.records import Resource, ResourceTable, batches
from vertex_emulator.times import now_ns

CHILD, MEMBER = "CHILD", "MEMBER"
"""The types of a context's edges: to a context in it, and to an artifact or execution of it."""
INPUT, OUTPUT = "INPUT", "OUTPUT"
"""The types of an execution's edges, which the API calls events: to the artifacts that it reads and writes."""
EDGES = (CHILD, MEMBER, INPUT, OUTPUT)
_CONTAINS = f"('{CHILD}', '{MEMBER}')"


@dataclass(frozen=True)
class Edge:
    """An edge between two nodes, which are given by name."""

    source: str
    target: str
    type: str
    created: int
    labels: Mapping[str, str]


class Lineage(ResourceTable):
    """The statements on metadata stores and all that is in them; edges are deleted with either end."""

    table = "lineage_nodes"

    def named(self, names: Iterable[str]) -> dict[str, Resource]:
        """Return the nodes of these names that exist, by name."""
        found = dict[str, Resource]()
        for some in batches(dict.fromkeys(names)):
            query = f"SELECT * FROM lineage_nodes WHERE name IN ({', '.join('?' * len(some))})"
            found |= {row["name"]: Resource.parse(row) for row in self._connection.execute(query, some)}
        return found

    def of(
        self, collection: str, before: int | None = None, inside: str | None = None, around: str | None = None
    ) -> Iterator[Resource]:
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
        return map(Resource.parse, self._connection.execute(query, values))

    def titled(self, schema_title: str) -> list[tuple[Resource, int]]:
        """List the contexts of all stores with a schema, the newest first, each with the number of contexts in it."""
        query = f"""
            SELECT *, (SELECT count(*) FROM lineage_edges WHERE source = sequence AND type = '{CHILD}') AS children
            FROM lineage_nodes WHERE collection LIKE '%/contexts' AND json_extract(spec, '$.schemaTitle') = ?
            ORDER BY sequence DESC
        """
        return [(Resource.parse(row), row["children"]) for row in self._connection.execute(query, (schema_title,))]

    def parents(self, node: Resource) -> list[str]:
        """List the names of the contexts that a node is in, in the order in which it came into them."""
        query = f"""
            SELECT name FROM lineage_edges JOIN lineage_nodes ON sequence = source
            WHERE target = ? AND type IN {_CONTAINS} ORDER BY lineage_edges.created, sequence
        """
        return [row["name"] for row in self._connection.execute(query, (node.sequence,))]

    def children(self, node: Resource) -> list[str]:
        """List the names of the contexts, artifacts and executions in a context."""
        query = f"""
            SELECT name FROM lineage_edges JOIN lineage_nodes ON sequence = target
            WHERE source = ? AND type IN {_CONTAINS} ORDER BY lineage_edges.created, sequence
        """
        return [row["name"] for row in self._connection.execute(query, (node.sequence,))]

    def events(self, nodes: Iterable[Resource]) -> list[Edge]:
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

    def connect(self, source: Resource, target: Resource, type_: str, labels: Mapping[str, str] | None = None) -> None:
        """Add an edge, unless there is one already."""
        query = "SELECT type FROM lineage_edges WHERE source = ? AND target = ?"
        if self._first(query, source.sequence, target.sequence) is None:
            ends = {"source": source.sequence, "target": target.sequence}
            self._insert("lineage_edges", **ends, type=type_, created=now_ns(), labels=labels or {})

    def disconnect(self, source: Resource, target: Resource) -> None:
        """Remove an edge, if there is one."""
        query = "DELETE FROM lineage_edges WHERE source = ? AND target = ?"
        self._connection.execute(query, (source.sequence, target.sequence))
