"""`python -m autograder doctor` names what is missing, what was expected, what to do."""

import json

import pytest
import torch
from safetensors.torch import save_file

from autograder.student import doctor
from autograder.worker import sandbox


def status_of(findings, name: str) -> str:
    (found,) = [item for item in findings if item.name == name]
    assert found.status == "ok" or (found.found and found.expected and found.remedy)
    return found.status


def test_a_machine_set_up_by_make_has_no_problem(capsys):
    assert doctor.main(["--role", "student"]) == 0
    assert "0 problems" in capsys.readouterr().out


def test_json_is_complete(capsys):
    code = doctor.main(["--json", "--role", "developer"])
    report = json.loads(capsys.readouterr().out)
    assert report["role"] == "developer"
    assert code == any(item["status"] == "problem" for item in report["findings"])
    names = {
        "python",
        "packages",
        "jupyterlab",
        "nbgrader",
        "workspace",
        "model",
        "sandbox",
        "chromium",
        "disk",
        "memory",
    }
    assert names <= {item["name"] for item in report["findings"]}


def test_wrong_usage_exits_with_2():
    with pytest.raises(SystemExit) as caught:
        doctor.main(["--role", "king"])
    assert caught.value.code == 2


def test_an_old_python_is_a_problem(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "OLDEST_PYTHON", (9, 9))
    assert doctor.main([]) == 1
    out = capsys.readouterr().out
    assert "problem python: 3." in out
    assert "expected:   Python 9.9 or newer" in out
    assert "what to do: install it" in out


def test_missing_and_differing_packages_are_told_apart(monkeypatch, tmp_path):
    (tmp_path / "requirements.lock").write_text("# a comment\npytest==0.1\nno-such-package==1.0\n")
    monkeypatch.setattr(doctor, "ROOT", tmp_path)
    findings = list(doctor.check_packages("student"))
    assert status_of(findings, "packages") == "problem"
    assert findings[0].found == "missing: no-such-package"
    assert status_of(findings, "package versions") == "advice"
    assert "instead of 0.1" in findings[1].found


def test_without_a_clone_the_ranges_are_examined(monkeypatch, tmp_path):
    monkeypatch.setattr(doctor, "ROOT", tmp_path)
    (found,) = doctor.check_packages("student")
    assert found.status == "ok"


def test_a_sandbox_that_does_not_work_hinders_the_instructor_only(monkeypatch):
    monkeypatch.setattr(doctor.platform, "system", lambda: "Linux")
    monkeypatch.setattr(sandbox, "problem", lambda: "No permissions to create new namespace")
    assert status_of(doctor.check_sandbox("student"), "sandbox") == "advice"
    (found,) = doctor.check_sandbox("instructor")
    assert found.status == "problem"
    assert "No permissions to create new namespace" in found.found
    assert "user namespaces" in found.remedy


def test_a_missing_sandbox_is_named(monkeypatch):
    monkeypatch.setattr(doctor.platform, "system", lambda: "Linux")
    monkeypatch.setattr(sandbox.shutil, "which", lambda name: None)
    monkeypatch.setattr(sandbox, "problem", sandbox.problem.__wrapped__)
    (found,) = doctor.check_sandbox("instructor")
    assert "bubblewrap isn't installed" in found.found


def test_other_systems_are_told_where_grading_works(monkeypatch):
    monkeypatch.setattr(doctor.platform, "system", lambda: "Darwin")
    (found,) = doctor.check_sandbox("instructor")
    assert found.status == "problem"
    assert "Linux" in found.expected
    assert status_of(doctor.check_sandbox("student"), "sandbox") == "advice"


def test_a_workspace_that_can_not_be_written_is_a_problem(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("MINISGL_WORKSPACE", str(tmp_path / "file" / "workspace"))
    assert status_of(doctor.check_workspace("student"), "workspace") == "problem"
    monkeypatch.setenv("MINISGL_WORKSPACE", str(tmp_path / "new" / "workspace"))
    assert status_of(doctor.check_workspace("student"), "workspace") == "ok"


def test_no_browser_is_advice_for_a_student(monkeypatch):
    monkeypatch.setattr(doctor, "find_chromium", lambda: None)
    assert status_of(doctor.check_chromium("student"), "chromium") == "advice"
    assert status_of(doctor.check_chromium("developer"), "chromium") == "problem"


def test_a_browser_that_is_on_no_path_is_found_as_a_program(monkeypatch, tmp_path):
    program = tmp_path / "Google Chrome.app/Contents/MacOS/Google Chrome"
    monkeypatch.setattr(doctor, "CHROMIUM_APPS", (str(tmp_path / "Chromium.app/Contents/MacOS/Chromium"), str(program)))
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None)
    assert doctor.find_chromium() is None
    program.parent.mkdir(parents=True)
    program.touch()
    assert doctor.find_chromium() == str(program)


def test_little_disk_and_memory_is_advice(monkeypatch):
    monkeypatch.setattr(doctor, "FREE_DISK_GIB", 10**9)
    monkeypatch.setattr(doctor, "AVAILABLE_MEMORY_GIB", 10**9)
    assert status_of(doctor.check_disk("student"), "disk") == "advice"
    assert status_of(doctor.check_memory("student"), "memory") == "advice"


def test_a_check_that_breaks_does_not_hide_the_others(monkeypatch):
    def check_oddity(role):
        raise RuntimeError("boom")

    monkeypatch.setattr(doctor, "CHECKS", (check_oddity, doctor.check_python))
    findings = doctor.examine()
    assert [item.name for item in findings] == ["oddity", "python"]
    assert "RuntimeError: boom" in findings[0].found


def test_the_model_is_found_where_fetch_puts_it(monkeypatch, tmp_path):
    from minisgl.hub.smollm2 import MODEL_NAME

    monkeypatch.setenv("MINISGL_CACHE", str(tmp_path))
    (found,) = doctor.check_model("student")
    assert (found.status, found.found) == ("advice", f"not in {tmp_path / MODEL_NAME}")
    assert "python -m minisgl fetch" in found.remedy
    (tmp_path / MODEL_NAME).mkdir()
    assert status_of(doctor.check_model("student"), "model") == "advice"
    save_file({"x": torch.zeros(1)}, tmp_path / MODEL_NAME / "model.safetensors")
    assert status_of(doctor.check_model("student"), "model") == "ok"
