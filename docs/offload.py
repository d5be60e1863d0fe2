"""``make docs``: what the commands in ``docs/offload.md`` print, by the recorded rates.

``python -m docs.offload`` runs each of them and writes its output below it.
"""

import re
from pathlib import Path

from click.testing import CliRunner

from actcodec import cli

__all__ = ["DOCUMENT", "render"]

DOCUMENT = Path(__file__).parent / "offload.md"
EXAMPLE = re.compile(r"(```sh\n(actcodec [^\n]*)\n```\n+```text\n).*?(?=```)", re.DOTALL)


def output(command):
    result = CliRunner().invoke(cli.main, command.split()[1:], prog_name="actcodec", catch_exceptions=False)
    if result.exit_code:
        raise SystemExit(f"{command}: {result.stderr}")
    return result.stdout


def render(text):
    """The page with today's output of each command."""
    return EXAMPLE.sub(lambda example: example[1] + output(example[2]), text)


if __name__ == "__main__":
    DOCUMENT.write_text(render(DOCUMENT.read_text()))
