"""Files that are built to stop the reading, to take all memory or to pass for another student's."""

import json
import os
import tracemalloc
import zipfile

import pytest

from autograder.authoring.redteam_files import cell, notebook
from autograder.classroom.submissions import find
from tests.autograder.helpers import names, write


def pack(path, content, method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("01_config.ipynb", content)
    return path


def test_a_notebook_with_much_of_the_same_output_is_read_from_a_zip(tmp_path):
    content = notebook(cell(1))
    warning = "UserWarning: this value is deprecated, use another one please.\n"
    content["cells"][0]["outputs"] = [{"output_type": "stream", "name": "stderr", "text": [warning] * 60_000}]
    path = pack(tmp_path / "ann.zip", json.dumps(content))
    assert path.stat().st_size * 200 < 3_900_000
    assert names(find([path])) == [("ann", "01_config", False)]


@pytest.mark.parametrize(
    ("size", "words"),
    [(21 << 20, "larger than 20 MiB; clear"), (17 << 20, "larger than 16 MiB and packed too tightly")],
)
def test_a_file_of_a_zip_is_never_unpacked_beyond_the_limit(tmp_path, size, words):
    path = pack(tmp_path / "eve.zip", b" " * size)
    (found,) = find([path])
    assert words in found.refusal


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
def test_a_zip_that_lies_about_sizes_takes_little_memory(tmp_path, method):
    path = pack(tmp_path / "eve.zip", b" " * (200 << 20), method)
    content = path.read_bytes().replace((200 << 20).to_bytes(4, "little"), (1000).to_bytes(4, "little"))
    path.write_bytes(content)
    tracemalloc.start()
    (found,) = find([path])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.refusal and peak < 60 << 20


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_methods_that_unpack_without_a_limit_are_refused(tmp_path, method):
    (found,) = find([pack(tmp_path / "eve.zip", b" " * 1000, method)])
    assert "unusual method; make the zip anew with the method deflate" in found.refusal


def test_a_bare_module_without_parts_says_why(tmp_path):
    for text, words in (("x = 1\n" * 200_000, "longer than 100000 characters"), ("def f(:\n", "error in line 1")):
        path = tmp_path / "ann" / "minisgl" / "models" / "config.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        for chapter in (None, "01_config"):
            (found,) = find([tmp_path / "ann"], chapter)
            assert words in found.refusal
        (found,) = find([write(tmp_path / "ann" / "01_config.ipynb", notebook(cell(1))).parent])
        assert (list(found.work.pieces), found.work.problems) == (["config.head_dim"], {})
        (tmp_path / "ann" / "01_config.ipynb").unlink()


def test_folders_without_end_are_refused_with_the_students_name(tmp_path):
    write(tmp_path / "class" / "ann" / "01_config.ipynb", notebook(cell(1)))
    write(tmp_path / "class" / "cem" / "01_config.ipynb", notebook(cell(1)))
    ends = []
    for start in ("eve", "cem/more"):
        place = tmp_path / "class" / start
        for _ in range(1500):
            place.mkdir(parents=True, exist_ok=True)
            place = place / "a"
        ends.append(place.parent)
    found = find([tmp_path / "class"])
    for end in ends:
        os.removedirs(end)  # shutil.rmtree, with which pytest removes folders, would call itself too often
    assert [each.student for each in found] == ["ann", "cem", "eve"]
    assert [each.refusal for each in found[:2]] == ["", ""]
    assert "nested deeper than 12, the most that is searched; hand in fewer levels" in found[2].refusal


@pytest.mark.parametrize("target", ["/etc/passwd", "x" * 300, "/proc/1/root/x"])
@pytest.mark.parametrize("name", [b"\xff\xfe.ipynb", b"two\nlines\t.zip", b"more\xff", b"01_config.ipynb"])
def test_names_and_reasons_are_one_line_that_can_be_stored(tmp_path, name, target):
    folder = tmp_path / "class" / "ev\udcff\ne"
    folder.mkdir(parents=True)
    os.symlink(target, os.fsencode(folder) + b"/" + name)
    for path in (tmp_path / "class", folder, folder / os.fsdecode(name)):
        for found in find([path]):
            text = found.student + found.chapter + found.refusal
            assert found.refusal and not set("\n\r\t") & set(text)
            text.encode()


def test_what_lies_in_a_students_chapter_folder_is_that_students(tmp_path):
    submitted = tmp_path / "submitted"
    write(submitted / "eve" / "01_config" / "zoe" / "01_config.ipynb", notebook(cell(1)))
    write(submitted / "zoe" / "01_config" / "01_config.ipynb", notebook(cell(2)))
    write(submitted / "ben" / "01_config" / "homework" / "01_config.ipynb", notebook(cell(3)))
    write(submitted / "cem" / "01_config" / "homework" / "zoe.ipynb", notebook(cell(4)))
    write(submitted / "cem" / "01_config" / "homework" / "other.ipynb", notebook())
    (submitted / "dia" / "01_config").mkdir(parents=True)
    pack(submitted / "dia" / "01_config" / "zoe.zip", json.dumps(notebook(cell(5))))
    (submitted / "fay" / "01_config").mkdir(parents=True)
    (submitted / "fay" / "01_config" / "zoe").symlink_to("/")
    expected = [(name, "01_config", name == "fay") for name in ("ben", "cem", "dia", "eve", "fay", "zoe")]
    found = find([submitted])
    assert names(found) == expected
    assert [each.work.pieces["config.head_dim"][-2] for each in found if not each.refusal] == list("34512")
