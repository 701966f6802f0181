"""Nothing is graded unless the judge gives the reference full marks, and the message says why it doesn't."""

import json

import pytest
from nbformat.v4 import new_code_cell, new_notebook

from autograder.authoring.redteam_files import notebook
from autograder.classroom import hidden, self_check
from autograder.classroom.grade import main
from autograder.judge.cases import Cases, HiddenCases
from autograder.judge.hidden_files import all_cases, problems

SIZES = {
    "num_layers": 2,
    "num_qo_heads": 4,
    "num_kv_heads": 2,
    "hidden_size": 96,
    "intermediate_size": 160,
    "vocab_size": 99,
}
KNOWN = {"head_dim": Cases("head_dim", [{"id": "small", "sizes": SIZES, "base": 1.5, "kinds": (1, 2)}], None, 0)}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"head_dim": [}', "more.json isn't JSON (line 1, column 15: Expecting value). Expected a table with a list"),
        ("[1]", "more.json has another form. Expected a table with a list of cases for each name"),
        ('{"head_dim": {"sizes": 1}}', "more.json has another form."),
    ],
)
def test_json_that_cannot_be_read_is_refused_with_the_place(tmp_path, text, told):
    (tmp_path / "more.json").write_text(text)
    with pytest.raises(ValueError, match="the hidden cases in") as refused:
        hidden.prepare(tmp_path)
    assert told in str(refused.value)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ({"head_dims": []}, "no check has cases of the name 'head_dims'; did you mean 'head_dim'?"),
        ({"head_dim": [{"base": 2.5, "kinds": [1]}]}, "head_dim, case 1 lacks 'sizes'"),
        ({"head_dim": [{"sizes": SIZES, "bass": 2.5, "kinds": []}]}, "case 1 lacks 'base'; did you mean 'bass'?"),
        (
            {"head_dim": [{"sizes": {**SIZES, "layers": 3}, "base": 1, "kinds": []}]},
            "'sizes' has an unknown field 'layers'",
        ),
        (
            {"head_dim": [{"sizes": {**SIZES, "vocab_size": "99"}, "base": 2.5, "kinds": []}]},
            "case 1, field 'sizes', field 'vocab_size' is \"99\". Expected a whole number, such as 99.",
        ),
        ({"head_dim": [{"sizes": SIZES, "base": True, "kinds": []}]}, "'base' is true. Expected a number with a point"),
        ({"head_dim": [{"sizes": 5, "base": 2.5, "kinds": []}]}, "field 'sizes' is 5. Expected a table such as"),
        ({"head_dim": [7]}, "head_dim, case 1 is 7. Expected a table such as"),
    ],
)
def test_a_slip_in_the_json_is_told_with_file_field_and_what_was_expected(content, told):
    found = "\n".join(problems({"seed": "1", "more.json": json.dumps(content)}, KNOWN))
    assert found.startswith("more.json: ") and told in found


def test_right_cases_of_every_check_have_no_slip():
    known = all_cases()
    assert {"head_dim", "rope", "rope_attn", "layer", "load", "package"} <= known.keys()
    right = {name: [dict(case) for case in check.visible] for name, check in known.items()}
    right["head_dim"].append({"id": "mine", "note": "any words", "sizes": SIZES})
    assert problems({"seed": "1", "more.json": json.dumps(right)}, known) == []


@pytest.fixture
def payload(judge, monkeypatch):
    """The first chapter's reference, to be judged by the tests' warm judge."""
    files = {"seed": "1", "more.json": json.dumps({"kv_bytes": [{"sizes": SIZES}]})}
    monkeypatch.setattr(self_check, "warm_judge", lambda sandboxed, files: judge)
    monkeypatch.setattr(judge, "hidden", HiddenCases(files))
    return self_check.payload("01_config", False, files)


def test_the_reference_is_at_full_marks(payload, judge):
    assert self_check.trouble(payload) == ""
    assert judge.hidden.shown is False


def test_a_changed_reference_is_told_with_what_came_also_on_hidden_cases(payload):
    payload["work"]["pieces"]["config.kv_bytes"] = "def kv_bytes_per_token(config, dtype):\n    return 7\n"
    told = self_check.trouble(payload)
    assert "config.kv_bytes: " in told and "came:     7" in told and "Nothing was graded" in told
    assert "drawn case 1." in told


def test_a_case_that_the_reference_fails_is_named_with_its_file(payload, judge, monkeypatch):
    wrong = {"seed": "1", "more.json": json.dumps({"kv_bytes": [{"sizes": {**SIZES, "num_kv_heads": 3}}]})}
    monkeypatch.setattr(judge, "hidden", HiddenCases(wrong))
    told = self_check.trouble(payload)
    assert "Hidden case: more.json, case 1." in told and "num_key_value_heads" in told


def test_that_it_is_right_is_remembered_where_no_other_user_can_write(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert not self_check.is_known("01_config", "rules")
    self_check.remember("01_config", "rules")
    assert self_check.is_known("01_config", "rules")
    assert not self_check.is_known("01_config", "other rules") and not self_check.is_known("02_decoder", "rules")
    monkeypatch.setattr("sys.prefix", "another environment")
    assert not self_check.is_known("01_config", "rules")
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "minisgl-autograder").chmod(0o777)
    assert not self_check.is_known("01_config", "rules")


@pytest.mark.sandbox
def test_a_class_is_not_graded_where_the_reference_fails(tmp_path, capsys):
    (tmp_path / "instructor").mkdir()
    (tmp_path / "instructor/seed").write_text("1")
    slip = {"kv_bytes": [{"sizes": {**SIZES, "num_kv_heads": 3}}]}
    (tmp_path / "instructor/more.json").write_text(json.dumps(slip))
    (tmp_path / "zoe.ipynb").write_text(json.dumps(notebook("%%module models/config.py head_dim\nhead_dim_of = len\n")))
    words = [str(tmp_path / "zoe.ipynb"), "--out", str(tmp_path / "out"), "--hidden", str(tmp_path / "instructor")]
    assert main(words) == 3
    told = capsys.readouterr().err
    assert "Hidden case: more.json, case 1." in told and "Nothing was graded" in told
    assert not (tmp_path / "out/report.json").exists() and not (tmp_path / "out/progress.jsonl").read_text()


def test_nbgrader_grades_nothing_where_the_reference_fails(monkeypatch):
    from autograder.classroom import nbgrader

    asked = []
    monkeypatch.setattr(nbgrader, "_trouble", lambda chapter, sandboxed: asked.append(chapter) or "no full marks")
    metadata = {"grade_id": "check-config-rope", "grade": True, "points": 3}
    book = new_notebook(cells=[new_code_cell("check()", metadata={"nbgrader": metadata})])
    with pytest.raises(nbgrader.NbGraderException, match="no full marks"):
        nbgrader.GradeParts(sandboxed=False).preprocess(book, {"nbgrader": {}})
    assert asked == ["01_config"] and not book.cells[0].outputs
