"""The student's tree: atomic, forgiving, and always in a clear state."""

import os
import subprocess
import sys

import pytest

from autograder import paths
from autograder.parts import BY_ID, GRADED_MODULES, select
from autograder.student import progress
from autograder.student.workspace import Workspace, WorkspaceError, judged_sha, overview, use_reference
from autograder.text import reference

PART = BY_ID["config.head_dim"]
TEXT = "def head_dim_of(hf_config):\n    return 1\n"


@pytest.fixture
def workspace(tmp_path):
    made = Workspace(tmp_path / "workspace")
    made.ensure()
    return made


def test_provided_files_are_there_and_graded_ones_hold_their_header(workspace):
    assert (workspace.package / "core.py").read_text() == (paths.reference_root() / "core.py").read_text()
    for module in GRADED_MODULES:
        assert (workspace.package / module).read_text() == reference.header(module)
    assert workspace.read().pieces == {}


def test_a_part_replaces_its_earlier_version_in_any_order(workspace):
    workspace.write_cell("models/config.py", "def kv_bytes_per_token(config, dtype):\n    return 0\n")
    workspace.write_cell(PART.module, TEXT)
    workspace.write_cell(PART.module, TEXT.replace("1", "2"))
    assert workspace.read().pieces[PART.id] == TEXT.replace("1", "2")
    assert set(workspace.read().pieces) == {PART.id, "config.kv_bytes"}
    assert overview(workspace.read())[0] == ("models/config.py", ["head_dim", "kv_bytes"], 10)


def test_windows_line_ends_a_bom_and_other_letters_are_fine(workspace):
    workspace.write_cell(PART.module, "\ufeff# größe\r\n" + TEXT.replace("\n", "\r\n"))
    path = workspace.package / PART.module
    assert workspace.read().pieces[PART.id] == "# größe\n" + TEXT
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert workspace.read().pieces[PART.id] == "# größe\n" + TEXT
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(WorkspaceError, match="isn't UTF-8 text; save it as UTF-8"):
        workspace.read()


def test_a_provided_file_that_was_edited_comes_back_and_the_edit_is_kept(workspace):
    (workspace.package / "core.py").write_text("mine")
    workspace.ensure()
    assert (workspace.package / "core.py").read_text() == (paths.reference_root() / "core.py").read_text()
    assert (workspace.package / "core.py.edited").read_text() == "mine"


def test_a_missing_workspace_is_made_again_and_a_broken_state_file_is_survived(workspace):
    workspace.write_cell(PART.module, TEXT)
    (workspace.root / ".course.json").write_text("{broken")
    assert workspace.read().pieces == {PART.id: TEXT}
    (workspace.package / "core.py").unlink()
    workspace.ensure()
    assert (workspace.package / "core.py").is_file()


def test_a_workspace_that_cannot_be_written_says_what_to_do(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(WorkspaceError, match=r"can't be written .* set MINISGL_WORKSPACE"):
        Workspace(tmp_path / "file" / "workspace").ensure()


def test_help_is_marked_until_the_students_own_version_comes(workspace):
    assert use_reference(workspace, list(select("config.head_dim"))) == [PART.id]
    assert workspace.read().helped == {PART.id}
    assert workspace.read().pieces[PART.id] == reference.piece(PART.id)
    workspace.write_cell(PART.module, TEXT)
    assert workspace.read().helped == set()


def test_a_kit_without_reference_says_whom_to_ask(workspace, monkeypatch):
    monkeypatch.setattr(reference, "has", lambda part: False)
    with pytest.raises(WorkspaceError, match=r"no provided version of models/config\.py\. Ask your instructor"):
        use_reference(workspace, [PART])


def test_status_tells_the_truth_about_each_part(workspace):
    rows = {row.part.id: row.state for row in progress.rows(workspace)}
    assert set(rows.values()) == {"not_written"}
    workspace.write_cell(PART.module, TEXT)
    assert state_of(workspace) == "unchecked"
    note(workspace, "passed", 2.0)
    assert state_of(workspace) == "passed"
    workspace.write_cell(PART.module, TEXT.replace("1", "3"))
    assert state_of(workspace) == "unchecked"
    found = progress.rows(workspace)
    assert progress.next_step(found) == "write config.architecture (chapter 01_config, about 10 minutes)"
    assert progress.minutes_left(found) == sum(row.part.minutes for row in found)


def state_of(workspace):
    return next(row.state for row in progress.rows(workspace) if row.part is PART)


def note(workspace, status, points):
    from autograder.judge.results import PartResult

    workspace.note_results([PartResult(PART.id, points, 2, status, "")], workspace.read())
    assert workspace.state()["checked"][PART.id]["sha"] == judged_sha(workspace.read(), PART)


def test_a_cell_that_was_changed_and_not_run_is_told(workspace, tmp_path, monkeypatch):
    import json

    cell = {"cell_type": "code", "source": ["%%module models/config.py head_dim\n", *TEXT.splitlines(keepends=True)]}
    book = tmp_path / "01_config.ipynb"
    book.write_text(json.dumps({"cells": [cell]}))
    monkeypatch.setenv("JPY_SESSION_NAME", str(book))
    monkeypatch.setenv("MINISGL_WORKSPACE", str(workspace.root))
    workspace.write_cell(PART.module, TEXT)
    assert progress.changed_cells([PART]) == []
    workspace.write_cell(PART.module, TEXT.replace("1", "4"))
    assert progress.changed_cells([PART]) == []
    after = (workspace.package / PART.module).stat().st_mtime_ns + 1
    os.utime(book, ns=(after, after))
    assert progress.changed_cells([PART]) == [PART.id]
    book.write_text('{"cells": [')  # saved half-way
    assert progress.changed_cells([PART]) == []


def test_two_processes_lose_no_part(workspace):
    script = (
        "import sys; from pathlib import Path\n"
        "from autograder.student.workspace import Workspace; from autograder.parts import BY_ID\n"
        "w = Workspace(Path(sys.argv[1]))\n"
        "for n in range(15): w.write_cell(BY_ID[sys.argv[2]].module, f'{sys.argv[3]} = {n}')\n"
    )
    jobs = [("config.head_dim", "head_dim_of"), ("config.sizes", "sizes_of"), ("config.moe", "moe_fields_of")]
    running = [
        subprocess.Popen([sys.executable, "-c", script, str(workspace.root), *job], cwd=paths.HOME) for job in jobs
    ]
    assert [process.wait(60) for process in running] == [0, 0, 0]
    assert workspace.read().pieces == {part: f"{name} = 14\n" for part, name in jobs}


def test_the_workspace_is_found_beside_the_notebooks(tmp_path, monkeypatch):
    monkeypatch.delenv("MINISGL_WORKSPACE", raising=False)
    inner = tmp_path / "notebooks" / "01_config"
    inner.mkdir(parents=True)
    for place in (inner, tmp_path / "notebooks", tmp_path):
        assert paths.workspace_root(place) == tmp_path / "workspace"
    monkeypatch.setenv("MINISGL_WORKSPACE", str(tmp_path / "mine"))
    assert paths.workspace_root(inner) == tmp_path / "mine"
    assert os.environ["MINISGL_WORKSPACE"]


def test_an_installed_package_has_its_workspace_where_it_is_used(tmp_path, monkeypatch):
    monkeypatch.delenv("MINISGL_WORKSPACE", raising=False)
    assert paths.workspace_root(tmp_path) == paths.HOME / "workspace"  # in a clone or a kit
    monkeypatch.setattr(paths, "HOME", tmp_path / "site-packages")
    assert paths.workspace_root(tmp_path) == tmp_path / "workspace"
