-- Since version 7 of the schema. Any change of this file needs another SCHEMA_VERSION in connection.py.
CREATE TABLE usage (
  job TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
  pool INTEGER NOT NULL,
  "index" INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  used TEXT NOT NULL,
  PRIMARY KEY (job, pool, "index", attempt)
) WITHOUT ROWID;
