"""What runs on other people's machines, held as far as it can be here: the workflow, Binder's postBuild, the commit hooks."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from autograder.student import doctor
from tests.project.shell import shell
from tests.project.tree import ROOT, tracked_files

(WORKFLOW,) = (ROOT / ".github/workflows").iterdir()
JOB = yaml.safe_load(WORKFLOW.read_text())["jobs"]["tests"]
STEPS = JOB["steps"]
# Programs of Ubuntu alone.
LINUX_ONLY = {"apt-get", "sysctl", "scripts/system_packages.sh"}


def commands_of(step: dict) -> list[list[str]]:
    """The words of each line that a step runs, without comments and sudo."""
    lines = [shlex.split(line, comments=True) for line in step.get("run", "").splitlines()]
    return [words[words[0] == "sudo" :] for words in lines if words]


def test_it_runs_on_linux_and_macos_with_the_oldest_python():
    assert JOB["runs-on"] == "${{ matrix.os }}"
    assert [name.split("-")[0] for name in JOB["strategy"]["matrix"]["os"]] == ["ubuntu", "macos"]
    (python,) = [step["with"]["python-version"] for step in STEPS if "setup-python" in step.get("uses", "")]
    assert python == ".".join(map(str, doctor.OLDEST_PYTHON))


def test_actions_are_pinned():
    used = [step["uses"] for step in STEPS if "uses" in step]
    assert used and not [name for name in used if not re.search(r"@(v\d+|[0-9a-f]{40})$", name)]


def test_what_only_linux_has_runs_only_there():
    for step in STEPS:
        if LINUX_ONLY & {words[0] for words in commands_of(step)}:
            assert step["if"] == "runner.os == 'Linux'"


def test_every_line_runs_a_file_of_the_repository_or_a_known_program():
    tracked = {path.relative_to(ROOT).as_posix() for path in tracked_files()}
    for step in STEPS:
        for words in commands_of(step):
            program = words[1] if words[0] == "bash" else words[0]
            assert program in tracked | LINUX_ONLY, words
            if program in tracked:
                subprocess.run(["bash", "-n", ROOT / program], check=True)


def test_the_caches_follow_files_that_are_there():
    text = WORKFLOW.read_text()
    patterns = [*re.findall(r"cache-dependency-path: (\S+)", text), *re.findall(r"hashFiles\('([^']+)'\)", text)]
    assert len(patterns) == 2
    assert not [pattern for pattern in patterns if not list(ROOT.glob(pattern))]


def test_the_commit_hooks_run_what_is_there():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    words = [word for hook in hooks for word in shlex.split(hook["entry"]) if "/" in word]
    assert words and not [word for word in words if not (ROOT / word).exists()]


def test_post_build_works_also_without_a_model(source: Path, environment: Path, tmp_path: Path):
    clone = tmp_path / "clone"
    shutil.copytree(source, clone)
    variables = {
        "PATH": f"{environment}/bin:/usr/bin:/bin",
        "HOME": str(tmp_path),
        "MINISGL_CACHE": str(tmp_path / "cache"),
        "PIP_NO_INDEX": "1",
    }
    told = shell("./postBuild", cwd=clone, environment=variables)
    assert told.splitlines()[-1].startswith("The course's small model could not be fetched; run 'python -m minisgl fetch'")
    place = shell('python -c "import minisgl; print(minisgl.__file__)"', cwd=tmp_path, environment=variables).strip()
    assert place == str(clone / "minisgl/__init__.py")
    settings = environment / "share/jupyter/lab/settings/overrides.json"
    assert settings.read_text() == (ROOT / "scripts/lab_settings.json").read_text()


@pytest.mark.parametrize("file", ["environment.yml", "postBuild"])
def test_binder_finds_what_it_reads(file: str):
    assert (ROOT / file).is_file()
    assert not [name for name in ("binder", ".binder", "Dockerfile") if (ROOT / name).exists()], "would be read instead"


def test_on_macos_only_what_needs_bubblewrap_is_left_out():
    program = (
        "import platform, sys, pytest, torch; platform.system = lambda: 'Darwin'; "
        "sys.exit(pytest.main(['--collect-only', '-q', '-p', 'no:cacheprovider', *sys.argv[1:]]))"
    )
    files = "tests/attacks/test_redteam.py tests/autograder/test_grade.py tests/autograder/test_worker.py"
    told = shell(f'python -c "{program}" {files}')
    assert "test_the_defence_holds" not in told and "[boxed" not in told and "deselected" in told
    assert "test_every_kind_has_an_attack" in told and "[plain" in told
    assert "test_without_a_sandbox_it_refuses_unless_told_otherwise" in told
