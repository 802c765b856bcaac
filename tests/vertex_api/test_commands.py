"""What a command line with a slip is answered."""

import pytest
from vertex_training import cli

from vertex_api.commands import Parser
from vertex_emulator.cli import options


def refusal(parser: Parser, line: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        parser.parse_args(line.split())
    assert ended.value.code == 2
    return capsys.readouterr().err.splitlines()[-1].partition("error: ")[2]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("prices --regoin us-central1", "unrecognized arguments: --regoin us-central1; did you mean --region?"),
        ("prices --regoin=us-central1", "unrecognized arguments: --regoin=us-central1; did you mean --region?"),
        ("reviw preview.json", "did you mean review?"),
        ("review preview.json --format=markdwon", "did you mean markdown?"),
        ("prices --zzzzzz", "unrecognized arguments: --zzzzzz; see: vertex-training prices --help"),
        ("prices extra", "unrecognized arguments: extra; see: vertex-training prices --help"),
    ],
)
def test_a_slip_gets_the_nearest_name(line: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert refusal(cli.build(), line, capsys).endswith(said)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("serve --prot 1", "unrecognized arguments: --prot 1; did you mean --port?"),
        ("statsu", "did you mean status?"),
        ("inject oomm", "did you mean oom?"),
    ],
)
def test_both_commands_know_what_was_meant(line: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert refusal(options.build(), line, capsys).endswith(said)


def test_what_follows_two_hyphens_is_no_slip() -> None:
    assert options.build().parse_args(["exec", "--", "pytest", "--no-such"]).command == "exec"
