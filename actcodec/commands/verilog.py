"""``actcodec verilog``."""

from actcodec.verilog import Verilog

command = Verilog(name="verilog", subcommand_metavar="UNIT [OPTIONS]", help="""
    Print the Verilog of a unit.

    \b
    Examples:
      actcodec verilog dct
      actcodec verilog cdu --modes jpeg-act,sfpr -o cdu.v
      actcodec verilog cdu --help
    """)
