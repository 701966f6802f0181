"""docs/api.md is what the docstrings say."""

from pathlib import Path

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
