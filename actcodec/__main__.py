"""The program: ``actcodec``, and ``python -m actcodec``."""

import os
import signal
import sys
from typing import Any, NoReturn

__all__ = ["main"]

FAILED, INTERRUPTED, TERMINATED = EXPLAINED = 2, 130, 143  # exit codes that come with a message


def interrupt(*_: object) -> NoReturn:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # only once: nothing interrupts the clean-up
    raise KeyboardInterrupt


def terminate(*_: object) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(TERMINATED)


def main() -> None:
    """Runs the command line. An interrupt or termination at any time, even during imports, ends it with one line and
    leaves nothing behind."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, interrupt)
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_IGN:
        signal.signal(signal.SIGTERM, terminate)
    code: Any = INTERRUPTED
    try:
        try:
            from actcodec.cli import main as command

            command(prog_name="actcodec")
        except SystemExit as end:
            code = end.code
            if code == TERMINATED:
                print("actcodec: error: terminated", file=sys.stderr)
        except KeyboardInterrupt:
            print("actcodec: error: interrupted", file=sys.stderr)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if sys.stdout is not None:  # it may be closed
            sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nobody reads the rest
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if code not in EXPLAINED:  # a command that failed to write has said so, and its output may still be here
            print(f"actcodec: error: standard output: {error.strerror}", file=sys.stderr)
        code = code or FAILED
    if code in (INTERRUPTED, TERMINATED):
        sys.stderr.flush()
        os._exit(code)  # without waiting for a simulation that still runs in its thread
    sys.exit(code)


if __name__ == "__main__":
    main()
