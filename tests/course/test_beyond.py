"""Chapter 05 quotes figures that were measured on a GPU: they are those of benchmarks/RESULTS.md."""

import re

from autograder.authoring.notebooks import ROOT

QUOTED = re.compile(r"^\| (?P<way>[^|]+) \| (?P<speed>\d+\.\d) \|$", re.MULTILINE)
NAME_THERE = {
    "your loader with the provided reader": "ours (merged)",
    "transformers (merges nothing)": "transformers (merges nothing)",
    "safetensors, then merge": "safetensors, then merge",
    "tensor by tensor, concatenating (upstream's way)": "stream and concatenate (upstream's way)",
}


def test_the_speeds_of_ways_to_load_are_those_that_were_measured():
    chapter = (ROOT / "solutions" / "05_beyond.md").read_text(encoding="utf-8")
    results = (ROOT / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8")
    quoted = {found["way"].strip(): found["speed"] for found in QUOTED.finditer(chapter)}
    assert set(NAME_THERE) < set(quoted)
    for way, name in NAME_THERE.items():
        row = next(line for line in results.splitlines() if line.startswith(f"| {name} |"))
        assert row.split("|")[3].strip() == quoted[way], way
    assert f"{quoted['the bus itself, from pinned memory']} GB/s" in results
