-- Since version 9 of the schema. Any change of this file needs another SCHEMA_VERSION in connection.py.
CREATE TABLE permissions (
  job TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
  permission TEXT NOT NULL,
  resource TEXT NOT NULL,
  lacking TEXT NOT NULL,
  PRIMARY KEY (job, permission, resource, lacking)
) WITHOUT ROWID;
