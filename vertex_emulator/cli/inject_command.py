"""The command `inject`: its options, and the requests that it sends."""

import argparse
import json
from pathlib import Path
from typing import Any

from vertex_emulator import faults as faults
from vertex_emulator.errors import InvalidFault

_DEBUG_HINT = (
    "attach to 127.0.0.1:{port}, and to the following ports for further replicas; if a port is in use, the next\n"
    "free one is taken. The job's log has the addresses: vertex-emulator logs JOB --task service"
)
FAULTS_PATH = "/vertex_emulator/faults"
_EPILOG = """\
kinds:
{kinds}

examples:
  vertex-emulator inject quota
  vertex-emulator inject fail --code 13 --message "Internal error occurred for the current attempt"
  vertex-emulator inject fail --exit-code 139 --replica workerpool1-0 --after 5 --name 'train-*'
  vertex-emulator inject preempt --after 10 --times 2
  vertex-emulator inject oom --count 3
  vertex-emulator inject stockout --machine-type a2-highgpu-1g
  vertex-emulator inject second-start --after 5 --run-for 10 --name 'train-*'
  vertex-emulator inject debug --wait --name 'train-*'
  vertex-emulator inject rate --per-minute 60
  vertex-emulator inject unavailable --count 5
  vertex-emulator inject lost-answer
  vertex-emulator inject slow 2.5 --count 10
  vertex-emulator inject --list --json
"""


def add_inject_parser(commands: Any, common: argparse.ArgumentParser) -> None:
    """Add the command to the subparsers of `vertex-emulator`; `common` has the options of all commands."""
    width = max(map(len, faults.FAULT_KINDS))
    parser = commands.add_parser(
        "inject",
        parents=[common],
        help="make the next jobs or requests fail as the service's do, or run the next jobs under a debugger",
        description="Inject a fault into the next job that you create, or the next request. Pending faults are kept\n"
        "in the data folder and survive a restart; each is used once. A trial of a tuning job counts as a job.",
        epilog=_EPILOG.format(
            kinds="\n".join(f"  {kind:{width}}  {text}" for kind, text in faults.FAULT_KINDS.items())
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "kind", nargs="?", choices=list(faults.FAULT_KINDS), metavar="KIND", help="kind of fault, see below"
    )
    parser.add_argument("seconds", nargs="?", type=float, metavar="SECONDS", help="slow: how late the answer is")
    parser.add_argument("--per-minute", type=int, metavar="N", help="rate: jobs created and deleted in a minute")
    parser.add_argument("--machine-type", metavar="TYPE", help="stockout: the machine type that is not to be had")
    parser.add_argument("--name", metavar="PATTERN", help="only jobs whose display name matches; * and ? stand for any")
    parser.add_argument("--count", type=int, metavar="N", help="how many jobs or requests the fault hits (default: 1)")
    parser.add_argument(
        "--after",
        type=float,
        metavar="SECONDS",
        help="how long the job runs before (default: 0); second-start: how long the container waits (default: 70)",
    )
    parser.add_argument(
        "--run-for",
        type=float,
        metavar="SECONDS",
        help="second-start: how long the container runs again until the tear-down (default: 30)",
    )
    parser.add_argument(
        "--times", type=int, metavar="N", help="how often the fault hits a job that is restarted (default: 1)"
    )
    parser.add_argument(
        "--code", type=int, metavar="N", help="fail: code of the job's error, 1 to 16 (google.rpc.Code)"
    )
    parser.add_argument("--message", metavar="TEXT", help="fail: message of the job's error")
    parser.add_argument("--exit-code", type=int, metavar="N", help="fail: exit code of a replica, 1 to 255")
    parser.add_argument(
        "--replica",
        metavar="TASK",
        help="fail, oom: which replica (default: workerpool0-0); debug, second-start: the only one (default: all)",
    )
    parser.add_argument(
        "--wait",
        action="store_true",
        default=None,
        help="debug: Python waits for a debugger before it runs the program",
    )
    parser.add_argument(
        "--port", type=int, metavar="N", help=f"debug: port of the first replica (default: {faults.DEFAULT_DEBUG_PORT})"
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--list", action="store_true", help="list the pending faults")
    which.add_argument("--clear", action="store_true", help="remove the pending faults")
    parser.add_argument("--json", action="store_true", help="with --list: print a JSON array")


def inject_list_or_clear_faults_and_render_lines(data_path: Path, options: argparse.Namespace) -> list[str]:
    """Inject, list or clear faults as the options say, and render lines for the terminal.

    Raises EmulatorNotRunning, InvalidFault and EmulatorError.
    """
    # Imported here because every command builds these options and few send requests.
    from vertex_emulator.cli.emulator_requests import send_request
    from vertex_emulator.data_folder import require_endpoint

    fields = {name: getattr(options, name) for name in faults.FAULT_FIELDS if getattr(options, name) is not None}
    if (options.list or options.clear) and fields:
        raise InvalidFault(f"--{'list' if options.list else 'clear'} takes no other option: omit {', '.join(fields)}")
    if options.json and not options.list:
        raise InvalidFault("--json needs --list")
    if options.clear:
        return [f"cleared {send_request(require_endpoint(data_path), FAULTS_PATH, method='DELETE')['cleared']}"]
    if options.list:
        pending = send_request(require_endpoint(data_path), "/vertex_emulator/status")["faults"]
        if options.json:
            return [json.dumps(pending, indent=2)]
        lines = [faults.describe_fault(each["fault"], each["remaining"]) for each in pending]
        return lines or ["no pending faults"]
    fault = faults.InjectedFault.parse(fields)
    send_request(require_endpoint(data_path), FAULTS_PATH, fault.to_json())
    lines = [f"injected {faults.describe_fault(fault.to_json(), fault.count)}"]
    return [
        *lines,
        *([_DEBUG_HINT.format(port=fault.port or faults.DEFAULT_DEBUG_PORT)] if fault.kind == "debug" else []),
    ]
