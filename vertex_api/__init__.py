"""What the Vertex AI training API is: its messages, rules, names and states, and a client. No Pulumi, no Docker.

- What is sent: `types` (generated), `scalars` (values), `messages` (fields, paths, schemas), `names` (kinds, states).
- What is valid: `validation` (shape, then rules by subject), `pipelines` (with the job that each one runs).
- A job: `job` (the value that everything takes), `jobspec` and `machines` (what Vertex AI fills in), `studies` (metrics
  and trials), `mistakes` (what is allowed and very likely wrong), `estimates` (cost, quota, availability).
- Calls: `client`, `retry`, `credentials`, `transport`, `errors`. Schedules: `schedules`, `cron`.
- Processes: `emulator` (its files and requests), `locks`.
"""

__version__ = "0.1.0"
__all__ = ["__version__"]
