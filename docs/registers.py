"""Writes docs/registers.md."""

from pathlib import Path

from actcodec.codecs import lane_modes
from actcodec.rtl.offload.register_map import markdown

if __name__ == "__main__":
    Path(__file__).with_suffix(".md").write_text(markdown(lane_modes()))
