-- A store as schema version 1 wrote it, with a job in the queue.
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
  replicas TEXT NOT NULL DEFAULT '[]'
);
CREATE INDEX jobs_by_parent ON jobs (collection, number, region, sequence);
CREATE INDEX jobs_by_state ON jobs (state);
CREATE INDEX jobs_by_study ON jobs (study);
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
CREATE TABLE service_lines (
  sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  job TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
  at INTEGER NOT NULL,
  severity TEXT NOT NULL,
  text TEXT NOT NULL
);
CREATE INDEX service_lines_by_job ON service_lines (job, sequence);
CREATE TABLE operations (name TEXT PRIMARY KEY, created INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO jobs (id, collection, project, number, region, spec, state, created, updated, slots) VALUES (
  '3078149118468099168', 'customJobs', 'my-project', '123456789012', 'us-central1',
  '{"displayName": "a job", "jobSpec": {"workerPoolSpecs": [{"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": 1, "containerSpec": {"imageUri": "trainer:1"}}]}}',
  'JOB_STATE_QUEUED', 1700000000000000000, 1700000000000000000, 1);
PRAGMA user_version = 1;
