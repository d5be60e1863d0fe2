"""``make registers``: the register map as SystemRDL, and by PeakRDL as a C header, as IP-XACT and in HTML."""

from pathlib import Path

import click
from peakrdl_cheader.c_standards import CStandard
from peakrdl_cheader.exporter import CHeaderExporter
from peakrdl_html import HTMLExporter
from peakrdl_ipxact import IPXACTExporter, Standard
from systemrdl import RDLCompiler

from actcodec.codecs import lane_modes
from actcodec.rtl.offload.control.register_map import PAYLOADS
from actcodec.rtl.offload.control.registers import check_queue
from drivers import modes as mode_codes
from drivers import rdl

__all__ = ["elaborated", "instance", "main", "write"]


def elaborated(path, name=rdl.TOP, **parameters):
    """The address map of that name in a file of SystemRDL, with these parameters; checked by the compiler."""
    compiler = RDLCompiler()
    compiler.compile_file(str(path))
    return compiler.elaborate(name, parameters={key.upper(): value for key, value in parameters.items()})


def write(folder, **parameters):
    """Writes all files into a folder, of an instance with these parameters."""
    folder.mkdir(parents=True, exist_ok=True)
    text = folder / "actcodec.rdl"
    text.write_text(rdl.systemrdl())
    (folder / "actcodec_modes.h").write_text(mode_codes.c_header())
    top = elaborated(text, **parameters).top
    top.inst.type_name = rdl.TOP  # the compiler adds parameters to the name, which the header has in front of all names
    CHeaderExporter().export(top, str(folder / "actcodec_registers.h"), std=CStandard.gnu99)
    version = f"{top.find_by_path('VERSION.major').get_property('reset')}." \
              f"{top.find_by_path('VERSION.minor').get_property('reset')}"
    IPXACTExporter(standard=Standard.IEEE_1685_2014, vendor="actcodec", library="actcodec", version=version).export(
        top, str(folder / "actcodec.xml"))
    maps = [top, *(elaborated(text, f"settings_{name}").top for name in rdl.layouts(lane_modes()))]
    HTMLExporter().export(maps, str(folder / "html"), title="actcodec")


def instance(modes=None, formats=None, payload=None, scan=None, queue=None, **numbers):
    """The map's parameters for an accelerator with these of its own; what is None has its most there. ``modes`` are
    those of :func:`~actcodec.codecs.lane_modes`, ``numbers`` are ``cdus`` and ``address_width``. Raises ValueError for
    formats and rings that there are not."""
    if queue is not None:
        check_queue(queue)
    values = numbers | {"modes": modes and rdl.mask(modes), "formats": formats and rdl.formats_mask(formats),
                        "payloads": payload and PAYLOADS.index(payload), "scans": None if scan is None else int(scan),
                        "queues": queue and queue.bit_length() - 1}
    return {name: value for name, value in values.items() if value is not None}


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--cdus", type=click.IntRange(1, 8), help="Lanes of the instance; 8 without.")
@click.option("--modes", help="Its modes by name, with commas between them; all without.")
@click.option("--address-width", type=click.IntRange(32, 64), help="Bits of its addresses; 64 without.")
@click.option("--formats", help="Formats of values in memory, with commas between them; all without.")
@click.option("--payload", type=click.Choice(PAYLOADS), help="Where its payloads pass; both without.")
@click.option("--scan/--no-scan", default=None, help="Whether it scans; it does without.")
@click.option("--queue", type=int, help="Descriptors of its ring, a power of two, or 0: no queue; 32768 without.")
def main(folder, modes, formats, **parameters):
    """Writes SystemRDL, C header, IP-XACT and HTML into FOLDER."""
    try:
        values = instance(modes and lane_modes(*modes.split(",")), formats and formats.split(","), **parameters)
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    write(folder, **values)
    print(f"actcodec.rdl, actcodec_registers.h, actcodec_modes.h, actcodec.xml and html/index.html are in {folder}")


if __name__ == "__main__":
    main()
