"""``python -m actcodec``."""

from actcodec.cli import main

main(prog_name="actcodec")
