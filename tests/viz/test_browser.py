"""The labs in JupyterLab, used by mouse and keyboard: what the page shows is what the model says."""

import re
import time
from pathlib import Path

import psutil
import pytest

from tests.viz.conftest import CELLS

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

LABS = [name for name in CELLS if name not in ("setup", "ask")]


def status(cell):
    """The line of result, as a screen reader would read it out."""
    return cell.locator("[role=status]").text_content()


def wait_for_status(cell, pattern, timeout_s=10):
    """Wait until the line of result matches, and give the match."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        found = re.search(pattern, status(cell))
        if found:
            return found
        cell.page.wait_for_timeout(50)
    pytest.fail(f"{pattern!r} didn't come; the lab says: {status(cell)}")


def press(control, *keys):
    """Focus a control and press keys, as somebody without a mouse does."""
    control.focus()
    for key in keys:
        control.page.keyboard.press(key)


@pytest.mark.parametrize("name", LABS)
def test_every_lab_shows_a_picture_with_a_sentence_and_the_same_in_words(notebook, name):
    cell = notebook.cell(name)
    picture = cell.locator("svg[role=img]")
    assert len(picture.get_attribute("aria-label")) > 40
    press(cell.get_by_role("button", name="In words"), "Space")
    words = cell.locator("pre")
    words.wait_for(state="visible")
    assert words.inner_text().strip() == notebook.ask(f"{name}.describe()")
    press(cell.get_by_role("button", name="In words"), "Space")
    words.wait_for(state="hidden")


def test_config_explorer_by_mouse_and_by_pasting(notebook):
    cell = notebook.cell("configs")
    assert "114,688 bytes of KV cache per token" in status(cell)
    cell.get_by_label("Known config").select_option("Qwen2.5-7B with YaRN")
    wait_for_status(cell, "57,344 bytes of KV cache per token")
    assert cell.locator("svg[role=img]", has_text="type is the old name of rope_type").count() == 1
    cell.get_by_label("config.json").fill('{"model_type": "mixtral"}')
    wait_for_status(cell, "Not possible|architecture|expected", 10)
    assert "refused" in cell.locator("svg[role=img]").inner_html()
    assert cell.get_by_label("Known config").input_value() == "pasted"
    press(cell.get_by_title("next known config"), "Enter")
    wait_for_status(cell, "bytes of KV cache per token")


def test_switches_by_keyboard_and_mouse(notebook):
    cell = notebook.cell("switches")
    press(cell.get_by_role("checkbox", name="QK-norm"), "Space")
    wait_for_status(cell, r"Qwen3ForCausalLM: 19 keys")
    press(cell.get_by_role("checkbox", name="experts"), "Space")
    found = wait_for_status(cell, r"Qwen3MoeForCausalLM: (\d+) keys, ([\d,]+) parameters")
    assert found[2] == notebook.ask("f'{switches.model.num_params():,}'")
    cell.get_by_role("button", name="Qwen2", exact=True).click()
    wait_for_status(cell, "Qwen2ForCausalLM: 17 keys")
    assert cell.get_by_role("checkbox", name="q, k, v biases").is_checked()
    cell.get_by_label("Compare with").select_option("Qwen3ForCausalLM")
    wait_for_status(cell, "against Qwen3ForCausalLM; 2 added, 4 removed")
    cell.get_by_role("button", name="Compare with your model classes").click()
    cell.get_by_text("your Qwen2ForCausalLM has exactly these 17 keys and shapes").wait_for(timeout=60_000)


def test_merge_stepper_by_keyboard_mouse_and_play(notebook):
    cell = notebook.cell("stepper")
    step = cell.get_by_role("button", name="Step", exact=False).filter(has_text="Step")
    press(step, "Enter", "Space", "Space")
    wait_for_status(cell, "step 3 of 24")
    cell.get_by_role("button", name="Back").click()
    wait_for_status(cell, "step 2 of 24")
    slider = cell.get_by_role("slider").nth(1)
    press(slider, *["ArrowRight"] * 6)
    found = wait_for_status(cell, r"step 8 of 24. file order: holds ([\d.]+ \w+)")
    assert found[1] == notebook.ask(
        "__import__('minisgl.viz.drawing').viz.drawing.mib(stepper.model.held_bytes('file order'))"
    )
    shown = cell.locator("svg[role=img]").text_content()
    assert notebook.ask("stepper.model.steps['file order'][7].key") in shown
    play = cell.locator(".widget-play button")
    play.first.click()
    wait_for_status(cell, r"step (1[0-9]|2[0-4]) of 24")
    play.nth(0).click()
    cell.get_by_role("button", name="as saved").click()
    wait_for_status(cell, "step 0 of 24")
    assert "the same parameters come out" in status(cell)


def test_shard_explorer_by_keyboard_and_mouse(notebook):
    cell = notebook.cell("shards")
    press(cell.get_by_role("slider").first, "ArrowRight")
    wait_for_status(cell, "rank 1 of 4: q heads 4–7")
    press(cell.get_by_role("button", name="16", exact=True), "Space")
    wait_for_status(cell, "rank 1 of 16: q heads 1, k and v heads 0, each on 2 ranks")
    cell.get_by_role("button", name="Next rank").click()
    found = wait_for_status(cell, "rank 2 of 16: q heads 2, k and v heads 1")
    assert found and notebook.ask("list(shards.model.heads('k'))") == "[1]"
    cell.get_by_label("Model").select_option("Llama with 32,003 tokens")
    wait_for_status(cell, "of 8")
    press(cell.get_by_role("button", name="Previous rank"), "Enter", "Enter", "Enter")
    wait_for_status(cell, "rank 7 of 8.*5 rows of zeros")


def test_break_it_by_mouse_and_keyboard(notebook):
    cell = notebook.cell("broken")
    cell.get_by_label("Mistake").select_option("QK-norm left out")
    press(cell.get_by_role("button", name="Run"), "Enter")
    found = wait_for_status(cell, r"logits differ by up to ([\d.]+)", 60)
    assert float(found[1]) == pytest.approx(float(notebook.ask("broken.model.largest_difference")), abs=0.005)
    assert notebook.ask("broken.model.healthy.top[0][0]") in cell.locator("svg[role=img]").text_content()


def only_our_loader(cell):
    """Leave the other lanes out: they are only slower."""
    for label in ("build, read, merge, copy", "everything, then merge", "everything at once"):
        cell.get_by_role("checkbox", name=label).uncheck()


def test_memory_race_starts_shows_and_stops(notebook):
    cell = notebook.cell("race")
    assert "waiting, predicted 184 MiB" in status(cell)
    only_our_loader(cell)
    press(cell.get_by_role("button", name="Start"), "Enter")
    wait_for_status(cell, "our loader: finished, peak", 170)
    measured = notebook.ask("race.model.lanes['ours'].measured_bytes")
    assert 0.95 < int(measured) / int(notebook.ask("race.model.lanes['ours'].prediction.anonymous_bytes")) < 1.05
    assert f"{int(measured) / 2**20:.1f} MiB" in cell.locator("svg[role=img]").text_content()
    cell.get_by_label("Earlier races").locator("option", has_text="1: Qwen3 with 4 layers").wait_for(state="attached")
    press(cell.get_by_role("slider").last, *["ArrowLeft"] * 5)
    wait_for_status(cell, "finished")
    assert float(notebook.ask("race.model.replay_s")) < float(notebook.ask("race.model.duration_s"))
    cell.get_by_role("button", name="Start").click()
    wait_for_status(cell, "our loader: (starting|running)")
    pid = int(notebook.ask("race.model.lanes['ours'].pid or 0") or 0)
    press(cell.get_by_role("button", name="Stop"), "Enter")
    wait_for_status(cell, "our loader: stopped")
    assert not pid or not psutil.pid_exists(pid)


@pytest.mark.parametrize("theme", ["JupyterLab Dark", "JupyterLab Light"])
def test_text_stands_out_from_the_page_in_both_themes(notebook, theme):
    notebook.command("apputils:change-theme", theme=theme)
    notebook.page.wait_for_function("name => document.body.dataset.jpThemeName === name", arg=theme)
    notebook.page.wait_for_timeout(500)
    for name in LABS:
        ink, paper = (
            notebook.cell(name)
            .locator("svg[role=img] text")
            .first.evaluate(
                "text => [text, document.querySelector('.jp-Notebook')].map(part => getComputedStyle(part))"
                ".map((style, index) => index ? style.backgroundColor : style.fill)"
            )
        )
        assert abs(_brightness(ink) - _brightness(paper)) > 140, (name, ink, paper)


def _brightness(color):
    red, green, blue = map(float, re.findall(r"[\d.]+", color)[:3])
    return 0.299 * red + 0.587 * green + 0.114 * blue


def test_running_a_cell_again_ends_what_it_started_and_so_does_a_restart(notebook):
    cell = notebook.cell("race")
    only_our_loader(cell)
    cell.get_by_role("button", name="Start").click()
    wait_for_status(cell, "our loader: starting")
    folder, pid = notebook.ask("race.model._scratch.name"), int(notebook.ask("race.model.lanes['ours'].pid or 0"))
    notebook.run("race")
    assert notebook.ask("race.model.is_running, len(race.model.history)") == "False 0"
    assert not Path(folder).exists()
    assert not pid or not psutil.pid_exists(pid)
    assert cell.locator(".minisgl-lab").count() == 1
    cell.get_by_role("button", name="Start").click()
    wait_for_status(cell, "(starting|running)")
    kernel = psutil.Process(int(notebook.ask("__import__('os').getpid()")))
    children = [child for child in kernel.children(recursive=True) if "racer.py" in " ".join(child.cmdline())]
    assert children
    notebook.restart()
    _, alive = psutil.wait_procs(children, timeout=20)
    assert not alive


def test_nothing_went_wrong_in_the_console(notebook):
    assert notebook.errors == []
