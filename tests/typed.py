"""Commands as they are typed, and the one line that a mistake ends with."""

from typer.testing import CliRunner, Result

from saccade.commands.door import app


def typed(*words: object) -> Result:
    """What the command ``saccade WORDS`` did."""
    return CliRunner().invoke(app, [str(word) for word in words])


def error_line(result: Result) -> str:
    """The last line on stderr, of a command that a mistake ended."""
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith("error: ")
    return last
