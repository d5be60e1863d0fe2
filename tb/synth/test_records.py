"""Records: what is written is read again, what no longer exists goes, and keys change with what they stand for."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from time import sleep

import pytest

from actcodec.synth import catalogue, mutants, mutate, records
from tb.soak import counts
from tb.synth.half import half


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "FOLDER", tmp_path)
    return tmp_path


def test_new_entries_join_those_of_other_subjects(folder):
    assert records.read("some") == {}
    records.renew("some", {"b": {"key": "1"}, "a": {"key": None}})
    records.renew("some", {"c": {"key": "2"}}, among=("b", "c"))
    assert (folder / "some.json").read_text() == '{\n "b": {"key": "1"},\n "c": {"key": "2"}\n}\n'
    assert records.read("some") == {"b": {"key": "1"}, "c": {"key": "2"}}


def test_renewals_at_the_same_time_lose_nothing(monkeypatch):
    def slow(record, text=records.text):
        sleep(0.05)
        return text(record)

    monkeypatch.setattr(records, "text", slow)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda name: records.renew("some", {name: {}}), "abcd"))
    assert records.read("some") == {name: {} for name in "abcd"}


def test_a_renewal_that_fails_leaves_the_record_as_it_was():
    records.renew("some", {"a": {}})
    with half("{"):
        records.renew("some", {"b": {}})
    assert records.read("some") == {"a": {}}


def test_a_soak_is_recorded_with_its_counts_and_keys():
    counter = Counter({"cycles": 9, "runs": 1, "tensors": 3, counts.SLAVE: 1, "mutated cut": 2, "code NONE": 1,
                       "code SHORT": 2})
    counts.record("SEED=1", {"2 x raw": counter, "3 x raw": counter}, {"2 x raw": "ab", "3 x raw": "cd"})
    assert records.read("soak") == {"SEED=1": {
        "key": {"2 x raw": "ab", "3 x raw": "cd"}, "cycles": 18, "tensors": 6, "shared": 2,
        "faults": {"mutated cut": 4}, "codes": {"NONE": 2, "SHORT": 4}}}


def test_the_key_of_mutants_changes_with_unit_draw_and_bench():
    skid = mutants.SUBJECTS["skid"]
    other = replace(skid, bench="tb/synth/weak.py"), replace(skid, parameters={"shape": 8})
    keys = [mutate.key(*arguments) for arguments in (
        (skid, 12, 1), (skid, 12, 1), (skid, 13, 1), (skid, 12, 2), *((one, 12, 1) for one in other))]
    assert keys[0] == keys[1] and len(set(keys)) == 5
    assert keys[0].split("-")[0] == keys[4].split("-")[0], "the bench alone differs"


def test_comments_on_survivors_stay_as_long_as_the_mutants_are_the_same():
    records.renew("mutants", {"skid": {"key": "a-1", "survived": {"3": "unknown: nobody reads it", "4": "unknown"}}})
    assert mutate.commented("skid", {"key": "a-2", "survived": {"3": "unknown", "5": "unknown"}})["survived"] == {
        "3": "unknown: nobody reads it", "5": "unknown"}
    assert mutate.commented("skid", {"key": "b-1", "survived": {"3": "unknown"}})["survived"] == {"3": "unknown"}


@pytest.mark.parametrize("before, verdict, after", [
    ("unknown", "unknown", "unknown"), ("unknown", "different after 5 cycles", "different after 5 cycles"),
    ("different after 5 cycles", "different after 15 cycles", "different after 15 cycles"),
    ("different after 5 cycles", "unknown", "unknown"),
    ("different after 5 cycles: in no mode", "different after 5 cycles", "different after 5 cycles: in no mode"),
    ("unknown: nobody reads it", "different after 5 cycles", "different after 5 cycles"),
    ("different: nobody reads it", "different after 5 cycles", "different: nobody reads it")])
def test_another_verdict_takes_the_place_of_the_old_one(before, verdict, after):
    records.renew("mutants", {"skid": {"key": "a-1", "survived": {"3": before}}})
    assert mutate.commented("skid", {"key": "a-1", "survived": {"3": verdict}})["survived"] == {"3": after}


def test_the_key_of_a_netlist_changes_with_all_that_it_is_mapped_from():
    (job,) = catalogue.jobs(["counter"])
    part = replace(job, text=job.text + "\n")
    different = (part, replace(job, name="other"), replace(job, arrival={"*": 150}), replace(job, apart=("inside",)),
                 replace(job, parts={"lane": job}), replace(job, parts={"lane": part}))
    assert len({catalogue.key(one) for one in (job, replace(job), *different)}) == 1 + len(different)
