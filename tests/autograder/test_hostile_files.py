"""Files that are built to stop the reading, to take all memory or to pass for another student's."""

import json
import tracemalloc
import zipfile

import pytest

from autograder.redteam_files import cell, notebook
from autograder.submissions import find, read


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return path


def names(found):
    return [(each.student, each.chapter, bool(each.refusal)) for each in found]


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


def test_a_zip_that_lies_about_sizes_takes_little_memory(tmp_path):
    path = pack(tmp_path / "eve.zip", b" " * (200 << 20))
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
    for text, words in (("x = 1\n" * 200_000, "longer than 1000000 characters"), ("def f(:\n", "error in line 1")):
        path = tmp_path / "ann" / "minisgl" / "models" / "config.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        (found,) = find([tmp_path / "ann"])
        assert words in found.refusal
        (found,) = find([tmp_path / "ann"], "01_config")
        assert words in found.work.problems["config.head_dim"]
        (found,) = read(write(tmp_path / "ann" / "01_config.ipynb", notebook(cell(1))).parent, "ann")
        assert (list(found.work.pieces), found.work.problems) == (["config.head_dim"], {})
        (tmp_path / "ann" / "01_config.ipynb").unlink()
