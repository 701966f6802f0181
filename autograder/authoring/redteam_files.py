"""Submissions that attack the reading of submissions: links, special files, hostile zips, broken and odd notebooks."""

from __future__ import annotations

import io
import json
import os
import pickle
import socket
import stat
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autograder.classroom.submissions import Submission, find

CELL = "%%module models/config.py head_dim\ndef head_dim_of(hf_config):\n    return {value}\n"
KIND = "hands in trouble"


@dataclass
class Verdict:
    """What came of an attack; no problems means that the defence held."""

    kind: str
    name: str
    status: str
    points: float
    message: str
    expected: str = ""
    named: str = ""
    problems: list[str] = field(default_factory=list)


def notebook(*sources: str, **metadata: Any) -> dict[str, Any]:
    """Return a notebook of code cells."""
    empty: dict[str, Any] = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    cells = [{**empty, "source": source} for source in sources]
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": cells}


def cell(value: object) -> str:
    """Return a head_dim cell that returns a value."""
    return CELL.format(value=value)


def text_of(found: list[Submission]) -> str:
    """Return the head_dim part that was read, why it is broken, or the refusal."""
    if not found:
        return "nothing found"
    work = found[0].work
    return found[0].refusal or work.pieces.get("config.head_dim") or work.broken.get("config.head_dim", "")


def _write(path: Path, content: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def _zip(path: Path, *entries: tuple[str | zipfile.ZipInfo, bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries:
            archive.writestr(name, content)
    return path


def _zip_link(place: Path) -> Path:
    entry = zipfile.ZipInfo("config.py")
    entry.external_attr = 0o120777 << 16
    return _zip(place / "eve.zip", (entry, b"/etc/passwd"))


def _linked(place: Path) -> Path:
    place.mkdir(parents=True)
    (place / "eve.ipynb").symlink_to("/etc/passwd")
    return place / "eve.ipynb"


def _link_inside(place: Path) -> Path:
    _write(place / "eve" / "eve.ipynb", notebook(cell(1)))
    (place / "eve" / "config.py").symlink_to("/etc/passwd")
    (place / "eve" / "more").symlink_to("/")
    return place / "eve"


def _fifo(place: Path) -> Path:
    place.mkdir(parents=True)
    os.mkfifo(place / "eve.ipynb")
    return place / "eve.ipynb"


def _link_alone(place: Path) -> Path:
    (place / "eve").mkdir(parents=True)
    (place / "eve" / "01_config.ipynb").symlink_to("/etc/passwd")
    return place / "eve"


def _device(place: Path) -> Path:
    place.mkdir(parents=True)
    try:
        os.mknod(place / "eve.ipynb", 0o600 | stat.S_IFCHR, os.makedev(1, 5))
    except OSError:  # only root may make one; a socket is as good
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(os.path.relpath(place / "eve.ipynb"))
    return place / "eve.ipynb"


def _damaged(place: Path) -> Path:
    path = _zip(place / "eve.zip", ("01_config.ipynb", json.dumps(notebook(*map(cell, range(200)))).encode()))
    content = bytearray(path.read_bytes())
    content[60:120] = b"\xff" * 60
    path.write_bytes(content)
    return path


def _crlf(text: str) -> str:
    return text.replace("\n", "\r\n")


def _pickled(place: Path) -> Path:
    _write(place / "eve" / "eve.ipynb", notebook(cell(1)))
    (place / "eve" / "weights.pkl").write_bytes(pickle.dumps(print))
    (place / "eve" / "conftest.py").write_text("raise SystemExit")
    return place / "eve"


def _bomb(place: Path) -> Path:
    return _zip(place / "eve.zip", ("01_config.ipynb", b" " * (19 << 20)))


def _broken_zip(place: Path) -> Path:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("01_config.ipynb", json.dumps(notebook(cell(1))))
    place.mkdir(parents=True)
    (place / "eve.zip").write_bytes(buffer.getvalue()[:-30])
    return place / "eve.zip"


def _version_3(place: Path) -> Path:
    old = {"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": [{"cells": [{"cell_type": "code"}]}]}
    old["worksheets"][0]["cells"][0]["input"] = cell(7).splitlines(keepends=True)  # type: ignore[index]
    return _write(place / "eve.ipynb", old)


def _bare_tree(place: Path) -> Path:
    return _write(place / "eve" / "minisgl" / "models" / "config.py", CELL.format(value=7).split("\n", 1)[1]).parents[2]


def _binary(place: Path) -> Path:
    place.mkdir(parents=True)
    (place / "eve.ipynb").write_bytes(b"\xff\xfe\x00junk")
    return place / "eve.ipynb"


# name, how it is built, the word that the lifted part or the refusal must hold
CASES: tuple[tuple[str, Callable[[Path], Path], str], ...] = (
    ("a_link", _linked, "links are never followed"),
    ("links_beside_the_notebook", _link_inside, "return 1"),
    ("a_fifo", _fifo, "isn't a regular file"),
    ("zip_entry_with_dots", lambda p: _zip(p / "eve.zip", ("../../evil/config.py", b"x = 1")), "leaves it"),
    ("zip_entry_absolute", lambda p: _zip(p / "eve.zip", ("/etc/config.py", b"x = 1")), "leaves it"),
    ("zip_entry_of_windows", lambda p: _zip(p / "eve.zip", ("C:\\evil\\config.py", b"x = 1")), "leaves it"),
    ("zip_with_a_link", _zip_link, "has a link"),
    ("zip_bomb", _bomb, "packed too tightly"),
    ("zip_cut_short", _broken_zip, "can't be read"),
    (
        "zip_of_a_notebook",
        lambda p: _zip(p / "eve.zip", ("any/x.ipynb", json.dumps(notebook(cell(7))).encode())),
        "return 7",
    ),
    ("broken_json", lambda p: _write(p / "eve.ipynb", '{"cells": ['), "JSON is broken"),
    ("deep_json", lambda p: _write(p / "eve.ipynb", "[" * 200_000), "JSON is broken"),
    ("not_text", _binary, "isn't UTF-8"),
    ("json_of_another_kind", lambda p: _write(p / "eve.ipynb", "[1, 2]"), "its JSON is a list"),
    (
        "cells_of_another_kind",
        lambda p: _write(p / "eve.ipynb", {"cells": [1, {"source": 3}, None]}),
        "no cell headed by",
    ),
    ("duplicate_cells", lambda p: _write(p / "eve.ipynb", notebook(cell(1), cell(2))), "return 2"),
    ("a_stub_after_the_work", lambda p: _write(p / "eve.ipynb", notebook(cell(3), _stub())), "return 3"),
    ("no_cells", lambda p: _write(p / "eve.ipynb", notebook()), "no cell headed by"),
    ("reordered_cells", lambda p: _write(p / "eve.ipynb", notebook("check('x')", "import os", cell(4))), "return 4"),
    ("split_cell", lambda p: _write(p / "eve.ipynb", notebook(*_split())), "syntax error in line 1"),
    ("renamed_notebook", lambda p: _write(p / "Copy of 01 (final) ü.ipynb", notebook(cell(5))), "return 5"),
    (
        "another_language",
        lambda p: _write(p / "eve.ipynb", notebook(cell(1), language_info={"name": "R"})),
        "language 'r'",
    ),
    ("old_format", _version_3, "return 7"),
    ("crlf_and_bom", lambda p: _write(p / "eve.ipynb", "\ufeff" + json.dumps(notebook(_crlf(cell(6))))), "return 6"),
    ("a_bare_tree", _bare_tree, "return 7"),
    ("pickles_beside_it", _pickled, "return 1"),
    ("an_enormous_part", lambda p: _write(p / "eve.ipynb", notebook(cell("1" + " " * 200_000 + "# x"))), ""),
    (
        "an_unknown_part",
        lambda p: _write(p / "eve.ipynb", notebook(cell(8), "%%module ../../x.py y\nx = 1")),
        "return 8",
    ),
    (
        "markup_in_the_name",
        lambda p: _write(p / "<script>alert(1)<_script\x1b[31m>.ipynb", notebook(cell(9))),
        "return 9",
    ),
    ("a_link_for_the_notebook", _link_alone, "links are never followed"),
    ("a_damaged_zip_entry", _damaged, "can't be read"),
    ("a_device_file", _device, "isn't a regular file"),
    ("nested_zip", lambda p: _zip(p / "eve.zip", ("inner.zip", b"PK"), ("conftest.py", b"x")), "no cell headed by"),
    ("lone_surrogates", lambda p: _write(p / "eve.ipynb", notebook(cell("'\ud800'"))), "syntax error"),
)


def _stub() -> str:
    return "%%module models/config.py head_dim\ndef head_dim_of(hf_config):\n    raise NotImplementedError()\n"


def _split() -> tuple[str, str]:
    whole = cell(1).splitlines(keepends=True)
    return "".join(whole[:2]), "".join(whole[2:])


def judge_files(place: Path) -> Iterator[Verdict]:
    """Build each case below a folder, read it, and compare."""
    for number, (name, build, word) in enumerate(CASES):
        verdict = Verdict(KIND, name, "passed", 0.0, "", f"{word!r}")
        try:
            found = find([build(place / str(number))])
            verdict.status = "refused" if found and found[0].refusal else "read"
            verdict.message = verdict.named = text_of(found).strip().replace("\n", " / ")[:120]
            if word not in text_of(found):
                verdict.problems.append(f"expected {word!r}")
            if any("\x1b" in each.student or "\x1b" in each.refusal for each in found):
                verdict.problems.append("a control character came through")
        except Exception as error:
            verdict.problems.append(f"reading it raised {type(error).__name__}: {error}")
        yield verdict
