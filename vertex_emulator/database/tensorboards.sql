-- Since version 6 of the schema. Any change of this file needs another SCHEMA_VERSION in connection.py.
CREATE TABLE tensorboards (
  sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,
  collection TEXT NOT NULL,
  spec TEXT NOT NULL,
  created INTEGER NOT NULL,
  updated INTEGER NOT NULL
);
CREATE INDEX tensorboards_listed ON tensorboards (collection, sequence);
CREATE TABLE tensorboard_points (
  series INTEGER NOT NULL REFERENCES tensorboards (sequence) ON DELETE CASCADE,
  step INTEGER NOT NULL,
  time TEXT NOT NULL,
  point TEXT NOT NULL,
  PRIMARY KEY (series, step)
) WITHOUT ROWID;
