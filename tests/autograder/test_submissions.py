"""Whatever students hand in becomes parts or a reason; nothing is followed, unpacked or run."""

import json
import os
import zipfile

import pytest

from autograder.authoring.redteam_files import CASES, cell, judge_files, notebook
from autograder.classroom.submissions import find
from autograder.parts import BY_ID, parts_of_chapter
from autograder.text.reference import piece
from tests.autograder.helpers import names, write

STUB = "%%module models/config.py head_dim\ndef head_dim_of(hf_config):\n    raise NotImplementedError()\n"


def pack(path, files):
    with zipfile.ZipFile(path, "w") as archive:
        for name, book in files.items():
            archive.writestr(name, json.dumps(book))


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


def test_two_claims_to_one_student_are_refused_with_both_paths(tmp_path):
    for folder, other in (("a", "ben"), ("b", "cem")):
        write(tmp_path / folder / "ann.ipynb", notebook(cell(1)))
        write(tmp_path / folder / f"{other}.ipynb", notebook(cell(2)))
    found = find([tmp_path / "a", tmp_path / "b"])
    assert names(found) == [(name, "01_config", name == "ann") for name in ("ann", "ben", "cem")]
    a, b = tmp_path / "a/ann.ipynb", tmp_path / "b/ann.ipynb"
    assert f"two hand-ins name this student: {a} and {b}; neither was graded. Find out whose they are" in found[0].refusal


def test_a_path_that_is_not_there_is_a_row(tmp_path):
    (found,) = find([tmp_path / "nobody.ipynb"])
    assert found.refusal == "nobody.ipynb doesn't exist"


@pytest.mark.parametrize("part_id", [part.id for part in parts_of_chapter("01_config") if not part.together])
def test_every_part_is_lifted_from_a_cell(tmp_path, part_id):
    part = BY_ID[part_id]
    source = f"%%module {part.module} {part.name}\n{part.names[0]} = 1\n"
    (found,) = find([write(tmp_path / "ann.ipynb", notebook(source))])
    assert found.work.pieces == {part_id: f"{part.names[0]} = 1\n"}


def test_a_whole_class_in_one_zip_is_refused_and_not_merged(tmp_path):
    pack(tmp_path / "class.zip", {f"work/{name}/01_config.ipynb": notebook(cell(1)) for name in ("ada", "ben")})
    (found,) = find([tmp_path / "class.zip"])
    assert "holds work for 01_config in several folders side by side (ada, ben)" in found.refusal
    assert "Grade a whole class's zip unpacked, a folder for each student" in found.refusal
    pack(tmp_path / "ann.zip", {f"{day}/01_config.ipynb": notebook(cell(day[-1])) for day in ("2026-11-01", "2026-11-02")})
    (found,) = find([tmp_path / "ann.zip"])
    assert "return 2" in found.work.pieces["config.head_dim"]


def returned(found):
    """What each student's head_dim returns, or which word of the refusal tells why there is none."""
    return {each.student: each.refusal or each.work.pieces["config.head_dim"].split()[-1] for each in found}


CANVAS = ("kinga_12345_678901_01_config.ipynb", "kinga_LATE_12345_678955_01_config-1.ipynb", "leebo_777_678911_work.ipynb")
MOODLE = (
    "Ada King_123_assignsubmission_file_/01_config.ipynb",
    "Bo Lee_124_assignsubmission_file_/Zoe Zed_99_assignsubmission_file_/01_config.ipynb",
    "Zoe Zed_125_assignsubmission_file_Bo Lee_124_assignsubmission_file_.ipynb",
)
LAYOUTS = {
    "a folder for each student, a zip of any name": (
        {"ann/hw.zip!x/01_config.ipynb": 1, "ben/Final (2).zip!01_config.ipynb": 2},
        {"ann": "1", "ben": "2"},
    ),
    "dated attempts of the platform": (
        {f"ann_2026-{time}.ipynb": value for time, value in (("11-03-11-30-00", 3), ("11-03-11-29-59", 2), ("10-30", 9))},
        {"ann": "3"},
    ),
    "dated attempts inside": (
        {"ann/2026-11-01/01_config.ipynb": 1, "ann/2026-11-03/01_config.ipynb": 3, "ann/a.ipynb": None},
        {"ann": "3"},
    ),
    "Canvas": (dict(zip(CANVAS, (1, 2, 3), strict=True)), {"kinga": "2", "leebo": "3"}),
    "Moodle": (dict(zip(MOODLE, (1, 2, 3), strict=True)), {"Ada King": "1", "Bo Lee": "2", "Zoe Zed": "3"}),
    "resubmissions": (
        {"ann.ipynb": 1, "ann-1.ipynb": 2, "ben.ipynb": 1, "ben (1).ipynb": 2, "ben (2).ipynb": None},
        {"ann": "2", "ben": "2"},
    ),
    "numbers that are names": ({"cem-1.ipynb": 1, "cem-2.ipynb": 2}, {"cem-1": "1", "cem-2": "2"}),
    "chapters in the names": ({"ann_01_config.ipynb": 1, "01_config_ben (1).ipynb": 2}, {"ann": "1", "ben": "2"}),
    "others' names inside": (
        {"eve/zoe/01_config.ipynb": 1, "eve/ben.ipynb": None, "ben/01_config.ipynb": 2},
        {"eve": "1", "ben": "2"},
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_layout_gives_each_student_the_newest_attempt_that_holds_work(tmp_path, layout):
    files, expected = LAYOUTS[layout]
    for name, value in files.items():
        book = notebook(STUB if value is None else cell(value))
        place, _, inner = name.partition("!")
        if inner:
            (tmp_path / place).parent.mkdir(exist_ok=True)
            pack(tmp_path / place, {inner: book})
        else:
            write(tmp_path / place, book)
    found = find([tmp_path])
    assert returned(found) == expected
    aside = [note for each in found for note in each.notes if note.startswith("left aside")]
    assert len(aside) == len(files) - len(expected)


def test_two_accounts_of_one_name_are_refused(tmp_path):
    for number in (123, 456):
        write(tmp_path / f"Ada King_{number}_assignsubmission_file_" / "01_config.ipynb", notebook(cell(number)))
    (found,) = find([tmp_path], "01_config")
    assert "Ada King_123_assignsubmission_file_ and" in found.refusal and "neither was graded" in found.refusal


def test_a_time_that_does_not_exist_is_refused(tmp_path):
    write(tmp_path / "ann_2026-11-03-25-00-00.ipynb", notebook(cell(1)))
    (found,) = find([tmp_path])
    assert "the time 2026-11-03-25-00-00 in the name ann_2026-11-03-25-00-00 doesn't exist; rename it" in found.refusal


def test_the_parts_say_which_chapter_it_is(tmp_path):
    mlp = "%%module models/utils.py gated_mlp\nclass GatedMLP:\n    pass\n"
    write(tmp_path / "ann" / "01_config.ipynb", notebook(mlp))
    (found,) = find([tmp_path / "ann"])
    assert (found.chapter, list(found.work.pieces)) == ("02_decoder", ["utils.gated_mlp"])
    assert found.notes == ["ann/01_config.ipynb holds work for 02_decoder and not for 01_config, and is graded as that"]
    (found,) = find([tmp_path / "ann"], "01_config")
    assert (found.refusal, found.work.pieces) == ("", {})
    assert found.notes == ["nothing in it is of 01_config; it holds 02_decoder"]


def test_one_patched_part_does_not_make_a_notebook_another_chapter_s(tmp_path):
    written = [part for part in parts_of_chapter("02_decoder") if not part.together]
    whole = [f"%%module {part.module}\n{piece(part.id)}" for part in written]
    write(tmp_path / "ann" / "01_config.ipynb", notebook(cell(1)))
    os.utime(tmp_path / "ann" / "01_config.ipynb", (1e9, 1e9))
    write(tmp_path / "ann" / "02_decoder.ipynb", notebook(*whole, cell(2)))
    found = {each.chapter: each for each in find([tmp_path / "ann"])}
    assert list(found) == ["01_config", "02_decoder"] and not found["01_config"].notes
    assert "return 1" in found["01_config"].work.pieces["config.head_dim"]


def test_a_damaged_notebook_beside_a_good_one_is_left_aside(tmp_path):
    write(tmp_path / "ann" / "02_decoder" / "02_decoder.ipynb", notebook(cell(1)))
    (tmp_path / "ann" / "03_weight.ipynb").write_text('{"cells": [')
    found = find([tmp_path])
    assert names(found) == [("ann", "01_config", False), ("ann", "03_weight", True)]
    assert "03_weight.ipynb isn't a notebook: its JSON is broken" in found[1].refusal
    assert any(note.startswith("left aside: 03_weight.ipynb isn't a notebook") for note in found[0].notes)


def test_chapters_that_hold_classes_are_not_taken_for_a_student_s(tmp_path):
    for name in ("ann", "ben"):
        write(tmp_path / "class" / "01_config" / name / "01_config.ipynb", notebook(cell(1)))
    with pytest.raises(ValueError, match=r"holds folders only .ann, ben, ….*give the chapter's folder: .*class/01_config"):
        find([tmp_path / "class"])
    assert names(find([tmp_path / "class" / "01_config"])) == [(name, "01_config", False) for name in ("ann", "ben")]
