-- Any change of this file needs another SCHEMA_VERSION in connection.py.
CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE jobs (
  sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  collection TEXT NOT NULL,
  project TEXT NOT NULL,
  number TEXT NOT NULL,
  region TEXT NOT NULL,
  spec TEXT NOT NULL,
  state TEXT NOT NULL,
  created INTEGER NOT NULL,
  updated INTEGER NOT NULL,
  started INTEGER,
  ended INTEGER,
  ending TEXT,
  study TEXT REFERENCES jobs (id) ON DELETE CASCADE,
  trial INTEGER,
  slots INTEGER NOT NULL,
  replica_outcomes TEXT NOT NULL DEFAULT '[]',
  restarts TEXT NOT NULL DEFAULT '{}',
  fault TEXT,
  served INTEGER
);
CREATE INDEX jobs_listed ON jobs (collection, number, region, sequence) WHERE study IS NULL;
CREATE INDEX jobs_by_state ON jobs (state);
CREATE INDEX jobs_by_study ON jobs (study);
CREATE INDEX jobs_in_queue ON jobs (collection, study, sequence) WHERE state = 'JOB_STATE_QUEUED';
CREATE TABLE trials (
  study TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  state TEXT NOT NULL,
  parameters TEXT NOT NULL,
  job TEXT NOT NULL,
  started INTEGER,
  ended INTEGER,
  measurements TEXT NOT NULL DEFAULT '[]',
  final TEXT,
  infeasible_reason TEXT,
  PRIMARY KEY (study, number)
) WITHOUT ROWID;
CREATE TABLE service_messages (
  sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  job TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
  at INTEGER NOT NULL,
  severity TEXT NOT NULL,
  text TEXT NOT NULL
);
CREATE INDEX service_messages_by_job ON service_messages (job, sequence);
CREATE TABLE operations (
  name TEXT PRIMARY KEY,
  created INTEGER NOT NULL,
  metadata_type TEXT NOT NULL,
  metadata TEXT NOT NULL,
  response TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE injected_faults (
  sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  remaining INTEGER NOT NULL,
  fault TEXT NOT NULL
);
CREATE TABLE pipelines (
  pipeline TEXT PRIMARY KEY REFERENCES jobs (id) ON DELETE CASCADE,
  job TEXT NOT NULL,
  model TEXT,
  best_trial_job TEXT
) WITHOUT ROWID;
CREATE INDEX pipelines_by_job ON pipelines (job);
CREATE TABLE models (
  sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL,
  version INTEGER NOT NULL,
  project TEXT NOT NULL,
  number TEXT NOT NULL,
  region TEXT NOT NULL,
  spec TEXT NOT NULL,
  aliases TEXT NOT NULL,
  created INTEGER NOT NULL,
  updated INTEGER NOT NULL,
  pipeline TEXT,
  UNIQUE (number, region, id, version)
);
