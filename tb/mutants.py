"""Runs the bench at hand on one mutant after the other, in copies of the simulator's process.

cocotb imports this file behind the bench, when all is loaded and the simulation is about to begin: so a mutant costs
the time of the tests that it passes, and not the start of a simulator and of Python as well. As its simulation begins,
the netlist reads from the file ``mutant`` of the run's folder which one it is to be.

The first copy runs the tests on the netlist without a mutant, in the bench's order. The second has the quickest tests
first, and so have the mutants, which end at the first test that fails, or that takes far more cycles than it should.
"""

import json
import os
import resource
import signal
import sys
from pathlib import Path
from xml.etree import ElementTree

import cocotb._shutdown
import cocotb.regression

from actcodec.synth.mutants import drawn, verdicts

__all__ = ["job"]

NONE = 0  # the number of the netlist as it is
ENOUGH = 3  # times the processor's time that the bench takes without a mutant: what takes longer hangs
LEAST = 5  # seconds
MORE, SLACK = 2, 2000  # times the simulated time that a test takes without a mutant, and ns: what takes longer fails


def _select(folder, number):
    """The next simulation in ``folder`` is that of the mutant ``number``."""
    Path(folder, "mutant").write_text(f"{number:x}\n")


def job(place, folder):
    """What is to be done in the folder of a run, for the netlist in ``place``; None if that is a bench as ever, of the
    mutant that the environment chooses."""
    if os.environ.get("MUTANT"):
        return _select(folder, int(os.environ["MUTANT"]))
    run, path = f"{folder.parent.name}/{folder.name}", os.environ["VERDICTS"]
    known = verdicts(path)
    dead = {number for _, number, failed, _ in known if failed}
    done = {number for where, number, _, _ in known if where == run}
    return {"run": run, "verdicts": path, "numbers": sorted({mutant.number for mutant in drawn(place)} - dead - done)}


def _results(path):
    """[(test, seconds, simulated ns, whether it passed)] of a run."""
    return [(f"{case.get('classname')}.{case.get('name')}", float(case.get("time")),
             float(case.find("properties/property[@name='sim_time_duration']").get("value")),
             case.find("failure") is None and case.find("error") is None)
            for case in ElementTree.parse(path).getroot().iter("testcase")]


def _leave():
    sys.stdout.flush()
    os._exit(0)


def _copy(number, path, limit=None):
    """Starts the copy for a mutant: there, this returns None. Here, when that has ended, it returns what failed, or "",
    and the seconds that it took of the processor; ``path`` has the results of the tests."""
    path.unlink(missing_ok=True)
    _select(".", number)
    sys.stdout.flush()
    child = os.fork()
    if not child:
        if limit:
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
        os.environ["COCOTB_RESULTS_FILE"] = str(path)
        # With the results written: beyond, Verilator's runtime waits for threads that a copy does not have.
        cocotb._shutdown.register(_leave)
        return None
    _, status, usage = os.wait4(child, 0)
    seconds = usage.ru_utime + usage.ru_stime
    if not path.exists():
        ended = os.waitstatus_to_exitcode(status)
        return "no end" if ended == -signal.SIGXCPU else f"status {ended} of the simulator", seconds
    return next((test for test, *_, passed in _results(path) if not passed), ""), seconds


def _serve(run, verdicts, numbers):
    """Returns in the copies; here, the process ends."""
    path, summary = Path("mutant.xml").resolve(), Path(os.environ["COCOTB_RESULTS_FILE"])
    with open(verdicts, "a") as file:
        def tell(number, failed, seconds):
            file.write(json.dumps([run, number, failed, round(seconds, 2)]) + "\n")
            file.flush()

        for quickest in (False, True):
            outcome = _copy(NONE, path)
            if not outcome:
                return
            path.replace(summary)
            if quickest or outcome[0]:
                tell(NONE, *outcome)
            if outcome[0]:
                os._exit(1)
            times = {test: durations for test, *durations, _ in _results(summary)}
            queue = cocotb.regression._manager_inst._test_queue
            queue.sort(key=lambda test: times.get(test.fullname, (0, 0))[0])
            for test in queue:
                if test.fullname in times:
                    test.timeout = MORE * round(times[test.fullname][1]) + SLACK, "ns"
        limit = LEAST + int(ENOUGH * outcome[1])
        for number in numbers:
            outcome = _copy(number, path, limit)
            if not outcome:
                return
            tell(number, *outcome)
    os._exit(0)


if "MUTANTS_JOB" in os.environ:
    _serve(**json.loads(os.environ["MUTANTS_JOB"]))
