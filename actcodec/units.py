"""The catalogue of units, for simulation, synthesis and Verilog. Listing it does not import Amaranth.

``python -m actcodec.units FOLDER`` writes the Verilog of all units, one file each, and their constraints;
``--bench NAME ...`` prints what pytest runs for units, or for other files in tb/.
"""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from actcodec.codecs import JPEG_ACT, JPEG_ACT_CODED, PAPERS
from actcodec.codecs.unit import Unit

__all__ = ["UNITS", "VARIANTS", "Unit", "benches", "register", "write"]

ROOT = Path(__file__).resolve().parent.parent

ADDRESS = {"address_width": 40}
MEMORY = {**ADDRESS, "outstanding": 384, "memory": "shared"}
FORMATS = {"formats": ("float32",)}
SCAN = {"scan": False}
QUEUE = {"queue": 0}
HALVES = {"formats": ("bfloat16", "float16")}
CODERS = {"coders": 4}
CODED = {coder: {"modes": modes} for coder, modes in JPEG_ACT_CODED.items()}
STANDALONE = {"payload": "memory", "scan": True, "queue": 256}
LANES = (1, 4)  # of the accelerators that `write` adds to the units

COMMON = (
    Unit("packer", "common.packer:Packer", "chunks of bytes to full words", {"granule": 1, "i_size": 16, "o_size": 16}),
    Unit("unpacker", "common.unpacker:Unpacker", "full words to pieces of bytes",
         {"granule": 1, "i_size": 16, "o_size": 16}),
    Unit("fadd", "common.fadd:Fadd", "float32 adder"),
    Unit("counter", "common.counter:Counter", "running sum with pipelined carries",
         {"amount_width": 1, "width": 64}),
    Unit("bursts", "common.bursts:Bursts", "beats to AXI bursts", ADDRESS),
)
OFFLOAD = (
    Unit("beat_planner", "offload.memory.beat_planner:BeatPlanner", "places of sectors to beats of memory", ADDRESS),
    Unit("address_generator", "offload.memory.address:AddressGenerator", "places of a CDU's sectors, in their order",
         ADDRESS),
    Unit("tensor_plan", "offload.memory.tensor_plan:TensorPlan", "a tensor's description to what each lane needs",
         {"cdus": 4, **ADDRESS}),
    Unit("reader", "offload.memory.reader:Reader", "places to sectors and scales, read over AXI", MEMORY,
         variants={"independent memory": {"memory": "independent"}}),
    Unit("writer", "offload.memory.writer:Writer", "sectors to their places, written over AXI", MEMORY,
         variants={"independent memory": {"memory": "independent"}}),
    Unit("widen", "offload.memory.widen:Widen", "16-bit values of memory to float32", HALVES),
    Unit("narrow", "offload.memory.narrow:Narrow", "float32 to 16-bit values of memory", HALVES),
    Unit("statistics", "offload.scan.statistics:Statistics", "extremes per channel and tensor, zeros and NaNs"),
    Unit("scale", "offload.scan.scale:Scale", "a channel's largest magnitude to its scale k"),
    Unit("reciprocal", "offload.scan.reciprocal:Reciprocal", "k to the scale r of decompression"),
    Unit("scan", "offload.scan.scan:Scan", "a lane's share of a scan: two walks, statistics, scale, table",
         ADDRESS),
    Unit("scan_plan", "offload.scan.plan:ScanPlan", "a tensor's description to distances between its channels",
         {**ADDRESS, "lanes": 4}),
    Unit("payload", "offload.memory.payload:Payload", "a frame's packets to memory and back, over AXI",
         {**ADDRESS, "outstanding": 384}),
    Unit("queue", "offload.queue.queue:Queue", "fetches descriptors from a ring in memory, writes reports",
         {**ADDRESS, "size": 256, "lines": (0, 1, 2), "wait": 5}),
    Unit("plan_ahead", "offload.queue.plan_ahead:PlanAhead", "plans the next tensor of a ring in advance",
         {"cdus": 4, **ADDRESS}),
    Unit("registers", "offload.control.registers:Registers", "registers on AXI4-Lite",
         {"cdus": 1, "modes": JPEG_ACT, "address_width": 64, **FORMATS, "payload": "stream", **SCAN, **QUEUE}),
    Unit("collector", "offload.wire.collector:Collector", "blocks of all CDUs to packets",
         {"cdus": 4, "modes": JPEG_ACT}, variants=CODED, by_name=tuple(CODED)),
    Unit("splitter", "offload.wire.splitter:Splitter", "packets to blocks for all CDUs", {"cdus": 4, "modes": JPEG_ACT},
         variants=CODED, by_name=tuple(CODED)),
    Unit("stream_collector", "offload.wire.streams.stream_collector:StreamCollector", "streams of all lanes to packets",
         {"cdus": 4}),
    Unit("stream_splitter", "offload.wire.streams.stream_splitter:StreamSplitter", "packets to streams for all lanes",
         {"cdus": 4}),
    Unit("lane", "offload.lane:Lane", "a CDU with its memory port",
         {"modes": JPEG_ACT, **MEMORY, **FORMATS, **SCAN, **CODERS}, codec="jpegact.cdu:Cdu", synth=None,
         bench="offload/accelerator"),
    Unit("accelerator", "offload.accelerator:Accelerator", "all of it: lanes, collector, splitter, registers",
         {"cdus": 4, "modes": JPEG_ACT, **MEMORY, **FORMATS, "payload": "stream", **SCAN, **QUEUE, **CODERS},
         codec="jpegact.cdu:Cdu",
         variants={"1 CDU": {"cdus": 1}, "1 CDU, all modes": {"cdus": 1, "modes": ("all",)},
                   "1 CDU, standalone": {"cdus": 1, **STANDALONE}, "independent memory": {"memory": "independent"}},
         by_name=("1 CDU, all modes", "1 CDU, standalone", "independent memory"),
         presets={"offload": {}, "standalone": STANDALONE}),
)

UNITS: dict[str, Unit] = {}
"""All units by name: those of each paper, then the shared ones."""


def register(*units: Unit) -> None:
    """Adds units. Raises ValueError for a name that is already in use."""
    for unit in units:
        if unit.name in UNITS:
            raise ValueError(f"there is already a unit called {unit.name}")
        UNITS[unit.name] = unit


register(*(unit for paper in PAPERS for unit in paper.units()), *COMMON, *OFFLOAD)

VARIANTS = {re.sub(r"[^a-z0-9_]+", "-", f"{name} {variant}".lower()).strip("-"): (name, variant)
            for name, unit in UNITS.items() for variant in unit.variants}
"""{name on the command line: (the unit's, the variant's)} of what units are mapped as besides."""


def benches(names: Sequence[str]) -> list[str]:
    """What pytest runs for ``names``, relative to the root of a checkout: for a unit, or a variant (``cdu-in-a-lane``),
    its bench; for any other NAME the files tb/.../test_NAME.py; for FOLDER/NAME the one of them in that folder, if NAME
    is also that of a unit.

    Raises
    ------
    ValueError
        For an unknown name.
    """
    nodes = {name: [unit.bench_node] for name, unit in UNITS.items()}
    for path in sorted((ROOT / "tb").rglob("test_*.py")):
        name, node = path.stem.removeprefix("test_"), path.relative_to(ROOT).as_posix()
        if name not in UNITS:
            nodes.setdefault(name, []).append(node)
        elif node != UNITS[name].bench_node:
            nodes[f"{path.parent.relative_to(ROOT / 'tb').as_posix()}/{name}"] = [node]
    nodes |= {variant: nodes[name] for variant, (name, _) in VARIANTS.items()}
    for name in names:
        if name not in nodes:
            raise ValueError(f"UNIT={name}: choose from {' '.join(sorted(nodes))}")
    return list(dict.fromkeys(node for name in names for node in nodes[name]))


def write(folder: str | Path) -> None:
    """Writes the Verilog of every unit, with its default parameters, into ``folder``, and accelerators of one and of
    four lanes as ``actcodec_n1`` and ``actcodec_n4``. Files are named after their modules. ``actcodec.sdc`` constrains
    any of them."""
    from actcodec.synth.sdc import document

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    jobs: list[tuple[str, Unit, dict]] = [(name, unit, {}) for name, unit in UNITS.items() if name != "accelerator"]
    for name, unit, parameters in jobs + [(f"actcodec_n{n}", UNITS["accelerator"], {"cdus": n}) for n in LANES]:
        text = unit.verilog(name, **parameters)
        part = folder / f"{name}.part"
        part.write_text(text)
        part.replace(folder / f"{name}.v")
    (folder / "actcodec.sdc").write_text(document())


if __name__ == "__main__":
    if sys.argv[1] != "--bench":
        write(*sys.argv[1:])
    else:
        try:
            print(*benches(sys.argv[2:]))
        except ValueError as error:
            sys.exit(str(error))
