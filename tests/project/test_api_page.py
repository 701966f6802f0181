"""docs/api.md is what the docstrings say."""

from pathlib import Path

import griffe
import pytest

from minisgl import checkpoint, layers, models
from scripts import api


def test_the_page_is_up_to_date():
    assert api.main(["--check"]) == 0, "run `make api` and commit docs/api.md"


def test_a_changed_docstring_makes_the_page_stale(monkeypatch, tmp_path: Path, capsys):
    monkeypatch.setattr(api, "PAGE", tmp_path / "api.md")
    assert api.main([]) == 0
    api.PAGE.write_text(api.PAGE.read_text().replace("Name the", "Guess the").replace("Run a model", "Walk a model"))
    assert api.main(["--check"]) == 1
    assert "run `make api`" in capsys.readouterr().err


def test_every_exported_name_is_on_the_page():
    page = api.PAGE.read_text()
    names = [name for module in (models, checkpoint, layers) for name in module.__all__]
    assert not [name for name in names if f"### `{name}`" not in page]


def markdown_of(docstring: str) -> list[str]:
    module = griffe.visit("made", filepath=Path("made.py"), code=f'def made():\n    """Make.\n\n{docstring}    """\n')
    return list(api.text_of(module["made"]))


@pytest.mark.parametrize("section", ["Returns", "Yields"])
def test_a_wrapped_result_is_one_item(section):
    wrapped = f"    {section}:\n        A tensor (on the CPU\n        a view): nothing is copied,\n        and nothing read.\n"
    assert markdown_of(wrapped)[1:] == [
        f"*{section}*",
        "- A tensor (on the CPU a view): nothing is copied, and nothing read.",
    ]


def test_a_result_that_has_a_name_keeps_it():
    made = markdown_of("    Returns:\n        logits: as the model gives\n        them.\n")
    assert made[2] == "- `logits`: as the model gives them."


def test_the_tree_of_errors_is_a_list():
    page = api.PAGE.read_text()
    assert "\n- `MinisglError`: " in page and "\n  - `ConfigError`: " in page
