"""The byte map: what a recorder sees of a loader, counted by hand, and the page that plays it without a kernel."""

import json

import pytest
import safetensors
import torch
from safetensors import safe_open

from minisgl import viz
from minisgl.checkpoint import open_checkpoint, standard_tensors
from minisgl.checkpoint.maker import make_checkpoint
from minisgl.models import load_weight
from minisgl.viz.layout import param_of, parameters_of
from minisgl.viz.load_map import LoadMap
from tests.viz.test_stepper import GATE, KV, TINY, Q

QKV = "model.layers.0.self_attn.qkv_proj.weight"


def read(folder):
    """Read a folder's tensors in the order of its files, each copied into own memory."""
    for file in sorted(folder.glob("*.safetensors")):
        with safe_open(file, "pt") as opened:
            for key in opened.keys():  # noqa: SIM118
                yield key, opened.get_tensor(key).clone()


def streamed(folder):
    """Keep the parts of a parameter until all are there, as a loader with a merge buffer does."""
    waiting = {}
    parts_of = parameters_of(standard_tensors(open_checkpoint(folder)))
    for key, tensor in read(folder):
        name = param_of(key)[0]
        group = waiting.setdefault(name, {})
        group[key] = tensor
        del tensor
        if len(group) == len(parts_of[name]):
            group = waiting.pop(name)
            yield name, torch.cat([group[part] for part in parts_of[name]]) if len(group) > 1 else group.pop(key)


def planned(folder):
    return load_weight(folder, "cpu", progress=False)


def holds_all(folder):
    return dict(read(folder))


def stops(folder):
    for number, pair in enumerate(read(folder)):
        if number == 3:
            raise RuntimeError("no more")
        yield pair


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_checkpoint(tmp_path_factory.mktemp("map") / "torn", TINY, files=2, layout="torn")


@pytest.fixture(scope="module")
def map_of(folder):
    return LoadMap(folder, {"all": holds_all, "buffer": streamed, "plan": planned, "stops": stops})


def run_of(lab, title):
    return next(run for run in lab.trace["runs"] if run["title"] == title)


def own_bytes(run):
    """Own memory after each step."""
    held, sizes = {}, []
    for step in run["steps"]:
        held |= {number: 0 if mapped else num_bytes for number, _, num_bytes, mapped in step.get("add", ())}
        for number in step.get("drop", ()):
            del held[number]
        sizes.append(sum(held.values()))
    return sizes


def test_a_merge_is_a_step_at_which_the_parts_and_their_copy_are_held(map_of):
    run = run_of(map_of, "buffer")
    place = next(index for index, step in enumerate(run["steps"]) if step["kind"] == "merge" and step["name"] == QKV)
    (added,) = run["steps"][place]["add"]
    assert added[1:] == [QKV, Q + 2 * KV, 0]
    assert "the parts and their copy are held at once" in run["steps"][place]["say"]
    assert own_bytes(run)[place] - own_bytes(run)[place - 1] == Q + 2 * KV
    assert own_bytes(run)[place] >= 2 * (Q + 2 * KV)


def test_a_plan_reads_each_part_into_its_rows_and_holds_one_parameter(map_of):
    run = run_of(map_of, "plan")
    kinds = [step["kind"] for step in run["steps"]]
    assert "merge" not in kinds and kinds.count("place") == len(map_of.trace["param_of"])
    largest = 2 * GATE
    assert largest <= run["peak"] == max(own_bytes(run)) <= largest + 32, "beside it at most the norm handed out last"


def test_every_part_is_read_once_every_parameter_handed_out_and_nothing_is_left(map_of):
    for title in ("buffer", "plan"):
        run = run_of(map_of, title)
        read_keys = [step["key"] for step in run["steps"] if step["kind"] in ("read", "place")]
        assert sorted(read_keys) == sorted(map_of.trace["param_of"])
        assert {step["name"] for step in run["steps"] if step["kind"] == "yield"} == set(map_of.trace["params"])
        assert own_bytes(run)[-1] <= 32, "at most the last norm"


def test_a_loader_that_holds_everything_is_seen_to(map_of):
    run = run_of(map_of, "all")
    assert run["peak"] == map_of.trace["model_bytes"] == sum(map_of.trace["bytes_of"].values())
    assert "all: at most" in map_of.describe() and "1.00 times the model; 0 groups" in map_of.describe()


def test_a_loader_that_stops_is_shown_up_to_there_and_nothing_stays_exchanged(map_of):
    run = run_of(map_of, "stops")
    assert run["error"] == "RuntimeError: no more"
    assert "It stopped: RuntimeError: no more" in map_of.describe()
    assert safetensors.safe_open is safe_open and read.__globals__["safe_open"] is safe_open


def test_running_again_sends_the_steps_to_the_page_as_they_come(folder):
    lab, sent = LoadMap(folder, streamed), []
    lab.widget().send = sent.append
    lab.run_again(0)
    assert sent[0] == {"start": 0} and sent[-1] == {"done": True, "error": ""}
    assert [step["say"] for message in sent for step in message.get("steps", ())] == [
        step["say"] for step in lab.trace["runs"][0]["steps"]
    ]
    assert len(sent) > 5
    lab.close()


def test_the_stored_form_has_a_page_that_plays_and_the_words(map_of):
    bundle = map_of._repr_mimebundle_()
    assert bundle["text/plain"] == map_of.describe()
    assert "https://" not in bundle["text/html"].replace("http://www.w3.org", "")
    json.dumps(map_of.trace)
    map_of.close()


def test_a_map_of_a_model_that_keeps_its_parameters_ends_with_all_of_them(folder):
    lab = viz.LoadMap(folder, planned, keep=True)
    assert lab.trace["runs"][0]["peak"] == lab.trace["model_bytes"]


@pytest.mark.browser
@pytest.mark.parametrize(("width", "scheme"), [(800, "light"), (1280, "dark"), (375, "light")])
def test_the_page_plays_steps_and_names_the_merge_without_a_kernel(map_of, chromium, tmp_path, width, scheme):
    (tmp_path / "map.html").write_text(f"<!doctype html><meta charset=utf-8>{map_of.page()}", encoding="utf-8")
    page = chromium.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    failed = []
    page.on("pageerror", lambda error: failed.append(str(error)))
    page.on("requestfailed", lambda request: failed.append(request.url))
    page.goto((tmp_path / "map.html").as_uri())
    page.get_by_label("buffer").press("Space")
    step = page.get_by_role("button", name="Merge")
    step.focus()
    page.keyboard.press("Enter")
    assert "held at once" in page.get_by_role("status").inner_text()
    assert "own memory" in page.locator("svg[role=img]").get_attribute("aria-label")
    page.get_by_role("button", name="Play").click()
    page.wait_for_function("+document.querySelector('.byte-map input[type=range]').value > 8")
    page.get_by_role("button", name="Pause").click()
    assert page.evaluate(OVERLAPPING) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth") and not failed


# Texts of the picture that overlap, are smaller than 12 px, or leave the page.
OVERLAPPING = """() => {
  const found = [...document.querySelectorAll(".byte-map svg[role=img] text")];
  const texts = found.map((text) => [text, text.getBoundingClientRect()]);
  const isBad = (text, box) => parseFloat(getComputedStyle(text).fontSize) < 12 || box.right > innerWidth || box.left < 0;
  const faults = texts.filter(([text, box]) => isBad(text, box)).map(([text]) => text.textContent);
  texts.forEach(([one, a], index) => texts.slice(index + 1).forEach(([other, b]) => {
    const isOver = a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 2 && b.top < a.bottom - 2;
    if (isOver) faults.push(`${one.textContent} | ${other.textContent}`);
  }));
  return faults;
}"""
