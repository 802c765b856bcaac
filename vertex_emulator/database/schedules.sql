-- Since version 5 of the schema. Any change of this file needs another SCHEMA_VERSION in connection.py.
CREATE TABLE schedules (
  sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL,
  project TEXT NOT NULL,
  number TEXT NOT NULL,
  region TEXT NOT NULL,
  cron TEXT NOT NULL,
  time_zone TEXT NOT NULL,
  paused INTEGER NOT NULL,
  overlap TEXT NOT NULL,
  jobs TEXT NOT NULL,
  created INTEGER NOT NULL,
  handled_until INTEGER NOT NULL,
  UNIQUE (number, region, id)
);
CREATE TABLE schedule_runs (
  sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  schedule INTEGER NOT NULL REFERENCES schedules (sequence) ON DELETE CASCADE,
  run_id TEXT NOT NULL,
  time INTEGER NOT NULL,
  fired INTEGER NOT NULL,
  state TEXT NOT NULL,
  reason TEXT,
  jobs TEXT NOT NULL,
  submitted TEXT NOT NULL DEFAULT '{}'
);
CREATE UNIQUE INDEX schedule_runs_by_time ON schedule_runs (schedule, time) WHERE NOT fired;
CREATE INDEX schedule_runs_by_schedule ON schedule_runs (schedule, sequence);
CREATE INDEX schedule_runs_under_way ON schedule_runs (schedule) WHERE state = 'RUNNING';
