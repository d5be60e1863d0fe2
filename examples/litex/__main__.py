"""``make soc``: builds the SoC, runs its firmware in Verilator, and compares what it prints with the golden model."""

import re
import subprocess
import sys
from pathlib import Path

import click

from actcodec.sim.toolchain import announcing
from examples.litex import build, golden

PATIENCE = 10_000_000  # cycles
PAGE = Path(__file__).parents[2] / "docs/soc.md"


def run(program, folder):
    """What the firmware prints, which is shown as it comes, and whether it has come to its end."""
    lines = []
    with subprocess.Popen([program, str(PATIENCE)], cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    return "".join(lines), process.returncode == 0


@click.command()
@click.option("--renew", is_flag=True, help="Write the output into docs/soc.md.")
def main(renew):
    folder = Path("build/soc")
    with announcing(print):
        program = build.whole(folder)
    text, ended = run(program, folder)
    wrong = [*golden.differences(text), *([] if ended else ["the firmware has not come to its end"])]
    print("\n".join(wrong) if wrong else "as the golden model has it")
    if renew and not wrong:
        PAGE.write_text(re.sub(r"(?<=```text\n)1 lane.*?(?=```)", lambda _: text, PAGE.read_text(), flags=re.DOTALL))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
