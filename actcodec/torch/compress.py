"""``Compress``: saved-tensor hooks that keep activations compressed between the forward and the backward pass."""

from __future__ import annotations

import warnings
import weakref
from collections import Counter
from collections.abc import Sequence
from contextlib import ContextDecorator
from fnmatch import fnmatchcase
from typing import Any, Self

import torch

from actcodec.torch import rules as ruling
from actcodec.torch import saved
from actcodec.torch.entry import Entry, Form, serves
from actcodec.torch.golden import ENGINES, codec
from actcodec.torch.layers import Layers
from actcodec.torch.needs import EXACT, SHAPE, TRUE, Bit, Noise, Places
from actcodec.torch.offload import HostMemory
from actcodec.torch.operations import Operations
from actcodec.torch.report import Account, Meter, Report, Row
from actcodec.torch.signed import Signed

__all__ = ["Compress"]


class Compress(torch.autograd.graph.saved_tensors_hooks, ContextDecorator):
    """Keeps the activations of a model compressed between its forward and its backward pass.

    Use it as a context around the forward pass, or as a decorator of the function that runs it; the backward pass may
    be inside or outside. Rules decide how each tensor is compressed: the first one that matches applies.

    Where a backward pass needs less than values, less is kept, whatever the mode: one bit per value for ReLU, ReLU6,
    hardtanh, clamp, leaky ReLU, threshold and dropout, if the rule for ``mask`` is lossy; four bits for the place of a
    maximum, if there is a rule for ``pool``; nothing of the input of a max pooling, if there are rules.

    A tensor is compressed if it is float32, float16 or bfloat16, belongs to the graph (weights, pictures and buffers do
    not) and has a rule. Tensors that share memory are kept once. The inputs of ``torch.utils.checkpoint`` are
    compressed; what it recomputes is not. Warns, once, if a pass saved tensors and none was compressed, and of a rule
    for a layer that the model does not have.

    What a graph of ``torch.compile`` saves is compressed, too, whether the model was compiled before or after. Its
    tensors belong to no layer; those without a negative value count as ``relu``, with exact signs, bools as ``mask``,
    and others as ``dense``.

    Raises ValueError for an illegal preset, rule or option, and for a model in ``DataParallel``, whose threads hooks do
    not reach.

    Parameters
    ----------
    model : torch.nn.Module
        It is not changed. Its layers name the rows of the report; functional calls count as their layer's.
    preset : str
        A column of JPEG-ACT's Table II (``none``, ``cdma``, ``gist``, ``gist-fp16``, ``gist-fp10``, ``gist-fp8``,
        ``sfpr``, ``jpeg-base``, ``jpeg-act``), or ``division-paper`` or ``comet-paper``, which are what these papers
        do, or any mode of the registry, for all activations.
    rules : list
        Instead of a preset: a list of :func:`~actcodec.torch.rule`.
    engine : str
        ``torch`` counts the bytes of the payload, and holds as many or slightly more; it uses native kernels
        (:mod:`actcodec.torch.kernels`). ``compiled`` does the same through ``torch.compile``; ``golden`` makes the real
        payload, slowly. Gradients and sizes are the same.
    min_values : int
        Tensors with fewer values are left as they are.
    error_every : int
        Passes from one measurement of the error to the next; each decodes everything once more, and compares in
        float64. 0: never.
    schedule : Schedule
        Options by the number of the pass, such as :func:`~actcodec.torch.optl5h`. The attribute ``step`` is the number
        of the next pass; set it when training resumes.
    offload : str
        ``cpu`` moves payloads to pinned memory of the host, on a stream of their own, and fetches them back ahead of
        their use. On the CPU they are copied.
    **options
        Options of the modes, such as ``dqt="optH"`` or ``signs=True``.
    """

    def __init__(self, model: torch.nn.Module, preset: str = "jpeg-act", *, rules: Sequence[Any] | None = None,
                 engine: str = "torch", min_values: int = 4096, error_every: int = 0,
                 schedule: Any = None, offload: Any = None, **options: Any) -> None:
        super().__init__(self._pack, self._unpack)
        if engine not in ENGINES:
            raise ValueError(f"engine is {engine!r}, must be one of {', '.join(ENGINES)}")
        for name, module in model.named_modules():
            what = f"module {name or 'model'} ({type(module).__name__})"
            if isinstance(module, torch.nn.DataParallel):
                raise ValueError(f"{what}: its replicas run in threads that hooks do not reach; use "
                                 "DistributedDataParallel, a process for each device")
        if offload not in (None, "cpu"):
            raise ValueError(f"offload is {offload!r}, must be None or 'cpu'")
        self._host = HostMemory() if offload else None
        self.model, self.engine, self.min_values, self.error_every = model, engine, min_values, error_every
        self.schedule, self.step, self._depth = schedule, 0, 0
        self.layers, self._operations = Layers(model, self._new_pass), Operations()
        self._warned: set[str] = set()
        self.set(preset, rules=rules, **options)
        self.reset()

    def set(self, preset: str | None = None, *, rules: Any = None, **options: Any) -> None:
        """Changes the rules from the next tensor on: to a preset, a list, or the same ones with other options. Raises
        ValueError as the constructor does."""
        if rules is not None:
            self.rules = ruling.with_options(rules, options)
        elif preset is not None:
            self.rules = ruling.preset(preset, **options)
        else:
            self.rules = ruling.with_options(self.rules, options)
        self._codecs = [one.mode and codec(one.mode, one.options, self.engine) for one in self.rules]
        self._bits = codec(ruling.ONE_BIT[0], {}, self.engine)  # for masks whose rule is lossy
        layers = [name for name, _ in self.model.named_modules()]
        for one in self.rules:
            if not any(fnmatchcase(name, one.layer) for name in layers):
                self._warn(f"a rule is for layer {one.layer!r}, and the model has none of that name")

    @property
    def waits(self) -> bool:
        """Whether the CPU waits for a GPU in each pass, since a mode depends on values."""
        return any(one and one.waits for one in self._codecs)

    def reset(self) -> None:
        """Clears the report."""
        self._meter, self._passes = Meter(), 0
        self._rows: dict[tuple[str, int], Row] = {}
        self._entries: weakref.WeakValueDictionary[Any, Entry] = weakref.WeakValueDictionary()
        self._left: Counter[str] = Counter()  # {why: tensors of this context that are left as they are}

    def report(self) -> Report:
        """A :class:`~actcodec.torch.report.Report` of the last pass."""
        return Report(list(self._rows.values()), self._meter, self._passes)

    @torch.no_grad()
    def kept(self, tensor: torch.Tensor) -> Any:
        """The layer that saved a tensor first, and its values as the backward pass will see them; None for a tensor
        that was not saved."""
        entry = self._entries.get(saved.key(tensor))
        if entry is None or None not in entry.forms:
            return None
        return entry.row.layer, entry.strided(entry.forms[None].values(entry), tensor.shape, tensor.stride())

    # --------------------------------------------------------------------------------------------------------- context
    def __enter__(self) -> Self:
        super().__enter__()  # raises where such hooks are disabled
        try:
            if not self._depth:
                self._begin()
        except BaseException:
            self.layers.detach()
            super().__exit__()
            raise
        self._depth += 1
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self._depth -= 1
        if not self._depth:
            self._operations.__exit__(*error)
            self.layers.detach()
            if error[:1] == (None,) and self.rules and self._left and not self._compressed:
                self._warn("no tensor was compressed. Left as they are were "
                           + ", ".join(f"{count} {why}" for why, count in sorted(self._left.items())))

    def _recreate_cm(self):
        return self

    def __getstate__(self) -> dict[str, Any]:
        """For a copy, with a copy of the model: outside of a context, and with an empty report."""
        return self.__dict__ | {
            "_depth": 0, "_operations": Operations(), "_host": HostMemory() if self._host else None, "_meter": Meter(),
            "_passes": 0, "_rows": {}, "_entries": weakref.WeakValueDictionary(), "_left": Counter()}

    def _begin(self):
        if self.schedule:
            self.set(**self.schedule.at(self.step))
        self.step += 1
        self._left.clear()
        self._compressed = False
        self.layers.attach()
        self._operations.__enter__()

    def _warn(self, message):
        if message not in self._warned:
            self._warned.add(message)
            warnings.warn(message, stacklevel=3)

    def _new_pass(self):
        self._measured = self.error_every and self._passes % self.error_every == 0
        self._passes += 1

    # ----------------------------------------------------------------------------------------------------------- hooks
    def _pack(self, tensor):
        if not saved.plain(tensor):
            self._left[f"of class {type(tensor).__name__}, sparse, nested or without data"] += 1
            return Form(tensor.detach())
        if self.layers.own(tensor):
            return Form(tensor.detach())
        need = TRUE if tensor.dtype is torch.bool and saved.compiled_graph() else self._operations.need(tensor)
        entry = self._entries.get(key := saved.key(tensor))
        if entry is None:
            self._entries[key] = entry = self._new(tensor, need, key)
        if need not in entry.forms:
            need = self._keep(entry, need, tensor)
        if need in entry.forms:
            entry.forms[need].users += 1
        return entry, need, tensor.shape, tensor.stride()

    def _unpack(self, packed):
        if isinstance(packed, Form):
            return packed.exact(None if packed.packed.is_nested else packed.packed.shape)
        return packed[0].restore(*packed[1:])

    def _new(self, tensor, need, key):
        """A new entry for a tensor."""
        graph = None if tensor.requires_grad else saved.compiled_graph()
        memory = tensor.untyped_storage().nbytes()
        size = min(tensor.nbytes, memory)  # less, where it was expanded
        large = tensor.numel() >= max(self.min_values, 1) and size == tensor.nbytes
        if self._operations.recurrent and tensor.dtype is torch.uint8:
            kind = "workspace"
        elif isinstance(need, Noise) and large:
            kind = "mask"
        elif isinstance(need, Places) and large:
            kind = "index"
        elif graph and need and large:
            kind = "mask"
        elif why := self._unfit(tensor, size, graph):
            kind = "other"
            self._left[why] += 1
        else:
            kind = saved.kind_of_values(tensor) if graph else saved.kind(tensor)
        if tensor.requires_grad:  # a view keeps all of it alive
            place, size = saved.memory(tensor), memory
        else:  # a picture may be a view of the data set, which is there anyway
            place = key
        account = Account(self._meter, saved.reference(tensor), place, size)
        entry = Entry(tensor, kind, self._row(tensor, kind), account)
        entry.signed = graph is not None and kind == "relu"
        return entry

    def _unfit(self, tensor, size, graph):
        """Why a tensor is not compressed, whatever the rules are, in words that follow a number; empty if it may be.
        ``graph`` has the arguments of the compiled graph that saves it, if any."""
        if not saved.inside(tensor, graph) if graph else not tensor.requires_grad or saved.of_leaf(tensor):
            return "outside of the graph (pictures, statistics)"
        if tensor.dtype not in saved.FLOATS:
            return f"of type {str(tensor.dtype).partition('.')[2]}"
        if tensor.numel() < max(self.min_values, 1):
            return f"of fewer than {max(self.min_values, 1)} values"
        return "" if size == tensor.nbytes else "expanded"

    def _keep(self, entry, need, tensor):
        """Keeps of a tensor what is needed, by the rules, and returns the key of its form."""
        if entry.kind in ruling.KINDS and need is SHAPE and self.rules:
            self._compressed = True
            entry.row.update(entry)
            return SHAPE
        values = entry.forms.get(None)
        if entry.kind in ("other", "workspace") or need is SHAPE or (values and serves(values, need)):
            need = None
        if (exact := need is EXACT):  # for all users, in place of values with a loss
            need, before = None, entry.forms.pop(None, None)
        if need not in entry.forms:
            tensor = entry.strided(tensor.detach(), entry.shape, entry.stride)
            entry.forms[need] = form = self._form(entry, EXACT if exact else need, tensor)
            form.users = before.users if exact and before else 0
            entry.row.encode_seconds += form.seconds
            if need is None:
                self._share(entry, form, tensor)
                if self._measured and form.codec:
                    entry.row.error = relative_error(form.values(entry), tensor)
            if form.uncompressed and entry.kind in ruling.KINDS:
                kind = "mask" if need else entry.kind
                self._left["that an operation needs exactly" if exact else f"of kind {kind} without a rule"] += 1
            self._compressed |= not form.uncompressed
            entry.row.update(entry)
            compressed = entry.compressed
            entry.account.hold(len(compressed) < len(entry.forms), sum([form.packed.held for form in compressed]))
        return need

    def _form(self, entry, need, tensor):
        """A new form of a tensor."""
        if isinstance(need, Places):
            return Form(tensor, None, need if self._chosen("pool", entry) else None, self._host)
        if need is None or need is EXACT:
            mask = entry.kind == "mask"  # of a dropout, and an operation needs more than its bits
            chosen = self._chosen(entry.kind, entry) if entry.kind in ruling.KINDS and not mask else None
            if need is EXACT and chosen is not None and chosen.mode.lossy:
                chosen = None
            if entry.signed and chosen is not None and chosen.mode.lossy:
                chosen = Signed(chosen, self._bits)
            return Form(tensor, chosen, None, self._host)
        chosen = self._chosen("mask", entry)
        if chosen is not None and chosen.mode.lossy:
            return Form(tensor, chosen if chosen.mode.name in ruling.ONE_BIT else self._bits, need, self._host)
        # values serve as well, of a type that loses nothing as float32
        return Form(tensor, chosen if tensor.dtype in saved.FLOATS else None, None, self._host)

    def _share(self, entry, values, tensor):
        """Now that values are kept, operations that need a bit use them, if they tell it, else a form of its own."""
        for need, form in list(entry.forms.items()):
            if isinstance(need, Bit) and serves(values, need):
                entry.replace(need, None)
            elif isinstance(need, Bit) and form.uncompressed:
                entry.forms[need] = Form(tensor, self._bits, need, self._host)
                entry.forms[need].users = form.users

    def _chosen(self, kind, entry):
        """The codec that the rules have for a kind of tensor, or None."""
        return next((codec for rule, codec in zip(self.rules, self._codecs, strict=True)
                     if rule.matches(kind, entry.row.layer, entry.shape)), None)

    def _row(self, tensor, kind):
        """The row of the report for the next tensor of this layer."""
        layer, number = self.layers.next()
        row = self._rows.get((layer, number))
        if row is None:
            self._rows[layer, number] = row = Row(layer)
        row.begin(tensor, kind)
        return row


def relative_error(values: torch.Tensor, exact: torch.Tensor) -> Any:
    """Relative L2 error of ``values``; 0 if both are equal."""
    exact = exact.detach().double()
    error = (values.double() - exact).norm()
    return float(error / exact.norm()) if error else 0.0
