"""A command line as the tests of the modes write it."""

from click.testing import CliRunner

from actcodec import cli

__all__ = ["run"]


def run(line, code=0):
    """What ``actcodec`` says to ``line``, a string: on standard output, or on standard error if it has to exit with a
    ``code``."""
    result = CliRunner().invoke(cli.main, line.split(), prog_name="actcodec")
    assert result.exit_code == code, result.output
    return result.stderr if code else result.stdout
