"""``make soak``: random accelerators, random tensors, and everything that can go wrong around them, for some minutes.

A run has a name, A.R: run R of accelerator A. Both numbers are seeds: ``--seed A.R`` does the same run again, and
``--seed A`` begins with accelerator A.
"""

import argparse
import multiprocessing
import os
import random
import sys
import time
import traceback
from collections import Counter
from itertools import count
from queue import Empty

from actcodec.sim.accelerator import Accelerator, library
from actcodec.sim.toolchain import SimulationError
from tb.soak import chance, counts, sweep
from tb.soak.run import run

CYCLES = 3_000_000  # of an accelerator, before it is the next one's turn
FEW_CYCLES = 100_000
FEW_RUNS = 10_000  # names of runs that a seed stands for, with --few, --modes and --queue


def turns(seed, among, first, step):
    """Numbers of accelerators, those ``among`` which they are to be or all, of the first of the runs that it is their
    turn for, and the cycles that these take."""
    if not among:
        yield from ((number, 0, CYCLES) for number in count(seed + first, step))
    for turn in count():
        yield among[(first + turn * step) % len(among)], seed * FEW_RUNS + 100 * turn, FEW_CYCLES


def work(k, jobs, seed, among, seconds, news):
    """The process ``k``: runs for some seconds, those apart in which something is built."""
    def tell(kind, what=None):
        news.put((k, kind, what))

    try:
        for number, first, cycles in turns(seed, among, k, jobs):
            accelerator = chance.accelerator(number)
            tell("builds", f"accelerator {number}: {accelerator}")
            key = library(accelerator).parent.name.rpartition("-")[2]
            tell("runs", f"accelerator {number}: {accelerator}")
            for one in count(first):
                began, log = time.time(), []
                try:
                    counter = run(accelerator, [number, one], log)
                except AssertionError as error:
                    return tell("broken", report(number, one, accelerator, error, log))
                tell("ran", (str(accelerator), counter, key))
                cycles -= counter["cycles"]
                seconds -= time.time() - began
                if seconds <= 0:
                    return tell("done")
                if cycles <= 0:
                    break
    except Exception:
        tell("broken", traceback.format_exc())


def report(number, k, accelerator, error, log):
    return "\n".join([f"accelerator {number}: {accelerator}", *(f"  {line}" for line in log[-4:]),
                      f"SEED={number}.{k}: {error}", f"again: make soak SEED={number}.{k}"])


def soak(seconds, seed, among, jobs):
    """All processes; what they have met, the keys of the accelerators, and how one of them broke, or None."""
    news, counters, keys, broken, working = multiprocessing.Queue(), {}, {}, None, jobs
    processes = [multiprocessing.Process(target=work, args=(k, jobs, seed, among, seconds, news)) for k in range(jobs)]
    for process in processes:
        process.start()
    began = time.time()
    while working and broken is None:
        try:
            k, kind, what = news.get(timeout=5)
        except Empty:
            if not all(process.is_alive() or process.exitcode == 0 for process in processes):
                broken = "a process died"
            continue
        if kind == "ran":
            counters[what[0]] = counters.get(what[0], Counter()) + what[1]
            keys[what[0]] = what[2]
        elif kind == "broken":
            broken = what
        elif kind == "done":
            working -= 1
        else:
            show(began, counters, f"process {k} {kind} {what}\n")
        show(began, counters)
    for process in processes:
        if broken is not None:
            process.terminate()
        process.join()
    return counters, keys, broken


def show(began, counters, text=""):
    """The live line, where there is a terminal; with a text, a line that stays."""
    total = sum(counters.values(), Counter())
    faults = sum(number for kind, number in total.items() if kind.startswith(counts.FAULTS))
    line = f"{time.time() - began:6.0f} s  {total['cycles'] / 1e6:8.1f} Mcycles  {total['tensors']:7,} tensors  " \
           f"{faults:6,} faults  {text}"
    terminal = sys.stdout.isatty()
    if text or terminal:
        print("\r" * terminal + line, end="", flush=True)


def swept():
    """The whole sweep; whether all of it ended well."""
    well = True
    for cdus in (4, 2, 3, 8):
        for modes in (chance.JPEG_ACT, ("raw", "zvc"), chance.STREAMS):
            accelerator = Accelerator(cdus, modes)
            library(accelerator)
            for kind in sweep.KINDS:
                broken = sweep.sweep(accelerator, kind)
                total = 2 * len(sweep.PLACES) * len(modes)
                print(f"{accelerator}, {kind}: {total - len(broken)} of {total} end well", *broken, sep="\n  ",
                      flush=True)
                well &= not broken
    return well


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m tb.soak", description=__doc__.split("\n\n")[0])
    parser.add_argument("--minutes", type=float, default=10, help="of simulation; what is built comes on top")
    parser.add_argument("--seed", help="A: begin with accelerator A; A.R: only run R of it; otherwise chance decides")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--few", action="store_true", help="only the few accelerators that tests build, too")
    which.add_argument("--modes", choices=["all"], help="only accelerators that have all modes: 1 to 4 and 8 lanes")
    which.add_argument("--queue", action="store_true", help="only accelerators with a queue")
    which.add_argument("--sweep", action="store_true", help="every class of row, mode and direction instead")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count()), help="processes")
    parser.add_argument("--renew", action="store_true", help="record the counts in docs/records/soak.json")
    options = parser.parse_args(arguments)
    single = options.seed is not None and "." in options.seed
    if options.sweep and (options.seed or options.renew):
        parser.error("--sweep has neither --seed nor --renew")
    if single and (options.few or options.modes or options.queue or options.renew):
        parser.error(f"--seed {options.seed} is one run, of which nothing is recorded, on an accelerator that it names")
    if options.sweep:
        return not swept()
    seed = options.seed or str(random.SystemRandom().randrange(10, 1_000_000))
    if single:
        number, k = map(int, seed.split("."))
        log = []
        accelerator = chance.accelerator(number)
        print(f"accelerator {number}: {accelerator}", flush=True)
        try:
            counter = run(accelerator, [number, k], log)
            print(*log, f"run {seed} ends well: {dict(counter)}", sep="\n")
            return 0
        except AssertionError as error:
            print(report(number, k, accelerator, error, log))
            return 1
    print(f"SEED={seed}")
    among, chosen = ((chance.WHOLE, " MODES=all") if options.modes else (chance.RINGS, " QUEUE=1") if options.queue
                     else (chance.FEW, " FEW=1") if options.few else ((), ""))
    counters, keys, broken = soak(60 * options.minutes, int(seed), among, options.jobs)
    print(*counts.table(counters), sep="\n")
    if broken is not None:
        print(f"\nsoak: failed\n{broken}")
        return 1
    if options.renew:
        counts.record(f"SEED={seed}{chosen}", counters, keys)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (SimulationError, ValueError) as error:
        sys.exit(f"soak: {error}")
