"""Report of what a pass through :class:`~actcodec.torch.Compress` kept: a row per tensor, totals, JSON, a picture."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

__all__ = ["Account", "Meter", "Report", "Row"]

LEFT = "-"  # in place of a mode: the tensor is kept as it is
NOTHING = "nothing"  # in place of a mode: only its shape is needed
OTHER = ("other", "workspace")  # kinds of tensors that are no activations


@dataclass
class Row:
    """A tensor that was kept, in the last pass that had it."""

    layer: str  # the layer that was running when it was saved first
    kind: str = ""
    mode: str = LEFT
    table: str = ""  # the quantization table, if there is one
    mask: str = ""  # the mode of the bits that are kept besides the values
    shape: tuple[int, ...] = ()
    dtype: str = ""
    nbytes: int = 0  # before
    payload: Any = 0  # bytes; on a GPU a tensor, not synchronised yet
    side: int = 0  # bytes of scales and the like
    held: int = 0  # bytes in memory: more than a payload that is only counted
    error: float | None = None  # relative L2, as last measured; None for exact bits
    encode_seconds: float = 0.0  # of all passes together
    decode_seconds: float = 0.0
    passes: int = 0

    def begin(self, tensor: Any, kind: str) -> None:
        """Begins the row for a tensor of another pass."""
        self.kind, self.shape, self.dtype = kind, tuple(tensor.shape), str(tensor.dtype).partition(".")[2]
        self.nbytes, self.mode, self.mask, self.table = tensor.nbytes, LEFT, "", ""
        self.payload = self.side = self.held = 0
        self.passes += 1

    def update(self, entry: Any) -> None:
        """Updates the row from the forms of an :class:`~actcodec.torch.entry.Entry`."""
        values, compressed = entry.forms.get(None), entry.compressed
        left = self.nbytes if len(compressed) < len(entry.forms) else 0
        self.payload = sum([form.packed.payload for form in compressed], left)
        self.side = sum([form.packed.side for form in compressed])
        self.held = sum([form.packed.held for form in compressed], left)
        masks = [form for form in compressed if form is not values]
        self.mask = "" if values is None else masks[0].mode if masks else values.mask
        if values is None and entry.kind not in OTHER and entry.kind != "index" and entry.forms:
            self.kind = "mask"
        elif entry.kind != "mask":
            self.kind = entry.kind
        main = values or (masks[0] if masks else None)
        self.mode = NOTHING if not entry.forms else LEFT if main is None or main.uncompressed else main.mode
        self.table = main.table if main is not None and not main.uncompressed else ""
        if values is None or values.uncompressed:
            self.error = 0.0 if values else None

    @property
    def packed(self) -> Any:
        """Bytes of payload and side information."""
        return int(self.payload) + self.side

    @property
    def ratio(self) -> float | None:
        return self.nbytes / self.packed if self.packed else math.inf if self.nbytes else 1.0

    def facts(self) -> dict[str, Any]:
        """The row as a dictionary for JSON."""
        facts = {one.name: getattr(self, one.name) for one in fields(self)}
        return facts | {"payload": int(self.payload), "packed": self.packed, "ratio": finite(self.ratio),
                        "error": finite(self.error)}


class Meter:
    """Bytes held now and at the peak, with and without compression."""

    def __init__(self) -> None:
        self.now, self.peak = [0, 0], [0, 0]  # without and with compression
        self._users: tuple[dict[Any, int], dict[Any, int]] = {}, {}  # of each memory

    def add(self, side: Any, memory: Any, size: int) -> None:
        """Counts a memory of ``size`` bytes, once for all tensors in it; ``side`` 0 is without, 1 with compression."""
        users = self._users[side]
        if memory in users:
            users[memory] += 1
        else:
            users[memory] = 1
            self.change(side, size)

    def drop(self, side: Any, memory: Any, size: int) -> None:
        """The inverse of :meth:`add`."""
        users = self._users[side]
        users[memory] -= 1
        if not users[memory]:
            del users[memory]
            self.change(side, -size)

    def change(self, side: Any, size: int) -> None:
        """Counts ``size`` bytes more."""
        self.now[side] += size
        if self.now[side] > self.peak[side]:
            self.peak[side] = self.now[side]


class Account:
    """What one tensor holds while this object lives, for a :class:`Meter`: ``memory`` identifies the ``size`` bytes
    that autograd would keep for it, which it may share with others. Holds a ``reference`` to that memory."""

    def __init__(self, meter: Any, reference: Any, memory: Any, size: int) -> None:
        self._meter, self._reference, self._without = meter, reference, (memory, size)
        self._left, self._size = False, 0
        meter.add(0, memory, size)

    def hold(self, left: bool, size: int) -> None:
        """The tensor is kept as it is, if ``left``, and also as ``size`` bytes of its own."""
        if self._left:
            self._meter.drop(1, *self._without)
        self._meter.change(1, size - self._size)
        if left:
            self._meter.add(1, *self._without)
        self._left, self._size = left, size

    def __del__(self) -> None:
        self.hold(False, 0)
        self._meter.drop(0, *self._without)


class Report:
    """Rows and totals. ``str`` and ``print`` show a table.

    ``rows`` has a :class:`Row` for each tensor; ``total`` a dictionary:

    ================ ===================================================================================================
    ``nbytes``       bytes of all activations that autograd saved, each memory once, without weights and buffers
    ``packed``       bytes of their payloads and side information; those without a rule count as they are
    ``ratio``        ``nbytes`` over ``packed``
    ``peak``         maximum of the bytes held at once, including what else autograd saves; a view counts as all the
                     memory that it keeps alive
    ``peak_without`` the same without compression
    ================ ===================================================================================================
    """

    def __init__(self, rows: Sequence[Any], meter: Any, passes: Any) -> None:
        self.rows = [row for row in rows if row.kind not in OTHER]
        self.other = [row for row in rows if row.kind in OTHER]
        self.workspaces = [row for row in rows if row.kind == "workspace"]
        self.passes = passes
        nbytes, packed = (sum(getattr(row, name) for row in self.rows) for name in ("nbytes", "packed"))
        self.total = {"nbytes": nbytes, "packed": packed, "ratio": nbytes / packed if packed else 1.0,
                      "peak": meter.peak[1], "peak_without": meter.peak[0],
                      "other": sum(row.nbytes for row in self.other),
                      "encode_seconds": sum(row.encode_seconds for row in self.rows) / max(passes, 1),
                      "decode_seconds": sum(row.decode_seconds for row in self.rows) / max(passes, 1)}

    def to_json(self, path: str | Path | None = None) -> Any:
        """Totals and rows as JSON text, which is also written to ``path``, if given."""
        text = json.dumps({"passes": self.passes, "total": self.total, "rows": [row.facts() for row in self.rows]},
                          indent=1)
        if path is not None:
            Path(path).write_text(text + "\n")
        return text

    def plot(self, path: str | Path) -> None:
        """Draws a bar for each tensor, before and after; .png, .svg or .pdf. Needs Matplotlib."""
        from actcodec.torch.report_plot import draw

        draw(self, path)

    def __rich__(self) -> Any:
        table = Table(box=None, header_style="bold", pad_edge=False)
        for name in ("layer", "kind", "mode", "shape"):
            table.add_column(name, no_wrap=True)
        for name in ("before", "after", "ratio", "error", "enc. ms", "dec. ms"):
            table.add_column(name, justify="right", no_wrap=True)
        layer = None
        for row in self.rows:
            modes = f"{row.mode} {row.table}".strip() + (f" + {row.mask}" if row.mask else "")
            table.add_row("" if row.layer == layer else row.layer or "(model)", row.kind, modes,
                          "x".join(map(str, row.shape)), size(row.nbytes),
                          size(row.packed), f"{row.ratio:.2f}", "-" if row.error is None else f"{row.error:.4f}",
                          *(f"{1000 * seconds / row.passes:.1f}" for seconds in (row.encode_seconds,
                                                                                row.decode_seconds)))
            layer = row.layer
        total = self.total
        table.add_row("all", "", "", "", size(total["nbytes"]), size(total["packed"]), f"{total['ratio']:.2f}", "",
                      f"{1000 * total['encode_seconds']:.1f}", f"{1000 * total['decode_seconds']:.1f}", style="bold")
        return table

    def __str__(self) -> str:
        console = Console(width=160, force_terminal=False, color_system=None)
        with console.capture() as capture:
            console.print(self)
        lines = [line.rstrip() for line in capture.get().splitlines()]
        peak, without, other = (size(self.total[name]) for name in ("peak", "peak_without", "other"))
        names = ["pictures", "indices", "statistics", *(["workspaces"] if self.workspaces else []), "small tensors"]
        return "\n".join([*lines, f"peak memory: {peak}, without compression {without}; both include {other} of "
                                  f"{', '.join(names[:-1])} and {names[-1]}"])


def finite(number: Any) -> Any:
    """JSON has neither infinity nor NaN."""
    return number if number is not None and math.isfinite(number) else None


def size(count: float) -> str:
    """Bytes as text."""
    step = 0
    while count >= 1000 and step < 3:
        count, step = count / 1024, step + 1
    return f"{count:.0f} B" if not step else f"{count:.{3 if count < 100 else 4}g} {'KMG'[step - 1]}iB"
