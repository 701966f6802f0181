"""Which test runs a command of a document, where that isn't the test of the document itself."""

from collections.abc import Iterable

# The command -> the file of the test, and the words in it that run the command.
ELSEWHERE = {
    "make setup": ("tests/project/test_readme_commands.py", '"make setup"'),
    "source .venv/bin/activate": ("tests/project/test_readme_commands.py", '"source .venv/bin/activate"'),
    "make test": ("tests/project/test_readme_commands.py", '"make test"'),
    "python -m autograder doctor": ("tests/project/test_readme_commands.py", '"make doctor"'),
    "python -m autograder doctor --role instructor": (
        "tests/project/test_readme_commands.py",
        '"python -m autograder doctor --role instructor"',
    ),
    "make lab": ("tests/browser/conftest.py", '["make", "--dry-run", "lab", f"LAB_ARGS={arguments}"]'),
    "jupyter lab": ("tests/browser/conftest.py", r'r"jupyter lab\b"'),
    "make site": ("tests/project/test_site.py", 'shell("make site"'),
    "python -m minisgl fetch": ("tests/engine/test_parity_smollm2.py", '[sys.executable, "-m", "minisgl", "fetch"]'),
    "make lint": ("tests/project/test_lint.py", 'run_module("mypy")'),
    "make notebooks": ("tests/course/test_running.py", "build_chapter(chapter, tmp_path)"),
    "pip install .": ("tests/project/test_packaging.py", 'shell("pip install ."'),
    "pip install '.[notebooks,viz]'": ("tests/project/test_packaging.py", "shell(\"pip install '.[notebooks,viz]'\""),
    "git apply docs/examples/mistral.patch": (
        "tests/project/test_example_architecture.py",
        'shell("git apply docs/examples/mistral.patch"',
    ),
    "python -m autograder release": ("tests/autograder/test_release.py", 'release.main(["--out", str(tmp_path)])'),
    "python -m autograder release --catch-up 01_config": (
        "tests/autograder/test_release.py",
        'release.build(tmp_path / "open", ["01_config"])',
    ),
    "python -m autograder redteam": ("tests/attacks/test_redteam.py", 'redteam.main(["planted"'),
    "python -m autograder fingerprints": ("tests/project/test_guide_commands.py", 'wrong_solutions.main(["--out"'),
    "dask scheduler --host 127.0.0.1 --port 8786": ("tests/autograder/test_cluster.py", '"distributed.cli.dask_scheduler"'),
    "dask worker tcp://127.0.0.1:8786 --nworkers 2 --nthreads 1": (
        "tests/autograder/test_cluster.py",
        '"distributed.cli.dask_worker"',
    ),
    "python -m autograder grade submitted --out report --scheduler tcp://127.0.0.1:8786": (
        "tests/autograder/test_cluster.py",
        "scheduler=address",
    ),
}


def not_run(commands: list[str], here: Iterable[str]) -> list[str]:
    """Return the commands that are neither run ``here`` nor elsewhere, nor are the beginning of another one of the list."""
    rest = [command for command in commands if command not in {*here, *ELSEWHERE}]
    return [command for command in rest if not any(_is_beginning(command, other) for other in commands)]


def _is_beginning(command: str, other: str) -> bool:
    """Tell whether a command is named short of its arguments, which another one shows; … ends the short form."""
    return other != command and other.startswith(command.rstrip("…"))
