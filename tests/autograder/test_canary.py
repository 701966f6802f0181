"""A string planted in the hidden cases is in no file that a student can receive."""

import json
import zipfile

import pytest

from autograder import paths
from autograder.authoring import release
from autograder.authoring.redteam_files import notebook
from autograder.classroom.grade import grade
from autograder.classroom.submissions import find

CANARY = "canary-b7c41f"
WIDTH = 52_341_976  # a number does for the cases that hold only numbers
SIZES = {
    "num_layers": 2,
    "num_qo_heads": 4,
    "num_kv_heads": 2,
    "hidden_size": WIDTH,
    "intermediate_size": 8,
    "vocab_size": 9,
}
ROPE = {"base": float(WIDTH), "factor": 2.0}
PLANTED = {
    "sizes": [{"id": CANARY, "sizes": SIZES}],
    "head_dim": [{"id": CANARY, "sizes": SIZES, "note": CANARY}],
    "kv_bytes": [{"id": CANARY, "sizes": SIZES}],
    "rope_parameters": [{"id": CANARY, "new": ROPE, "old": ROPE}],
}
TELLTALE = "%%module models/config.py {part}\ndef {name}(hf_config, *rest):\n    {action}\n"
NAMES = {"sizes": "sizes_of", "head_dim": "head_dim_of", "rope_parameters": "rope_parameters_of"}
ACTIONS = {
    "raises": "raise ValueError(str(vars(hf_config)))",
    "answers": "return {'told': str(vars(hf_config))}",
    "prints": "print(vars(hf_config)); return -1",
    "crashes": "import os; os.write(2, str(vars(hf_config)).encode()); os._exit(3)",
}


def holds_canary(content: bytes) -> bool:
    return CANARY.encode() in content or str(WIDTH).encode() in content


@pytest.fixture
def instructor(tmp_path, monkeypatch):
    """The instructor's folder, with canaries in every hidden case that takes them."""
    folder = tmp_path / "instructor"
    folder.mkdir()
    (folder / "seed").write_text(CANARY + "\n")
    (folder / "more.json").write_text(json.dumps(PLANTED))
    monkeypatch.setenv("MINISGL_HIDDEN", str(folder))
    return folder


def test_the_canary_is_in_no_file_of_the_kit_or_the_release_notebooks(instructor, tmp_path):
    kit = release.build(tmp_path / "kit")
    files = [path for path in (*kit.rglob("*"), *(paths.HOME / "notebooks").rglob("*")) if path.is_file()]
    assert len(files) > 50
    assert not [path for path in files if holds_canary(path.read_bytes())]
    with zipfile.ZipFile(tmp_path / "kit" / "minisgl-course.zip") as archive:
        assert not [name for name in archive.namelist() if holds_canary(archive.read(name)) or CANARY in name]


@pytest.mark.sandbox
@pytest.mark.timeout(600)
def test_the_canary_is_in_no_report_and_no_feedback_whatever_a_submission_does(instructor, tmp_path):
    (tmp_path / "class").mkdir()
    for student, action in ACTIONS.items():
        cells = [TELLTALE.format(part=part, name=name, action=action) for part, name in NAMES.items()]
        (tmp_path / "class" / f"{student}.ipynb").write_text(json.dumps(notebook(*cells)))
    rows = grade(find([tmp_path / "class"]), tmp_path / "out", jobs=1, hidden_folder=instructor, show_bar=False)
    asked = [test for row in rows for part in row["parts"] for test in part["tests"] if "hidden-" in test["id"]]
    assert len(asked) >= len(ACTIONS) * len(NAMES), "the hidden cases were asked"
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert len(files) >= len(ACTIONS) + 3
    assert not [path for path in files if holds_canary(path.read_bytes())]


def test_a_canary_would_be_found():
    assert holds_canary(f"...{CANARY}".encode()) and holds_canary(str(SIZES).encode())
    assert not holds_canary(b"honest text")
