"""What `--help` shows after the options of `vertex-emulator` and its commands."""

EPILOG = """\
examples:
  vertex-emulator exec -- pytest          run a command against an emulator
  eval "$(vertex-emulator start)"         use one in this shell, until: vertex-emulator stop

exit codes: 0 success, 1 failure, 2 wrong usage, 3 an emulator runs already on the data folder,
4 the job whose log was followed did not succeed, 5 no Docker daemon; for exec see exec --help
"""
COMMAND_EPILOGS = {
    "serve": """\
When it answers, it prints what `vertex-emulator env` prints. It ends with Ctrl-C or `vertex-emulator stop`.

examples:
  vertex-emulator serve
  vertex-emulator serve --data /tmp/my-emulator --port 8600
  vertex-emulator serve --no-egress
""",
    "start": """\
The options of containers are kept in the data folder. An emulator that runs already keeps its own.

examples:
  eval "$(vertex-emulator start)"         start it, and use it in this shell
  vertex-emulator start --json
  vertex-emulator stop
""",
    "exec": """\
The command gets what `vertex-emulator env` prints, and VERTEX_EMULATOR_DATA. Google's Python SDK reads no endpoint
from the environment: for it, PYTHONPATH names a folder whose sitecustomize.py calls aiplatform.init after its import.

The exit code is the command's, or 128 + N if signal N ends it; 125 if the emulator does not start, 126 if the command
cannot be executed, 127 if it is not found. SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1 and SIGUSR2 are passed on.

examples:
  vertex-emulator exec -- pytest
  vertex-emulator exec --project my-project -- python train.py
  vertex-emulator exec -- sh -c 'gcloud ai custom-jobs list'
""",
    "env": """\
examples:
  eval "$(vertex-emulator env)"
  gcloud ai custom-jobs list

  vertex-emulator env --json
""",
    "status": """\
examples:
  vertex-emulator status
  vertex-emulator status --json
""",
    "stop": """\
examples:
  vertex-emulator stop
  vertex-emulator stop --if-idle
""",
    "logs": """\
With --follow the last line is the job's state, and the exit code is 4 if the job did not succeed.
If the emulator is restarted meanwhile, the command waits for it for up to a minute.

examples:
  vertex-emulator logs --follow 1234567890
  vertex-emulator logs --task workerpool0-0 --json projects/local/locations/us-central1/customJobs/1234567890
""",
    "shell": """\
examples:
  vertex-emulator shell 1234567890
  vertex-emulator shell 1234567890 --task workerpool1-0
  echo 'ls /gcs' | vertex-emulator shell 1234567890
""",
    "tensorboard": """\
It runs until Ctrl-C; the exit code is TensorBoard's. Trials that start meanwhile are added.

examples:
  vertex-emulator tensorboard 1234567890
  vertex-emulator tensorboard --port 6007 projects/local/locations/us-central1/hyperparameterTuningJobs/1234567890
""",
    "export": """\
The archive is for its owner only. Specs of jobs and logs are in it as they are: look through them before you give it
to others, or leave out values of environment variables with --redact-env.

examples:
  vertex-emulator export tests/fixture.tar.gz
  vertex-emulator export --redact-env report.tar.gz
""",
    "import": """\
examples:
  vertex-emulator import tests/fixture.tar.gz --data .emulator-tests
  vertex-emulator import tests/fixture.tar.gz --replace --yes
""",
    "prune": """\
examples:
  vertex-emulator prune --older-than 7d --dry-run
  vertex-emulator prune --older-than 7d --outputs --yes
""",
    "reset": """\
example:
  vertex-emulator reset --yes
""",
}
