"""Say which folders make up the installed packages; everything else stands in pyproject.toml.

The checks live in ``tests/checks``, where pytest runs them on the reference, and are installed as
``autograder/checks``, so that a wheel can check a student's tree without the clone.
"""

from pathlib import Path

from setuptools import find_namespace_packages, setup

CHECKS = Path("tests/checks")

packages = find_namespace_packages(
    include=["minisgl", "minisgl.*", "autograder", "autograder.*"], exclude=["*.__pycache__", "*.__pycache__.*"]
)
package_dir = {}
if CHECKS.is_dir():
    packages.append("autograder.checks")
    package_dir["autograder.checks"] = CHECKS.as_posix()

setup(
    packages=packages,
    package_dir=package_dir,
    # Every file in a package's folder goes with it: model data, hints, templates, py.typed.
    package_data={"": ["*"], "minisgl": ["tiny_models/**/*"], "autograder.checks": ["**/*"]},
)
