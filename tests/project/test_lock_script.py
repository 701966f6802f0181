"""scripts/lock.py walks requirements as pip does and refuses what it can't pin."""

from pathlib import Path

import pytest
from packaging.requirements import Requirement

from scripts import lock as lock_script


def install(site_packages: Path, name: str, version: str, *requires: str) -> None:
    """Lay down the metadata of an installed package."""
    folder = site_packages / f"{name}-{version}.dist-info"
    folder.mkdir(parents=True)
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {name}",
        f"Version: {version}",
        *(f"Requires-Dist: {r}" for r in requires),
    ]
    (folder / "METADATA").write_text("\n".join(lines) + "\n")


def closure(site_packages: Path, *roots: str, over: tuple[Path, ...] = ()) -> dict[str, str]:
    return lock_script.closure(map(Requirement, roots), site_packages, *over)


def test_requirements_of_requirements_are_pinned_and_strangers_left_out(tmp_path: Path):
    install(tmp_path, "Top_Package", "1.0+cpu", "middle>=1")
    install(tmp_path, "middle", "1.5", "leaf; python_version >= '3'", "windows-only; sys_platform == 'win32'")
    install(tmp_path, "leaf", "3.0", "middle")
    install(tmp_path, "stranger", "9.0")
    assert closure(tmp_path, "top-package") == {"leaf": "3.0", "middle": "1.5", "top-package": "1.0"}


def test_an_extra_brings_its_own_requirements(tmp_path: Path):
    install(tmp_path, "top", "1.0", "leaf; extra == 'more'")
    install(tmp_path, "leaf", "3.0")
    assert closure(tmp_path, "top") == {"top": "1.0"}
    assert closure(tmp_path, "top[more]") == {"leaf": "3.0", "top": "1.0"}
    assert closure(tmp_path, "top", "top[more]") == {"leaf": "3.0", "top": "1.0"}


def test_a_package_laid_over_another_counts_with_its_version_and_requirements(tmp_path: Path):
    install(tmp_path / "first", "top", "5.0", "leaf")
    install(tmp_path / "first", "leaf", "3.0")
    install(tmp_path / "over", "top", "4.0", "leaf<3")
    install(tmp_path / "over", "leaf", "2.0")
    assert closure(tmp_path / "first", "top", over=(tmp_path / "over",)) == {"leaf": "2.0", "top": "4.0"}


def test_everything_that_can_not_be_pinned_is_named_at_once(tmp_path: Path):
    install(tmp_path, "top", "1.0", "absent>=2")
    with pytest.raises(SystemExit) as caught:
        closure(tmp_path, "top>=2")
    message = str(caught.value)
    assert "absent>=2 (asked for by top) is not installed" in message
    assert "top>=2 (asked for by pyproject.toml) does not admit the installed 1.0" in message


def test_a_missing_environment_is_named(tmp_path: Path):
    with pytest.raises(SystemExit, match=r"is not an environment .* run `make setup` first"):
        lock_script.site_packages_of(tmp_path / "nowhere")


def test_environment_has_every_pin_once():
    text = lock_script.environment_text("# a comment\na==1\nb==2\n")
    assert text.endswith("  - pip:\n      - a==1\n      - b==2\n")


def test_a_stale_file_is_named_by_check_and_written_without(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.setattr(lock_script, "file_texts", lambda: {tmp_path / "a.lock": "a==1\n", tmp_path / "b.lock": "b==2\n"})
    (tmp_path / "a.lock").write_text("a==1\n")
    assert lock_script.main(["--check"]) == 1
    assert capsys.readouterr().err == "b.lock is out of date; run `make lock`\n"
    assert lock_script.main([]) == 0
    assert capsys.readouterr().out == "wrote b.lock\n"
    assert lock_script.main(["--check"]) == 0
