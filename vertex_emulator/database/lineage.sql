-- Since version 8 of the schema. Any change of this file needs another SCHEMA_VERSION in connection.py.
CREATE TABLE lineage_nodes (
  sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,
  collection TEXT NOT NULL,
  spec TEXT NOT NULL,
  created INTEGER NOT NULL,
  updated INTEGER NOT NULL
);
CREATE INDEX lineage_nodes_listed ON lineage_nodes (collection, sequence);
CREATE TABLE lineage_edges (
  source INTEGER NOT NULL REFERENCES lineage_nodes (sequence) ON DELETE CASCADE,
  target INTEGER NOT NULL REFERENCES lineage_nodes (sequence) ON DELETE CASCADE,
  type TEXT NOT NULL,
  created INTEGER NOT NULL,
  labels TEXT NOT NULL DEFAULT '{}',
  PRIMARY KEY (source, target)
) WITHOUT ROWID;
CREATE INDEX lineage_edges_by_target ON lineage_edges (target);
