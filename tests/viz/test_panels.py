"""The package's lazy imports, the pictures' two forms, and panels as objects, without a browser."""

import subprocess
import sys
import time

import pytest

from minisgl import viz
from minisgl.errors import MinisglError
from minisgl.viz.drawing import STYLE_OF, Picture, ink_on, lines_of, mib
from minisgl.viz.race import THIS_TREE

PANELS = ("ConfigExplorer", "Switches", "MergeStepper", "ShardExplorer", "MemoryRace")


def test_importing_viz_and_its_models_brings_no_widget_library():
    program = (
        "import sys\nfrom minisgl import viz\n"
        "viz.RaceModel, viz.StepperModel, viz.ShardModel, viz.SwitchesModel, viz.ConfigModel\n"
        "print([name for name in ('ipywidgets', 'matplotlib', 'IPython', 'transformers') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=THIS_TREE, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("library", "make"), [("ipywidgets", viz.Switches), ("matplotlib.figure", viz.SwitchesModel().static)]
)
def test_a_missing_library_is_named_with_what_to_do(monkeypatch, library, make):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(viz.MissingWidgets, match=rf"{library.split('.')[0]} isn't installed.*pip install"):
        make()


def test_an_unknown_lab_is_an_attribute_error_with_the_known_ones():
    with pytest.raises(AttributeError, match="no attribute 'Rce'; it has BreakIt"):
        viz.Rce  # noqa: B018


@pytest.mark.parametrize("name", PANELS)
def test_a_panel_shows_live_picture_and_words(name):
    panel = getattr(viz, name)()
    bundle = panel._repr_mimebundle_()
    assert bundle["application/vnd.jupyter.widget-view+json"]["model_id"] == panel.box.model_id
    assert bundle["image/png"].startswith(b"\x89PNG")
    assert bundle["text/plain"] == panel.describe() == panel.model.describe()
    assert panel.model.picture().title[:30] in panel._picture.value
    panel.close()


def test_making_a_panel_again_closes_the_one_before():
    first = viz.MemoryRace()
    first.model.start(strategies=["everything"])
    scratch = first.model._scratch.name
    second = viz.MemoryRace()
    assert not first.model.is_running
    assert first.box.comm is None
    assert not __import__("pathlib").Path(scratch).exists()
    second.close()


def test_a_value_that_is_not_possible_is_said_and_not_raised():
    panel = viz.MemoryRace(checkpoint="/no/such/folder")
    assert "Not possible" in panel._status.value
    assert "/no/such/folder" in panel._status.value
    panel.close()


def test_a_control_acts_on_the_model_and_the_words_follow():
    panel = viz.Switches()
    panel._words_button.value = True
    panel._boxes["has_qk_norm"].value = True
    assert panel.model.architecture == "Qwen3ForCausalLM"
    assert "QK-norm = Qwen3ForCausalLM" in panel._status.value and "q_norm" in panel._words.value
    assert "white-space:pre-wrap;word-break:normal;overflow-wrap:anywhere" in panel._words.value
    panel.close()


def test_every_style_reads_in_black_or_white_and_differs_without_colour():
    assert len(set(STYLE_OF.values())) == len(STYLE_OF)
    assert ink_on("#0072B2") == "#ffffff" and ink_on("#F0E442") == "#000000"


def test_a_picture_escapes_text_and_carries_its_sentence():
    picture = Picture(100, 50, 'a "b" <c>')
    picture.text(0, 10, "<script>")
    picture.box(0, 20, 40, 20, "k", "k", tip="<i>")
    svg = picture.to_svg()
    assert "<script>" not in svg and "&lt;script&gt;" in svg
    assert 'aria-label="a &quot;b&quot; &lt;c&gt;"' in svg
    figure = picture.to_figure()
    assert figure._repr_mimebundle_()["text/plain"] == picture.title
    assert [text.get_text() for text in figure.axes[0].texts] == ["<script>", "k"]


@pytest.mark.parametrize(
    ("num_bytes", "text"), [(0, "0 B"), (2048, "2.00 KiB"), (3 * 2**20, "3.00 MiB"), (150 * 2**30, "150 GiB")]
)
def test_bytes_are_written_for_people(num_bytes, text):
    assert mib(num_bytes) == text


def test_long_texts_are_broken_at_spaces_and_long_words_cut():
    assert lines_of("aaa bbb ccc", 62, 12.5) == ["aaa bbb", "ccc"]
    assert "".join(lines_of("x" * 50, 62, 12.5)) == "x" * 50


def test_a_panel_answers_at_once():
    panel = viz.MergeStepper("Qwen3-0.6B")
    start = time.perf_counter()
    panel._slider.value = 100
    assert time.perf_counter() - start < 0.5
    assert panel.model.position == 100
    with pytest.raises(MinisglError):
        viz.MergeStepper(order="any")
    panel.close()
