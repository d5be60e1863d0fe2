"""What a tensor is, by the codes of its mode and format."""

from amaranth.hdl import Cat

from actcodec.rtl.offload.control.limits import FORMATS

__all__ = ["Kind"]


class Kind:
    """Of a tensor: ``tensor`` has its ``mode`` and, if the ``accelerator`` has others than float32, its ``format``.

    Attributes
    ----------
    modes : list of Value
        Whether it has each of the accelerator's modes; codes are the host's, places are those of ``accelerator.modes``.
    half, byte : Value or None
        Whether its values have 16 bits, or 8; None where these are not built in.
    """

    def __init__(self, accelerator, tensor):
        modes = accelerator.host_modes
        self._all, self._codes = accelerator.modes, bool(accelerator.codes)
        named = [tensor.mode == mode.code for mode in modes]
        self.byte = tensor.format == FORMATS.index("int8") if self._codes else None
        self.modes, self.half = named, None
        if accelerator.halves:
            half = tensor.format != FORMATS.index("float32")
            self.half = half = half & ~self.byte if self._codes else half
            plain = [here & half for mode, here in zip(modes, named, strict=True) if mode.halves]
            self.modes = [here & ~half if mode.halves else here
                          for mode, here in zip(modes, named, strict=True)] + plain

    def any(self, holds):
        """Whether its mode is one of which ``holds`` is true."""
        return Cat(here for mode, here in zip(self._all, self.modes, strict=True) if holds(mode)).any()

    @property
    def scaled(self):
        """Whether it has a table of scales."""
        scaled = self.any(lambda mode: mode.scaled)
        return scaled & ~self.byte if self._codes else scaled
