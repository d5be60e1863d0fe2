"""Mapped netlists with places for their cells, and timing with the wires that these places ask for.

Placed, not routed: :mod:`~actcodec.synth.layout.flow` says what is done, ``docs/synthesis.md`` what it is worth.
"""
