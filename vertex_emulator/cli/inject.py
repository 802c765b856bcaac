"""`python -m vertex_emulator inject`: its options, and the commands behind it."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vertex_emulator import injected_faults as faults
from vertex_emulator.errors import InvalidFault

_FAULTS = "/vertex_emulator/faults"
_EPILOG = """\
kinds:
{kinds}

examples:
  python -m vertex_emulator inject quota
  python -m vertex_emulator inject fail --code 13 --message "Internal error occurred for the current attempt"
  python -m vertex_emulator inject fail --exit-code 139 --replica workerpool1-0 --after 5 --name 'train-*'
  python -m vertex_emulator inject preempt --after 10 --times 2
  python -m vertex_emulator inject oom --count 3
  python -m vertex_emulator inject --list
"""


def add_parser(commands: Any, common: argparse.ArgumentParser) -> None:
    """Add the command to the parsers of `python -m vertex_emulator`."""
    width = max(map(len, faults.FAULT_KINDS))
    parser = commands.add_parser(
        "inject",
        parents=[common],
        help="make the next jobs fail, be preempted or hit quota, to test how your code takes it",
        description="Inject a fault: what is to go wrong with the next job that is created. Faults wait in\n"
        "the data folder, survive a restart, and are used up once. A trial of a tuning job is a job, too.",
        epilog=_EPILOG.format(
            kinds="\n".join(f"  {kind:{width}}  {text}" for kind, text in faults.FAULT_KINDS.items())
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "kind", nargs="?", choices=list(faults.FAULT_KINDS), metavar="KIND", help="what goes wrong: see below"
    )
    parser.add_argument("--name", metavar="PATTERN", help="only jobs whose display name matches; * and ? stand for any")
    parser.add_argument("--count", type=int, metavar="N", help="how many jobs it is for (default: 1)")
    parser.add_argument("--after", type=float, metavar="SECONDS", help="how long the job runs before (default: 0)")
    parser.add_argument(
        "--times", type=int, metavar="N", help="how often, for a job that is restarted after it (default: 1)"
    )
    parser.add_argument(
        "--code", type=int, metavar="N", help="fail: code of the job's error, 1 to 16 (google.rpc.Code)"
    )
    parser.add_argument("--message", metavar="TEXT", help="fail: message of the job's error")
    parser.add_argument("--exit-code", type=int, metavar="N", help="fail: exit code of a replica, 1 to 255")
    parser.add_argument("--replica", metavar="TASK", help="fail, oom: which replica (default: workerpool0-0)")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--list", action="store_true", help="list the faults that wait")
    which.add_argument("--clear", action="store_true", help="forget the faults that wait")


def run(data: Path, options: argparse.Namespace) -> Iterator[str]:
    """Do what the options say; lines for the terminal. Raises NotRunning, BadFault and EmulatorError."""
    # Imported here, for every command has this one's options and few need what is behind them.
    from vertex_emulator.cli.commands import ask
    from vertex_emulator.endpoint import find_running_emulator

    chosen = {name: getattr(options, name) for name in faults.FAULT_FIELDS if getattr(options, name) is not None}
    if options.list or options.clear:
        if chosen:
            raise InvalidFault(f"--{'list' if options.list else 'clear'} stands alone: leave out {', '.join(chosen)}")
        endpoint = find_running_emulator(data)
        if options.clear:
            yield f"cleared {ask(endpoint, _FAULTS, method='DELETE')['cleared']}"
            return
        waiting = ask(endpoint, _FAULTS)["faults"]
        yield from [faults.describe_fault(each["fault"], each["remaining"]) for each in waiting] or ["no faults wait"]
        return
    fault = faults.InjectedFault.parse(chosen)
    ask(find_running_emulator(data), _FAULTS, fault.to_json())
    yield f"injected {faults.describe_fault(fault.to_json(), fault.count)}"
