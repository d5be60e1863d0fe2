"""What docs/pytorch.md has of records, and that what measures them runs."""

import pytest
import torch

from docs import figures, torch_halves, torch_memory, torch_networks, torch_record, torch_speed, torch_temporaries


@pytest.mark.parametrize("table", torch_record.HEADS)
def test_the_tables_are_those_of_the_record(table):
    text, tables, stale = torch_record.DOCUMENT.read_text(), torch_record.load(), figures.stale_labels()["torch"]
    assert torch_record.render(text, tables, stale) == text, "run make docs"
    tables[table][0][-1] += 1
    assert torch_record.render(text, tables, stale) != text
    assert ("† All of it" in torch_record.render(text, tables, [table]))


def test_memory_is_measured_with_what_checkpoints_and_codecs_save(monkeypatch):
    monkeypatch.setattr(torch_memory, "networks", lambda: list(small()))
    monkeypatch.setattr(torch_memory, "INDUCTOR", {})  # which takes half a minute to compile this network
    rows = {way: figures for _, way, *figures in torch_memory.rows(1)}
    assert set(rows) == {way for way, *_ in torch_memory.WAYS} and rows["plain"][2] == 1
    size = {way: left for way, (left, *_) in rows.items()}
    assert size["checkpoints, `sfpr`"] < size["checkpoints"] < size["plain"] > size["`sfpr`, signs"]
    assert all(peak >= left and time > 0 and rate > 0 for left, peak, time, rate, _ in rows.values())
    batch = {way: count for way, (*_, count) in rows.items()}
    assert batch["checkpoints, `sfpr`"] > batch["plain"] < batch["`sfpr`, signs"]


def test_inductor_keeps_a_byte_of_a_value_in_fp8():
    model, x = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU()), torch.randn(2048, 64)
    left = {}
    for way, options in torch_memory.INDUCTOR.items():
        forward = torch_memory.compiled(lambda run: run(model, x).square().mean(), options)
        forward().backward()  # compiles
        left[way] = torch_memory.memory(forward)[0]
    assert left["Inductor"] == pytest.approx(x.nbytes, rel=0.1)  # what goes into GELU
    assert left["Inductor, FP8"] == pytest.approx(2 * x.nbytes / 4, rel=0.1)  # and what goes into the first layer


def test_the_greatest_batch_has_its_peak_in_the_budget():
    (_, count, model, loss), = small()
    forward = torch_memory.ways(model, loss(count))["plain"]
    forward().backward()
    first, second, (_, five) = (torch_memory.memory(torch_memory.ways(model, loss(times * count))["plain"])
                                for times in (1, 2, 5))
    (left, one), (more, two) = first, second
    assert five == pytest.approx(one + 4 * (two - one), rel=0.01)
    batch = torch_memory.greatest(count, first, second)
    peak = 2 * one - two + (two - one) * batch / count
    assert peak <= torch_memory.BUDGET < peak + (two - one) / count
    assert torch_memory.greatest(count, (left, one), (more, one + (more - left) * 9 // 10)) is None


def small():
    model = torch_memory.Language(2, 64)

    def loss(count):
        tokens = torch.randint(0, 256, (count, 64))
        return lambda run: model(tokens, run).square().mean()

    yield "small", 2, model, loss


def test_speed_and_networks_are_measured():
    rows = torch_speed.rows({"`sfpr`": ("sfpr", {})}, 1)
    assert [name for name, *_ in rows] == [torch_speed.CHECKPOINTS, "`sfpr`"]
    assert all(ratio > 0 for row in rows for ratio in row[1:])
    (name, *figures), = torch_networks.rows(["lstm"])
    assert name == "lstm" and len(figures) == 8 and all(ratio >= 1 for ratio in figures[::2])


def test_temporaries_and_halves_are_measured():
    (name, *figures), = torch_temporaries.rows({"`sfpr`": ("sfpr", {})})
    assert name == "`sfpr`" and figures == pytest.approx([0.25, 1], rel=0.01)
    (name, *figures), = torch_halves.rows({"`sfpr`": ("sfpr", {})}, (1, 8, 64, 64), 1)
    assert name == "`sfpr`" and len(figures) == 4 and all(ratio > 0 for ratio in figures)
