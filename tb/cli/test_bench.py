"""The bench of the accelerator: what it promises, in exact cycles, and that its tables and picture come out."""

import json
import math
from collections import Counter
from itertools import product

import numpy as np
import pytest
from click.testing import CliRunner

import actcodec
from actcodec import cli, demo
from actcodec.bench import cycles as bench_cycles
from actcodec.bench import queued
from actcodec.bench import run as bench
from actcodec.codecs import JPEG_ACT
from actcodec.sim import accelerator as simulated
from actcodec.sim import rtl_engine, simulator
from tb.judges.test_comet_turns import cycles, demands
from tb.soak import chance

CDUS = 4
GROUPS = 1000
FILL = 2 * bench_cycles.LATENCY + 250  # cycles from the start to the first sector, and from the last one to the end


@pytest.fixture(autouse=True)
def few_modes(one_lane, monkeypatch):
    """The lanes are those that other benches have compiled: of the paper's modes, which take a fifth of the time to
    simulate, or of all modes, which also take codes at the cache."""
    make = simulator.Accelerator

    def accelerator(cdus, modes, **hardware):
        return make(cdus, chance.EVERY if "formats" in hardware else modes, **hardware)

    def configuration(mode):
        return JPEG_ACT if mode in JPEG_ACT else chance.EVERY

    monkeypatch.setattr(simulator, "Accelerator", accelerator)
    monkeypatch.setattr(bench_cycles, "FORMATS", chance.FORMATS)
    for module in rtl_engine, simulated:
        monkeypatch.setattr(module, "configuration", configuration)


def tensor(name):
    """A real tensor, repeated to 1,000 groups."""
    x = demo.sample()[name]
    x = np.tile(x, (16, 1, 1, 1)).reshape(1, -1, *x.shape[2:])
    return x[:, : GROUPS * 4 * 64 // (x.shape[2] * x.shape[3])]


@pytest.mark.regress
@pytest.mark.parametrize(("mode", "name"), [("sfpr-zvc", "ReLU_layers_0_relu1"), ("jpeg-act", "conv0"),
                                            ("division", "conv0")])
@pytest.mark.parametrize("back", [False, True], ids=["compress", "decompress"])
def test_a_thousand_groups_pass_at_99_percent_of_the_limit(mode, name, back):
    rate = bench_cycles.measure(mode, back, 32, CDUS, tensor(name))
    assert rate.blocks == GROUPS * 4 / CDUS
    assert 8 <= rate.steady <= 8 / 0.99
    assert 8 * rate.blocks < rate.cycles <= 8 / 0.99 * rate.blocks + FILL


@pytest.mark.regress
@pytest.mark.parametrize("back", [False, True], ids=["compress", "decompress"])
def test_one_port_to_memory_for_all_lanes_is_used_in_every_cycle(back):
    assert bench_cycles.share("sfpr-zvc", back, 33, CDUS).used > 0.999  # rows begin anywhere in a beat


@pytest.mark.regress
@pytest.mark.parametrize("back", [False, True], ids=["compress", "decompress"])
def test_four_coders_take_a_code_a_cycle_each(back):
    """Of jpeg80, for which they are dimensioned: blocks with more codes than 32 wait for each other, a little."""
    result = bench_cycles.code("jpeg80", 4, back)
    assert result.symbols == pytest.approx(30.7, abs=0.1)
    assert 8 <= result.steady < 1.2 * max(8, result.symbols / 4)


@pytest.mark.regress
@pytest.mark.parametrize("back", [False, True], ids=["compress", "decompress"])
@pytest.mark.parametrize("name", ["12x", "4x", "JPEG-ACT optH nibble, dense",
                                  f"12x{bench_cycles.CACHE}{bench_cycles.ONE_PORT}"])
def test_the_dma_engine_is_used_to_the_full(name, back):
    result = bench_cycles.offload_by_name(name, CDUS, back)
    payload = result.rate * result.cycles / bench_cycles.CLOCK / result.ratio
    least, tensors = payload * bench_cycles.CLOCK / bench_cycles.PCIE, 1 if name[0].isdigit() else sum(
        not (name.endswith("dense") and key.startswith("ReLU")) for key in demo.sample())
    assert 0.999 * least <= result.cycles <= 1.01 * least + tensors * FILL
    if tensors == 1:
        assert result.ratio == pytest.approx(int(name.partition("x")[0]), rel=0.02)


@pytest.mark.regress
@pytest.mark.parametrize("back", [False, True], ids=["compress", "decompress"])
def test_float32_is_held_up_at_one_port_for_all_lanes(back):
    """A beat, a sector, in a cycle; of codes it has four."""
    result = bench_cycles.offload_by_name(f"12x{bench_cycles.ONE_PORT}", CDUS, back)
    sectors = math.prod(bench_cycles.SYNTHETIC) / 8
    assert sectors <= result.cycles <= sectors * 1.01 + FILL


def test_codes_at_the_cache_are_those_of_the_same_tensors():
    for ratio in (4, 8, 12):
        (x, mode, _), = bench_cycles.fixed(f"{ratio}x")
        (codes, same, _), = bench_cycles.fixed(f"{ratio}x{bench_cycles.CACHE}{bench_cycles.ONE_PORT}")
        whole, behind = (actcodec.compress(one, mode) for one in (x, codes))
        assert (same, behind.payload) == (mode, whole.payload) and codes.dtype == np.int8


@pytest.mark.regress
@pytest.mark.parametrize("cdus", [CDUS, 1])
def test_comet_takes_a_sector_a_cycle_but_for_escapes_and_turns(cdus):
    for name in ("conv0", "ReLU_layers_0_relu1"):
        result = bench_cycles.streamed("comet", name, 0.0635, cdus)
        assert result.blocks == 4096 // cdus
        lanes = demands(bench_cycles.batch(demo.sample()[name]), 0.0635, cdus)
        assert max(map(len, lanes)) < 8 * result.blocks / 0.96
        for back, took in enumerate(result.cycles):  # by the model of the wire; the plan, and latencies
            least = cycles(lanes, 8, 128, bool(back))
            assert least < took < least + 200 + 35 * (cdus - 1)
        assert result.ratio > 9


def test_tensors_are_as_networks_have_them_and_long_enough():
    for width, channels in bench_cycles.CHANNELS.items():
        for cdus in (1, 2, 4, 8):
            n, c, h, w = bench_cycles.shape(width, cdus)
            assert h == w == width and c <= channels
            assert n * c * h * -(-w // 8) / 8 >= 4 * bench_cycles.GROUPS * cdus


@pytest.fixture
def small(monkeypatch):
    """Tensors of all shapes that are measured, but with few channels."""
    tensors = {name: x[:1, :4] for name, x in demo.sample().items()}
    for name, value in {"sample": lambda: tensors, "GROUPS": 1, "BATCH": 1, "SYNTHETIC": (1, 4, 32, 32)}.items():
        monkeypatch.setattr(bench_cycles, name, value)


def full(function):
    """Arguments of the jobs of the full list that call a function, with one CDU and four coders: other numbers take
    other simulators, which are slower, too."""
    jobs = [arguments for one, arguments in bench.jobs(False) if one is function]
    at, number = {bench_cycles.code: (1, 4), bench_cycles.offload_by_name: (1, 1),
                  queued.queued: (0, 1)}.get(function, (3, 1))
    return sorted({(*one[:at], number, *one[at + 1:]) for one in jobs})


@pytest.mark.regress
@pytest.mark.parametrize("function", sorted({function for function, _ in bench.jobs(False)}, key=lambda f: f.__name__))
def test_every_job_of_the_full_lists_runs(function, small):
    for arguments in full(function):
        function(*arguments)


def fake(quick):
    """Results without a simulation."""
    rates, shared, offloads, streamed, codings, queues = [], [], [], [], [], []
    for function, arguments in bench.jobs(quick):
        if function is bench_cycles.measure:
            mode, back, width, cdus = arguments
            rates.append(bench_cycles.Rate(mode, back, width, cdus, bench_cycles.shape(width, cdus), 1000, 8400, 8.04))
        elif function is bench_cycles.share:
            mode, back, width, cdus = arguments
            shared.append(bench_cycles.Shared(mode, back, width, cdus, 32000, 0.789))
        elif function is bench_cycles.streamed:
            streamed.append(bench_cycles.Streamed(*arguments, 9.87, 1000, (8192, 8125)))
        elif function is bench_cycles.code:
            codings.append(bench_cycles.Coding(*arguments, 31.4, 8.15))
        elif function is queued.queued:
            cdus, minibatch, policy = arguments if len(arguments) > 1 else (*arguments, None, "")
            queues.append(queued.Queued(
                cdus, minibatch, policy, 18, 1_000_000, 250_000, (20_000, 21_000),
                ((30_000, 45_000), (50_000, 55_000))))
        else:
            name, cdus, back = arguments
            offloads.append(bench_cycles.Offload(name, back, cdus, 4.0, 1000, 50.0))
    return rates, shared, offloads, streamed, codings, queues


@pytest.mark.parametrize("quick", [False, True])
def test_every_mode_width_and_number_is_in_the_tables_and_the_picture(quick, tmp_path, capsys):
    rates, shared, offloads, streamed, codings, queues = fake(quick)
    few = 8, 28, 224
    places = [(width, number) for number in ((1, CDUS) if quick else (1, 2, 4, 8))
              for width in (few if quick or number != CDUS else bench_cycles.CHANNELS)]
    assert Counter((r.mode, r.decompress, (r.width, r.cdus)) for r in rates) == Counter(
        product(bench_cycles.measured(), (False, True), places))
    widths, numbers = ((32,), (CDUS,)) if quick else ((28, 32, 33, 224), (1, CDUS))
    assert Counter((s.mode, s.decompress, s.width, s.cdus) for s in shared) == Counter(
        product(JPEG_ACT, (False, True), widths, numbers))
    assert Counter((s.mode, s.tensor, s.error, s.cdus) for s in streamed) == Counter(
        product(bench_cycles.lossy_streams(), demo.sample(), bench_cycles.ERRORS, (1, CDUS)))
    assert {(c.dqt, c.coders) for c in codings} == {
        (dqt, n) for dqt in bench_cycles.SYMBOLS for n in ((4,) if quick else (1, 2, 4, 8))}
    assert sorted((q.policy, q.minibatch or 1, q.cdus) for q in queues) == [
        ("", 1, 1), ("", 1, CDUS), *((queued.BEST, images, CDUS) for images in queued.BATCHES)]
    bench.report(rates, shared, offloads, streamed, codings, queues, tmp_path)
    text = capsys.readouterr().out
    assert all(mode in text for mode in bench_cycles.measured())
    assert "8.04" in text and "0.995" in text and "108.8" in text
    assert text.count("0.789") == len(shared) and text.count("8.15") == len(codings)
    assert text.count("0.977/0.985") == len(streamed)
    assert all(f"31.4 ({planned})" in text for planned in bench_cycles.SYMBOLS.values())
    report = json.loads((tmp_path / "report.json").read_text())
    assert len(report["rates"]) == len(rates) and report["rates"][0]["total"] == 8.4
    assert len(report["offload"]) == len(offloads) and report["paper"]["cDMA+"] == [1.3, 15.6]
    assert len(report["streamed"]) == len(streamed) and report["streamed"][0]["rates"] == [8000 / 8192, 8000 / 8125]
    assert len(report["queued"]) == len(queues) and text.count("48.5") == len(queues)  # GB/s without a ring
    assert (tmp_path / "bench.png").read_bytes().startswith(b"\x89PNG")


def test_the_command_passes_its_options_on(monkeypatch, tmp_path):
    called = []
    monkeypatch.setattr(bench, "run", lambda *arguments: called.append(arguments))
    result = CliRunner().invoke(cli.main, ["bench", "--quick", "--output", str(tmp_path)])
    assert (result.exit_code, called) == (0, [(tmp_path, True, None)])
    result = CliRunner().invoke(cli.main, ["bench", "--step", "2", "--output", str(tmp_path)])
    assert (result.exit_code, called[1:]) == (0, [(tmp_path, False, 2)])


def test_a_step_is_measured_alone(monkeypatch, tmp_path, capsys):
    todo = []

    def simulated(jobs):
        todo.extend(jobs)
        return [queued.Queued(cdus, minibatch, "", 9, 1_000_000, 250_000, (20_000, 21_000), ())
                for _, (cdus, minibatch) in jobs]

    monkeypatch.setattr(bench, "simulated", simulated)
    bench.run(tmp_path, minibatch=16)
    assert sorted(arguments for _, arguments in todo) == [(1, 16), (CDUS, 16)]
    assert capsys.readouterr().out.count("72.8") == 2  # GB/s
    report, = (json.loads(path.read_text()) for path in tmp_path.iterdir())
    assert [one["minibatch"] for one in report["queued"]] == [16, 16]


def test_a_step_offloads_what_the_method_keeps():
    """ResNet-50's maps, once each, in JPEG-ACT's modes; real values in their shapes."""
    for minibatch in (None, 1, 2):
        todo = queued.tensors(minibatch)
        assert len(todo) == (37 if minibatch is None else 105)
        for (shape, kind, mode), x in zip(todo, queued.values(todo), strict=True):
            assert (x.size, shape[0]) == (math.prod(shape), minibatch or 1)
            assert mode == {"dense": "jpeg-act"}.get(kind, mode) and (kind == "dense" or 0.2 < np.mean(x == 0) < 0.8)
        assert {mode for _, _, mode in todo} == {"jpeg-act", "sfpr-zvc"} | ({"brc"} if minibatch else set())
