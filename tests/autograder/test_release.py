"""The student kit works on its own and gives nothing away."""

import os
import shutil
import subprocess
import sys
import zipfile

import pytest

from autograder import paths
from autograder.authoring import release
from autograder.parts import GRADED_MODULES, parts_of_chapter


@pytest.fixture(scope="module")
def kit(tmp_path_factory):
    return release.build(tmp_path_factory.mktemp("kit"))


def run(kit, *words, workspace):
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(kit),
        "MINISGL_WORKSPACE": str(workspace),
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, "-m", "autograder", *words]
    return subprocess.run(command, cwd=kit, env=environment, capture_output=True, text=True, timeout=400)


def test_the_kit_has_notebooks_checks_and_provided_files_and_no_solution(kit):
    assert (kit / "notebooks" / "01_config" / "01_config.ipynb").is_file()
    assert (kit / "tests" / "checks" / "conftest.py").is_file()
    assert (kit / "minisgl" / "core.py").is_file()
    for module in GRADED_MODULES:
        assert not (kit / "minisgl" / module).exists()
    assert not any((kit / "autograder" / name).exists() for name in release.INSTRUCTORS)
    assert not (kit / "solutions").exists() and not (kit / "instructor").exists()


def test_a_solution_line_or_a_hidden_thing_in_it_is_found(kit, tmp_path, monkeypatch):
    place = kit / "tests" / "checks" / "leak.py"
    line = next(iter(release.telling_lines({"models/config.py"})))
    place.write_text(f"    {line}\n")
    with pytest.raises(release.KitError, match=r"leak\.py holds a line of config\."):
        release.verify(kit, set())
    release.verify(kit, {"models/config.py"})
    place.unlink()
    (tmp_path / "instructor").mkdir()
    (tmp_path / "instructor" / "seed").write_text("canary-7e1f0c\n")
    (kit / "hints.txt").write_text("the seed is canary-7e1f0c")
    monkeypatch.setattr("autograder.authoring.release.paths.HOME", tmp_path)
    lines = release.telling_lines
    monkeypatch.setattr(release, "telling_lines", lambda modules: {})
    with pytest.raises(release.KitError, match=r"hints\.txt holds the hidden seed"):
        release.verify(kit, set())
    monkeypatch.setattr(release, "telling_lines", lines)
    (kit / "hints.txt").unlink()


def test_the_zip_holds_the_same_files_and_is_the_same_every_time(kit, tmp_path):
    archive = kit.parent / "minisgl-course.zip"
    with zipfile.ZipFile(archive) as packed:
        names = {name.removeprefix("minisgl-course/") for name in packed.namelist()}
    assert names == {path.relative_to(kit).as_posix() for path in kit.rglob("*") if path.is_file()}
    again = release.build(tmp_path)
    assert (again.parent / "minisgl-course.zip").read_bytes() == archive.read_bytes()


@pytest.mark.timeout(900)
def test_an_untouched_kit_has_nothing_written(kit, tmp_path):
    found = run(kit, "check", workspace=tmp_path / "workspace")
    assert found.returncode == 1, found.stdout + found.stderr
    assert found.stdout.count("not written yet") >= 25 and "0 of " in found.stdout.splitlines()[-1]
    assert (tmp_path / "workspace" / "minisgl" / "core.py").is_file()


@pytest.mark.timeout(900)
def test_a_chapter_written_in_a_kit_passes_and_a_missing_prerequisite_is_named(kit, tmp_path):
    models = tmp_path / "workspace" / "minisgl" / "models"
    models.mkdir(parents=True)
    models.joinpath("config.py").write_text((paths.reference_root() / "models" / "config.py").read_text())
    found = run(kit, "check", "config.head_dim", workspace=tmp_path / "workspace")
    assert found.returncode == 0, found.stdout + found.stderr
    assert "2 of 2 points" in found.stdout
    found = run(kit, "check", "config.kv_bytes", workspace=tmp_path / "workspace")
    assert found.returncode == 0, found.stdout + found.stderr
    text = models.joinpath("config.py").read_text()
    start = text.index("def moe_fields_of")
    models.joinpath("config.py").write_text(text[:start] + text[text.index("def refuse_uncomputed") :])
    found = run(kit, "check", "config.kv_bytes", workspace=tmp_path / "workspace")
    assert found.returncode == 1 and "write config.moe first" in found.stdout, found.stdout + found.stderr


@pytest.mark.timeout(900)
def test_an_opened_chapter_stands_in_for_what_a_student_has_not_written_of_it(kit, tmp_path):
    opened = release.build(tmp_path / "open", ["01_config"])
    models = tmp_path / "workspace" / "minisgl" / "models"
    models.mkdir(parents=True)
    for name in ("base.py", "utils.py", "decoder.py", "register.py"):
        shutil.copy(paths.reference_root() / "models" / name, models)
    found = run(kit, "check", "decoder.together", workspace=tmp_path / "workspace")
    assert found.returncode == 1 and "write config.architecture, " in found.stdout, found.stdout + found.stderr
    for part in ("utils.gated_mlp", "decoder.together"):
        found = run(opened, "check", part, workspace=tmp_path / "workspace")
        assert found.returncode == 0, found.stdout + found.stderr


def test_help_needs_the_instructors_catch_up_folder(kit, tmp_path):
    script = "from autograder.student.notebook import use_reference; use_reference('config.head_dim')"
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(kit), "MINISGL_WORKSPACE": str(tmp_path / "w")}
    command = [sys.executable, "-c", script]
    shown = subprocess.run(command, cwd=kit, env=environment, capture_output=True, text=True, timeout=100)
    assert "Ask your instructor for the chapter's catch-up folder" in shown.stdout, shown.stderr
    opened = release.build(tmp_path / "open", ["01_config"])
    shown = subprocess.run(command, cwd=opened, env=environment, capture_output=True, text=True, timeout=100)
    assert "config.head_dim is in place" in shown.stdout, shown.stderr


def test_the_command_says_where_the_kit_is(tmp_path, capsys):
    assert release.main(["--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        str(tmp_path / "minisgl-course"),
        str(tmp_path / "minisgl-course.zip"),
    ]
    with pytest.raises(SystemExit) as stop:
        release.main(["--catch-up", "nope"])
    assert stop.value.code == 2
    assert os.path.isdir(tmp_path / "minisgl-course") and parts_of_chapter("01_config")
