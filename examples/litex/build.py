"""Hardware, firmware and simulation of the SoC, all of it into one folder."""

import logging
import re
import shutil
import subprocess
from pathlib import Path

import litex
import pythondata_cpu_vexriscv
from litedram.init import get_sdram_phy_c_header
from litex.soc.integration import export
from litex.soc.integration.common import get_mem_data

from actcodec import elaboration
from actcodec.sim import build
from actcodec.units import UNITS
from drivers import registers
from examples.litex import golden
from examples.litex.soc import SoC

__all__ = ["MODES", "accelerator", "firmware", "hardware", "headers", "simulator", "whole"]

HERE, ROOT = Path(__file__).parent, Path(__file__).parents[2]
MODES = ("sfpr-zvc", "jpeg-act", "brc", "mx", "dpr-fp8")
PARAMETERS = {**UNITS["accelerator"].presets["standalone"], "cdus": 1, "modes": MODES, "address_width": 32, "queue": 0}
GCC = "riscv64-unknown-elf-gcc"
TRAINING = ("liblitedram/sdram.c", "liblitedram/accessors.c", "libbase/memtest.c", "libbase/progress.c",
            "libbase/system.c")
FLAGS = ("-march=rv32im", "-misa-spec=2.2", "-mabi=ilp32", "--specs=picolibc.specs", "-nostartfiles", "-std=gnu99",
         "-O2", "-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections", "-Wall", "-Wextra", "-Wshadow",
         "-Werror")


def accelerator(folder):
    """The accelerator's Verilog, {name of a module: its text}; all of it is in the folder's ``actcodec.v``."""
    parts = elaboration.modules(UNITS["accelerator"].build(**PARAMETERS), "actcodec", "lut")
    (folder / "actcodec.v").write_text("".join(parts.values()))
    return parts


def headers(soc, folder):
    """What LiteX tells of a SoC to firmware, and the project of its registers."""
    soc.finalize()
    place = folder / "generated"
    place.mkdir(parents=True, exist_ok=True)
    (place / "regions.ld").write_text(export.get_linker_regions(soc.mem_regions))
    (place / "mem.h").write_text(export.get_mem_header(soc.mem_regions))
    (place / "soc.h").write_text(export.get_soc_header(soc.constants))
    (place / "csr.h").write_text(export.get_csr_header(soc.csr_regions, soc.constants,
                                                       soc.mem_regions["csr"].origin))
    if hasattr(soc, "sdram"):
        settings = soc.sdram.controller.settings
        (place / "sdram_phy.h").write_text(get_sdram_phy_c_header(settings.phy, settings.timing, settings.geom))
    registers.write(folder / "registers")


def firmware(folder):
    """The program, made with the folder's headers, as words of the ROM."""
    (folder / "tensors.bin").write_bytes(b"".join(x.tobytes() for x in golden.tensors()))
    soft = Path(litex.__file__).parent / "soc"
    includes = [f"-I{folder}", f"-I{folder / 'registers'}", f"-I{ROOT / 'drivers/c'}",
                *(f"-isystem{soft / place}" for place in ("software", "software/include", "cores/cpu/vexriscv"))]
    sources = [HERE / "firmware/start.S", HERE / "firmware/main.c", *sorted((ROOT / "drivers/c").glob("*.c"))]
    if (folder / "generated/sdram_phy.h").exists():  # LiteX's training of DDR3, whose warnings are not ours
        for source in TRAINING:
            sources.append((folder / Path(source).name).with_suffix(".o"))
            subprocess.run([GCC, *FLAGS, "-w", *includes, "-c", soft / "software" / source, "-o", sources[-1]],
                           check=True)
    elf, binary = folder / "firmware.elf", folder / "firmware.bin"
    subprocess.run([GCC, *FLAGS, *includes, f"-Wa,-I{folder}", f"-L{folder}", "-T", HERE / "firmware/link.ld",
                    *sources, "-o", elf], check=True)
    subprocess.run([GCC.replace("gcc", "objcopy"), "-O", "binary", elf, binary], check=True)
    return get_mem_data(str(binary), data_width=32, endianness="little")


def hardware(soc, folder):
    """The SoC's Verilog without the accelerator's; contents of memories are in files of the folder."""
    output = soc.platform.get_verilog(soc, name="top")
    for name, text in output.data_files.items():
        (folder / name).write_text(text)
    cpu = Path(pythondata_cpu_vexriscv.__file__).parent / "verilog/VexRiscv.v"
    text = re.sub(r"^//.*\n", "", output.main_source, flags=re.MULTILINE)  # the date, which would not let it be kept
    return text + cpu.read_text()


def simulator(verilog, parts):
    """A program that simulates the SoC, of the accelerator's ``parts``; it is kept for next time."""
    top, *lanes = parts
    design = {"top": verilog + build.without_initial_values(parts[top])} | {
        name: build.without_initial_values(parts[name]) for name in lanes}
    objects = build.compiled(design, what={"top": "the simulation of the SoC, half a minute", **dict.fromkeys(
        lanes, "the simulation of the accelerator's lane, a minute")})
    return build.linked("soc", objects, [HERE / "simulation.cpp"])


def whole(folder):
    """Everything: the path of the simulator, to be run in the folder."""
    logging.disable(logging.INFO)  # LiteX tells a lot
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    parts = accelerator(folder)
    soc = SoC(folder / "actcodec.v")
    headers(soc, folder)
    soc.init_rom("rom", firmware(folder), auto_size=False)
    return simulator(hardware(soc, folder), parts)
