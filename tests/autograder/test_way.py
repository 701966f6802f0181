"""`docs/judging.md` tells a submission's way as it is: one submission calls its functions in its order."""

import importlib
import re
import sys
from functools import reduce

from autograder.authoring.redteam_files import notebook
from autograder.classroom.grade import grade
from autograder.classroom.grading import close
from autograder.classroom.submissions import find
from autograder.text import reference
from tests.autograder.helpers import write
from tests.project.tree import ROOT

PAGE = (ROOT / "docs/judging.md").read_text(encoding="utf-8")
STEPS = re.findall(r"^\| (\d) \| .* \| `(autograder/[\w/]+\.py)`, `([\w.]+)` \|$", PAGE, re.MULTILINE)


def test_every_file_that_the_page_names_is_there():
    named = re.findall(r"`((?:autograder|tests)/[\w/]+(?:\.py|/))`", PAGE)
    assert len(named) > 15 and all((ROOT / name).exists() for name in named)


def test_one_submission_goes_through_the_eight_steps_in_their_order(tmp_path, monkeypatch):
    assert [number for number, _, _ in STEPS] == list("12345678")
    called = []
    for number, file, name in STEPS:
        module = importlib.import_module(file.removesuffix(".py").replace("/", "."))
        *holders, last = name.split(".")
        holder = reduce(getattr, holders, module)
        noted = _noting(getattr(holder, last), number, called)
        for place in [holder, *_importers(module, last)]:
            monkeypatch.setattr(place, last, noted)
    write(tmp_path / "ann.ipynb", notebook("%%module models/config.py head_dim\n" + reference.piece("config.head_dim")))
    inline = lambda payloads, task, **_: ((key, task(payload)) for key, payload in payloads.items())  # noqa: E731
    monkeypatch.setattr("autograder.classroom.grade.run_all", inline)
    (row,) = grade(find([tmp_path / "ann.ipynb"], "01_config"), tmp_path / "out", sandboxed=False)
    close()
    assert row["points"] == 2.0
    assert list(dict.fromkeys(called)) == list("12345678")


def _noting(function, number, called):
    def noting(*args, **kwargs):
        called.append(number)
        return function(*args, **kwargs)

    return noting


def _importers(module, name):
    """Return the other modules that hold a function of this module's under its own name."""
    value = getattr(module, name, None)
    return [
        other
        for key, other in list(sys.modules.items())
        if key.startswith("autograder.") and other is not module and value is not None and getattr(other, name, None) is value
    ]
