"""Progress as a widget: figures per chapter, each beside its bar as text, and the table as the plain form."""

import pytest

from autograder import parts, status_panel
from autograder.student.progress import Row
from autograder.student.progress_panel import by_chapter
from autograder.student.workspace import Workspace
from autograder.text import reference


def test_rows_are_summed_by_chapter_in_course_order():
    rows = [Row(part, "passed" if part.id == "config.rope" else "not_written", part.points) for part in parts.PARTS]
    found = by_chapter(rows)
    assert [each.chapter for each in found] == ["01_config", "02_decoder", "03_weight", "04_into_the_model"]
    config = found[0]
    assert (config.num_done, config.num_parts) == (1, len(parts.parts_of_chapter("01_config")))
    assert config.max_points == sum(part.points for part in parts.parts_of_chapter("01_config"))
    assert config.minutes_left == sum(p.minutes for p in parts.parts_of_chapter("01_config") if p.id != "config.rope")


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    monkeypatch.setenv("MINISGL_WORKSPACE", str(tmp_path / "workspace"))
    made = Workspace()
    made.ensure()
    return made


def test_every_bar_has_its_figures_as_text_and_looking_again_sees_what_was_written(workspace):
    panel = status_panel()
    lines, again = panel.children
    assert len(lines.children) == 5  # four chapters and the next step
    for line in lines.children[:-1]:
        name, bar, words = line.children
        assert bar.value == 0 and f"of {bar.max:g} points" in words.value and name.value
    assert "write config.architecture" in lines.children[-1].value
    workspace.write_cell("models/config.py", reference.piece("config.architecture"))
    again.click()
    assert 'check("config.architecture")' in lines.children[-1].value.replace("&quot;", '"')
    assert "config.architecture" in panel._repr_mimebundle_()["text/plain"]
