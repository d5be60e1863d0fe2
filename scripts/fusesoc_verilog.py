"""FuseSoC's generator of actcodec.core: Verilog by ``actcodec verilog``, and the core file that lists it.

Runs in the Python that has FuseSoC, and so PyYAML. ``actcodec`` is that Python's, the checkout's, or the PATH's.
"""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]


def command():
    """What runs the command line."""
    if (local := ROOT / ".venv/bin/actcodec").is_file():
        return [str(local)]
    if importlib.util.find_spec("actcodec"):
        return [sys.executable, "-m", "actcodec"]
    if executable := shutil.which("actcodec"):
        return [executable]
    sys.exit("actcodec is not installed: pip install 'actcodec[rtl]', or run make setup")


def main(source):
    configuration = yaml.safe_load(Path(source).read_text())
    parameters = configuration["parameters"]
    name = parameters.get("name", parameters["unit"])
    words = [word for key, value in parameters.get("options", {}).items() for word in (f"--{key}", str(value))]
    flags = [f"--{flag}" for flag in parameters.get("flags", [])]
    subprocess.run([*command(), "verilog", parameters["unit"], "--name", name, *words, *flags, "-o", f"{name}.v"],
                   check=True)
    core = {"name": configuration["vlnv"], "targets": {"default": {"filesets": ["rtl"]}},
            "filesets": {"rtl": {"files": [f"{name}.v"], "file_type": "verilogSource"}}}
    Path(f"{name}.core").write_text("CAPI=2:\n" + yaml.safe_dump(core))


if __name__ == "__main__":
    main(sys.argv[1])
