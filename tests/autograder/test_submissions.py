"""Whatever students hand in becomes parts or a reason; nothing is followed, unpacked or run."""

import json
import zipfile

import pytest

from autograder.authoring.redteam_files import CASES, cell, judge_files, notebook
from autograder.classroom.submissions import find, read
from autograder.parts import BY_ID, parts_of_chapter
from tests.autograder.helpers import names, write


def test_hostile_and_odd_files_are_read_or_refused_with_a_reason(tmp_path):
    verdicts = list(judge_files(tmp_path))
    assert len(verdicts) == len(CASES)
    assert [verdict.name for verdict in verdicts if verdict.problems] == []


def test_students_are_found_in_every_layout(tmp_path):
    write(tmp_path / "submitted" / "ann" / "01_config" / "01_config.ipynb", notebook(cell(1)))
    write(tmp_path / "flat" / "ben.ipynb", notebook(cell(1)))
    write(tmp_path / "flat" / "cem.ipynb", notebook(cell(1)))
    write(tmp_path / "flat" / "dia" / "01_config.ipynb", notebook(cell(1)))
    with zipfile.ZipFile(tmp_path / "flat" / "eve.zip", "w") as archive:
        archive.writestr("work/01_config.ipynb", json.dumps(notebook(cell(1))))
    tree = tmp_path / "flat" / "fay" / "minisgl" / "models" / "config.py"
    tree.parent.mkdir(parents=True)
    tree.write_text("def head_dim_of(h):\n    return 1\n")
    found = find([tmp_path / "submitted", tmp_path / "flat"])
    assert names(found) == [(name, "01_config", False) for name in ("ann", "ben", "cem", "dia", "eve", "fay")]
    assert all(list(each.work.pieces) == ["config.head_dim"] for each in found)
    assert names(find([tmp_path / "submitted" / "ann" / "01_config" / "01_config.ipynb"])) == [
        ("ann", "01_config", False)
    ]


def test_a_submission_with_two_chapters_is_two_rows(tmp_path):
    second = "%%module models/utils.py gated_mlp\nclass GatedMLP:\n    pass\n"
    write(tmp_path / "ann" / "01_config.ipynb", notebook(cell(1)))
    write(tmp_path / "ann" / "02_decoder.ipynb", notebook(second))
    assert names(find([tmp_path / "ann"])) == [("ann", "01_config", False), ("ann", "02_decoder", False)]
    assert names(find([tmp_path / "ann"], "02_decoder")) == [("ann", "02_decoder", False)]


def test_the_untouched_release_is_a_submission_of_its_chapter(tmp_path):
    graded = {
        "cell_type": "code",
        "source": "check('config.moe')",
        "metadata": {"nbgrader": {"grade_id": "check-config-moe"}},
    }
    write(tmp_path / "ann.ipynb", {"cells": [graded], "metadata": {}, "nbformat": 4})
    (found,) = find([tmp_path / "ann.ipynb"])
    assert (found.chapter, found.refusal, found.work.pieces) == ("01_config", "", {})


def test_the_same_student_twice_is_refused_once(tmp_path):
    for folder, other in (("a", "ben"), ("b", "cem")):
        write(tmp_path / folder / "ann.ipynb", notebook(cell(1)))
        write(tmp_path / folder / f"{other}.ipynb", notebook(cell(2)))
    found = find([tmp_path / "a", tmp_path / "b"])
    expected = [("ann", False), ("ann", True), ("ben", False), ("cem", False)]
    assert names(found) == [(name, "01_config", refused) for name, refused in expected]
    assert "handed in twice" in found[1].refusal


def test_a_path_that_is_not_there_is_a_row(tmp_path):
    (found,) = find([tmp_path / "nobody.ipynb"])
    assert found.refusal == "nobody.ipynb doesn't exist"


@pytest.mark.parametrize("part_id", [part.id for part in parts_of_chapter("01_config") if not part.together])
def test_every_part_is_lifted_from_a_cell(tmp_path, part_id):
    part = BY_ID[part_id]
    source = f"%%module {part.module} {part.name}\n{part.names[0]} = 1\n"
    (found,) = read(write(tmp_path / "ann.ipynb", notebook(source)), "ann")
    assert found.work.pieces == {part_id: f"{part.names[0]} = 1\n"}


def test_a_whole_class_in_one_zip_is_refused_and_not_merged(tmp_path):
    homes = [
        write(tmp_path / "class" / "work" / name / "01_config.ipynb", notebook(cell(1))) for name in ("ada", "ben")
    ]
    with zipfile.ZipFile(tmp_path / "class.zip", "w") as archive:
        for home in homes:
            archive.write(home, home.relative_to(tmp_path / "class"))
    (found,) = find([tmp_path / "class.zip"])
    assert (
        "two notebooks called 01_config.ipynb: work/ada/01_config.ipynb and work/ben/01_config.ipynb" in found.refusal
    )
    assert "unpacked, a folder for each student" in found.refusal
    assert names(find([tmp_path / "class"])) == [("ada", "01_config", False), ("ben", "01_config", False)]
