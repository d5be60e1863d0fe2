"""The documents' figures are those that are recorded."""

import itertools
import json
import os
import re

import pytest

from actcodec.bench.run import report
from actcodec.synth.layout.command import SHOWN
from docs import content, figures, measured, offload, pictures, rates, ratios, readme, records, site, tables
from tb.cli.line import succeeds
from tb.cli.test_bench import fake

RECORDED = json.loads((tables.ROOT / "synth/baseline.json").read_text())


@pytest.mark.parametrize("name", tables.DOCUMENTS)
def test_the_figures_in_the_documents_are_up_to_date(name):
    text = (tables.ROOT / name).read_text()
    assert tables.BEGIN in text
    assert tables.render(text, RECORDED, figures.stale_labels()["areas"]) == text, "run make docs"


@pytest.mark.regress
def test_the_ratios_of_all_modes_are_up_to_date():
    text = ratios.DOCUMENT.read_text()
    stale = text.replace("| `raw` | 1.00 |", "| `raw` | 2.00 |")
    assert stale != text
    assert ratios.render(stale) == text, "run make docs"


def test_the_figures_of_the_fpga_and_of_late_units_are_up_to_date():
    text = (tables.ROOT / tables.PLACED).read_text()
    luts = json.loads((tables.ROOT / "synth/fpga.json").read_text())["sfpr"]["luts"]
    stale = text.replace(f"| sfpr | {luts:,} |", "| sfpr | 5 |")
    assert stale != text
    assert tables.render_synthesis(stale, RECORDED, figures.stale_labels()) == text, "run make docs"


def test_a_placed_netlist_s_row_has_both_slacks_and_a_mark():
    one = {"mapped": [1.2, 1000.0], "placed": -43.0, "late": 11, "slack": 3.8, "left": 0, "area": 1010.0,
           "length": 45.4, "corners": {"low": 9.6, "high": -12.0, "load": -90.0},
           "clock": {"area": 59.6, "power": 2.48, "skew": 22.6}}
    assert list(tables.placed({"zvc": one}, ["zvc"]))[2:] == [
        "| zvc | +1 | -43 (11) | 1,370 | +4 (0) | 1,464 | 1,010† | +1.0% | 45 | +10, -12, -90 | 60, 2.5, 23 |"]


def test_pictures_of_places_are_those_of_the_record():
    recorded = json.loads((tables.ROOT / "docs/records/placed.json").read_text())
    for label in SHOWN:
        picture = (tables.ROOT / f"docs/pictures/placed-{label}.svg").read_text()
        assert picture.endswith(f"<!-- {recorded[label]['key']} -->\n") and len(picture) < 400_000
        assert f"pictures/placed-{label}.svg" in (tables.ROOT / tables.PLACED).read_text()


def test_a_row_of_sky130_compares_gates_and_names_both_recipes():
    one = {"area": 4129.0, "slack": -3.6, "fmax": 397.9, "recipe": "least",
           "nangate45": {"area": 798.0, "slack": 0.0, "recipe": "fast"}}
    assert list(tables.sky130({"dct": one}, ["dct"]))[2:] == [
        "| dct | 1.00 | 1,456 | 1.10† | +10% | 4,129 | -4 | 398 | `least` (`fast`) |"]
    same = one | {"recipe": "fast"}
    assert list(tables.sky130({"dct": same}))[2].endswith("| 1.10 | +10% | 4,129 | -4 | 398 | `fast` |")


def test_late_is_what_has_negative_slack():
    one = {"area": 1234.5, "slack": 0.0, "recipe": "fast"}
    assert list(tables.late({"dct": one, "zvc": one | {"slack": -0.4}}))[2:] == ["| zvc | 1,234 | -0.4 | `fast` |"]
    assert list(tables.late({"dct": one})) == ["Everything that is mapped meets 1.455 GHz."]
    assert list(tables.late({"dct": one, "zvc": one}, ["zvc"])) == [
        "Everything that is mapped meets 1.455 GHz; by the flow or RTL before: `zvc`."]


def test_the_page_of_records_is_up_to_date():
    assert records.page() == records.DOCUMENT.read_text(), "run make docs"


def kind(today, quick=False):
    return figures.Kind("some", lambda: {"dct": "1", "fadd": "2", "zvc": None, "gone": "3"},
                        lambda labels: {label: today for label in labels if label != "gone"}, lambda labels: [], quick)


def test_stale_is_what_has_another_key_or_none_or_is_gone():
    assert figures.outdated(kind("1")) == ["fadd", "gone", "zvc"]
    assert figures.outdated(kind("2")) == ["dct", "gone", "zvc"]


def test_what_is_stale_without_a_mark_or_in_the_readme_fails(monkeypatch, tmp_path):
    monkeypatch.setattr(figures, "KINDS", {"slow": kind("1"), "quick": kind("1", quick=True)})
    monkeypatch.setattr(figures, "PATH", tmp_path / "stale.json")
    monkeypatch.setattr(figures.content, "ROOT", tmp_path)
    (tmp_path / "README.md").write_text("| 12 |")
    assert figures.stale_labels() == {"slow": [], "quick": ["fadd", "gone", "zvc"]}
    changes = figures.changed(["slow", "quick"])
    assert list(figures.check(changes)) == ["some without a mark: fadd, gone, zvc; run make stale docs"]
    figures.write(changes)
    assert figures.stale_labels()["slow"] == ["fadd", "gone", "zvc"] and "quick" not in figures.PATH.read_text()
    assert list(figures.check(changes)) == []
    (tmp_path / "README.md").write_text("| 12† |")
    assert [text.split(" ")[0] for text in figures.check(changes)] == ["README.md"]


def test_what_is_stale_is_measured_again_and_nothing_else(monkeypatch, tmp_path):
    """A command of one kind records, that of another fails, and a third has nothing to do."""
    def recorded(name):
        return lambda: json.loads((tmp_path / f"{name}.json").read_text())

    def command(name):
        return lambda labels: [["-c", "import json; from pathlib import Path; "
                                f"path = Path({f'{name}.json'!r}); known = json.loads(path.read_text()); "
                                f"path.write_text(json.dumps(known | dict.fromkeys({labels!r}, '1')))"
                                if name != "bad" else f"raise SystemExit({labels!r})"]]

    records = {"good": {"dct": "1", "zvc": "0"}, "bad": {"rice": None}, "current": {"fadd": "1"}}
    for name, record in records.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(record))
    monkeypatch.setattr(figures, "KINDS", {name: figures.Kind(
        name, recorded(name), lambda labels: dict.fromkeys(labels, "1"), command(name)) for name in records})
    monkeypatch.setattr(figures, "PATH", tmp_path / "stale.json")
    monkeypatch.setattr(figures.content, "ROOT", tmp_path)
    failed, = figures.measure(list(records), 2)
    assert "['rice']" in failed
    assert recorded("good")() == {"dct": "1", "zvc": "1"}
    assert figures.stale_labels() == {"good": [], "bad": ["rice"], "current": []}
    assert json.loads(figures.PATH.read_text()) == {"bad": ["rice"], "good": []}


def test_what_failed_records_nothing(monkeypatch, tmp_path):
    """By the commands that follow it."""
    commands = [["-c", "raise SystemExit(1)"], ["-c", f"open({str(tmp_path / 'recorded')!r}, 'w')"]]
    monkeypatch.setattr(figures, "KINDS", {"some": figures.Kind(
        "some", lambda: {"dct": None}, lambda labels: {}, lambda labels: commands)})
    monkeypatch.setattr(figures, "PATH", tmp_path / "stale.json")
    assert figures.measure(["some"], 2) == ["-c raise SystemExit(1)"]
    assert not (tmp_path / "recorded").exists()


def test_every_figure_has_a_key_or_a_mark():
    """What needs elaboration is compared with the sources by make stale CHECK=1, which CI runs."""
    stale = figures.stale_labels()
    for name, kind in figures.KINDS.items():
        recorded = kind.recorded()
        assert set(stale[name]) <= set(recorded), name
        assert {label for label, key in recorded.items() if key is None} <= set(stale[name]), "run make stale docs"
        assert kind.commands(list(recorded)), name


def test_commands_name_what_is_known():
    """Of every label that is recorded, or its unit."""
    orders = figures.orders()
    for name in ("areas", "placed", "sky130", "power", "netlists"):
        assert set(figures.KINDS[name].recorded()) <= set(orders), name
    (_, _, command, *names, renew), = figures.KINDS["areas"].commands(["lane (independent memory)", "dct"])
    assert (command, names, renew) == ("baseline", ["accelerator-independent-memory", "dct"], "--renew")
    (*_, name, last), = figures.KINDS["fpga"].commands(["maxpool (width 16)", "gone"])
    assert (name, last) == ("maxpool", "--renew")
    for name in ("areas", "fpga"):
        assert figures.KINDS[name].commands(["gone"]) == []


def test_keys_of_sources_change_with_code_and_data_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(content, "ROOT", tmp_path)
    (tmp_path / "tb/vectors").mkdir(parents=True)
    (tmp_path / "tb/vectors/digests.json").write_text('{"raw a": "1", "sfpr a": "2"}')
    seen = []
    for text in ('"""A."""\ndef f(x):\n    return x\n', "def f(x):\n    return x + 1\n",
                 '"""B."""\ndef f(x: int) -> int:  # why\n    """C."""\n    return x\n'):
        (tmp_path / "a.py").write_text(text)
        seen.append(content.key("a.py"))
    assert seen[0] == seen[2] != seen[1]
    raw, sfpr = (content.key("a.py", modes=(mode,)) for mode in ("raw", "sfpr"))
    (tmp_path / "tb/vectors/digests.json").write_text('{"raw a": "1", "sfpr a": "3"}')
    assert content.key("a.py", modes=("raw",)) == raw and content.key("a.py", modes=("sfpr",)) != sfpr


@pytest.mark.parametrize("name, figure", [("docs/performance.md", "| 0.969 |"), ("docs/performance.md", "| 91.7 |"),
                                          ("docs/performance.md", "| 0.848 |"), ("docs/performance.md", "| 15.10 |"),
                                          ("docs/ratios.md", " 11.82, ")])
def test_the_rates_are_up_to_date(name, figure):
    text = (tables.ROOT / name).read_text()
    stale = text.replace(figure, re.sub(r"\d", "7", figure))
    assert stale != text
    assert rates.render(stale, name, rates.load(), figures.stale_labels()["bench"]) == text, "run make docs"


@pytest.mark.parametrize("figure", ["| 21.15 |", "| 19.73 |", "| 19.05 |"])
def test_what_takes_long_to_measure_is_as_it_was_recorded(figure):
    text = measured.DOCUMENT.read_text()
    stale = text.replace(figure, "| 0.00 |")
    assert stale != text
    assert measured.render(stale, measured.load(), figures.stale_labels()["measured"]) == text, "run make docs"


def test_power_is_as_it_was_recorded():
    text = (tables.ROOT / tables.POWER).read_text()
    record = json.loads((tables.ROOT / "docs/records/power.json").read_text())
    stale = re.sub(r"\| lane \| [\d.]+", "| lane | 1.0", text)
    assert stale != text
    assert tables.render_power(stale, record, figures.stale_labels()["power"]) == text, "run make docs"


def test_what_the_bench_leaves_can_be_recorded(tmp_path):
    """Its figures take the places of those before; what it did not measure stays."""
    report(*fake(True), tmp_path)
    before = rates.load()
    after = rates.merge(before, tmp_path)
    assert json.loads(rates.text(after)) == after
    assert after["speed"] == before["speed"]
    assert after["coders"]["jpeg80"]["cycles"]["8"] == before["coders"]["jpeg80"]["cycles"]["8"]
    for mode, way in itertools.product(("division", "sfpr"), rates.WAYS):
        measured = dict.fromkeys(("8", "28", "224"), 8.04)
        assert after["rates"][mode][way] == before["rates"][mode][way] | measured
    assert after["tensors"]["division"] == after["tensors"]["brc"] == [360, 360]
    assert after["offload"]["8x"]["rates"] == before["offload"]["8x"]["rates"] | {"1": 50.0, "4": 50.0}
    assert after["streams"]["comet"]["0.0635"]["4"] == [0.9766, 0.9766, 0.9846, 0.9846]
    assert after["coders"]["jpeg80"] == {"cycles": before["coders"]["jpeg80"]["cycles"] | {"4": [8.15, 8.15]},
                                         "symbols": 31.4}
    (tmp_path / "speed.json").write_text(json.dumps([{
        "name": "raw", "ratio": 1, "error": 0, "compress": 10.4, "decompress": 20, "memory_compress": 1.5,
        "memory_decompress": 2, "knob": None, "better": ["ratio"]}]))
    after = rates.merge(before, tmp_path)
    assert list(rates.speed(after))[2:] == ["| `raw` | 1.00 | 0.0000 | 10 | 20 | 2.0 | ratio |"]


@pytest.mark.parametrize("minibatch, policy, section", [
    (None, "", "queue"), (1, "", "step"), (16, "", "batch"), (16, "JPEG-ACT optH", "best")])
def test_only_what_a_ring_has_run_is_of_today(tmp_path, minibatch, policy, section):
    row = {"minibatch": minibatch, "policy": policy, "cdus": 2, "tensors": 1, "bytes": 2, "payload": 1, "ring": [9, 9],
           "alone": []}
    (tmp_path / "report.json").write_text(json.dumps({"queued": [row]}))
    before = rates.load()
    after = rates.merge(before, tmp_path)
    assert {name for name in after["keys"] if after["keys"][name] != before["keys"].get(name)} <= {section}
    assert after["keys"][section]["key"] == figures.sections("bench")[section]
    assert {name for name in before if after[name] != before[name]} - {"keys"} == {section}
    assert after[section] == before[section] | {f"{minibatch or 1}, 2": {
        name: row[name] for name in ("tensors", "bytes", "payload", "ring", "alone")}}


def test_a_step_is_measured_by_its_own_command():
    commands = figures.KINDS["bench"].commands
    assert [" ".join(one) for one in commands(["step", "batch"])] == [
        "-m actcodec bench --step 1 --output build/step", "-m docs.rates build/step",
        "-m actcodec bench --step 16 --output build/batch", "-m docs.rates build/batch"]
    assert [" ".join(one) for one in commands(["rates", "coders"])] == [
        "-m actcodec bench --output build/bench", "-m docs.rates build/bench"]


@pytest.mark.parametrize("report, sources, said", [
    ("report.json", None, None), ("report.json", "cycles.py", "before cycles.py was written: run make bench"),
    ("speed.json", "cycles.py", None), ("speed.json", "golden/a.py", "before golden/a.py was written"),
    (None, None, "has no report.json and no speed.json: run make bench")])
def test_what_is_recorded_was_measured_on_the_sources_of_today(monkeypatch, tmp_path, report, sources, said):
    monkeypatch.setattr(content, "ROOT", tmp_path)
    monkeypatch.setattr(rates, "ROOT", tmp_path)
    monkeypatch.setitem(figures.SOURCES, "bench", {"rates": (("cycles.py",), ()), "speed": (("golden",), ())})
    (tmp_path / "golden").mkdir()
    for name in ("cycles.py", "golden/a.py", *([report] if report else ())):
        (tmp_path / name).write_text("")
        os.utime(tmp_path / name, (1, 2 if name == sources else 1))
    if said:
        with pytest.raises(SystemExit, match=said):
            rates.check(tmp_path)
    else:
        rates.check(tmp_path)


def test_an_example_that_fails_is_not_written():
    with pytest.raises(SystemExit, match=r"actcodec offload --nonsense: [\s\S]*No such option"):
        offload.output("actcodec offload --nonsense")


def rows(text, header):
    """The cells of a table's rows, by the beginning of its header."""
    lines = text[text.index(header):].split("\n\n")[0].split("\n<!--")[0].splitlines()[2:]
    return [tables.split(line) for line in lines]


def test_the_ratios_in_the_readme_are_those_of_all_modes():
    """Each stands in a row of its mode, rounded as it is there."""
    known = {}
    for first, *cells in rows(ratios.DOCUMENT.read_text(), "| mode | dense: ratio |"):
        known.setdefault(re.match(r"`([\w-]+)`", first)[1], []).extend(float(cells[k]) for k in (0, 3))
    seen = 0
    for first, _, _, cell, _ in rows(readme.PATH.read_text(), "| mode | for |"):
        named = re.findall(r"`([\w-]+)", first)  # `ssdc-fp16`, `-fp10`
        modes = [named[0].rsplit("-", 1)[0] + name if name.startswith("-") else name for name in named]
        legal = [ratio for mode in modes for ratio in known[mode]]
        for number in re.findall(r"\b[\d.]+\b", cell.split(" at ")[0]):
            assert float(number) in [round(ratio, len(number.partition(".")[2])) for ratio in legal], (first, number)
            seen += 1
    assert seen > 20


def test_what_the_readme_reaches_is_what_was_measured():
    text = readme.PATH.read_text()
    stale = re.sub(r"offload [\d.]+", "offload 1.0", text.replace("| 15.18 |", "| 1.00 |"))
    assert stale != text
    assert readme.render(stale, figures.stale_labels()) == text, "run make docs"
    assert len(text.splitlines()) <= 150


def test_the_readme_says_of_an_array_what_its_code_prints(tmp_path, monkeypatch, capsys):
    code, printed = re.search(r"```python\n(import actcodec\n.*?)```\n\n```text\n(.*?)```", readme.PATH.read_text(),
                              re.DOTALL).groups()
    monkeypatch.chdir(tmp_path)
    exec(code, {})
    assert capsys.readouterr().out == printed


@pytest.mark.parametrize("name", pictures.PICTURES)
def test_pictures_are_up_to_date(name):
    assert (pictures.FOLDER / f"{name}.svg").read_text() == pictures.PICTURES[name]().svg(), "run make docs"


def test_a_treemap_fills_its_place():
    boxes = pictures.squarify([6, 6, 4, 3, 2, 2, 1], 10, 20, 600, 400)
    assert sum(width * height for *_, width, height in boxes) == pytest.approx(600 * 400)
    assert [round(width * height / 10000) for *_, width, height in boxes] == [6, 6, 4, 3, 2, 2, 1]
    assert max(max(width / height, height / width) for *_, width, height in boxes) < 4
    assert sum(size for _, parts in pictures.areas(RECORDED) for size in parts.values()) == pytest.approx(
        RECORDED["accelerator"]["area"])


def test_every_page_has_its_place_on_the_site():
    """mkdocs.yml has a line for each, in the shelf it belongs to."""
    named = re.findall(r"([\w/-]+\.md)$", (tables.ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    pages = {str(path.relative_to(tables.ROOT / "docs")) for path in (tables.ROOT / "docs").rglob("*.md")}
    assert sorted(named) == sorted(pages), "nav of mkdocs.yml"


def test_the_site_reads_what_is_written_for_github():
    text = ("Two things\n- one\n  of them\n- two\n1. no list\n\n<!-- x -->\n| a |\n|---|\nISCA\n2020. Not a list,\n"
            "[formats.md](../formats.md#dct), [there](../../rtl/x.py), [records/](records)\n```\nsh\n- as it is\n```")
    assert site.readable(text, 1, {"formats.md": "Formats"}) == (
        "Two things\n\n- one\n  of them\n- two\n1. no list\n\n<!-- x -->\n\n| a |\n|---|\nISCA\n2020. Not a list,\n"
        "[Formats](../formats.md#dct), there, records/\n```\nsh\n- as it is\n```")
    assert site.titles([{"Start": "index.md"}, {"How": [{"DCT": "dct.md"}]}]) == {"index.md": "Start", "dct.md": "DCT"}
    assert site.on_page_content("a :func:<code>~a.b.modes</code>", None, None, None) == "a <code>modes</code>"


@pytest.mark.regress
def test_the_readme_says_of_verilog_what_its_code_writes(tmp_path, monkeypatch):
    code, printed = re.search(r"```sh\n(actcodec verilog .*?)```\n\n```text\n(.*?)```", readme.PATH.read_text(),
                              re.DOTALL).groups()
    *_, cdu, head = (line.split("#")[0].split() for line in code.splitlines())
    assert (cdu[0], head) == ("actcodec", ["head", "-1", "cdu.v"])
    monkeypatch.chdir(tmp_path)
    succeeds(*cdu[1:])
    assert (tmp_path / "cdu.v").read_text().splitlines()[0] == printed.strip()


@pytest.mark.parametrize("path", sorted([*tables.ROOT.glob("*.md"), *tables.ROOT.glob("docs/**/*.md")]),
                         ids=lambda path: path.name)
def test_links_lead_somewhere(path):
    """Files that are there, and headings in them, as GitHub writes them."""
    for target, anchor in re.findall(r"\]\((?!https?:|\.\./\.\./actions)([^)#\s]*)(?:#([^)\s]+))?\)", path.read_text()):
        other = path.parent / target if target else path
        assert other.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", other.read_text(), re.MULTILINE)
            names = [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]
            assert anchor in names, f"{target}#{anchor}"


def test_stale_figures_are_replaced_and_nothing_else():
    text = ("| `dct` | 1 |\n<!-- figures -->\n| unit | area, um² | with memories, um² | slack, ps | paper, um² | "
            "ratio |\n|---|---|---|---|---|---|\n| `dct`, both | 1 and 7 | 1 | +9 | 20 | 0.1 |\n"
            "| both together | 0 | | | | |\n<!-- /figures -->\n| 1 |\n")
    figures = {"dct": {"area": 10.4, "flops": 3, "slack": -0.6, "macros": 9},
               "collector": {"area": 1000, "flops": 1, "slack": 2}, "splitter": {"area": 500, "flops": 1, "slack": 1}}
    assert tables.render(text, figures) == (
        text.replace("1 and 7 | 1 | +9 | 20 | 0.1", "10 and 7 | 19 | -1 | 20 | 0.52").replace(
            "| both together | 0 | | | | |", "| both together | 1,500 |  |  |  |  |"))
    with pytest.raises(ValueError, match="no figures are recorded for the row '`fadd`'"):
        tables.render(text.replace("`dct`, both", "`fadd`"), figures)
