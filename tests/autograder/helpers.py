"""Trees and submissions for the tests of the autograder."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from autograder import paths
from autograder.classroom.submissions import Submission
from autograder.parts import BY_ID, GRADED_MODULES
from autograder.text.trees import module_for
from autograder.text.work import Work


def write(path: Path, content: Any) -> Path:
    """Write a notebook, or anything that JSON can hold, into new folders if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return path


def names(found: Iterable[Submission]) -> list[tuple[str, str, bool]]:
    """Say of each submission whose it is, for which chapter, and whether it was refused."""
    return [(each.student, each.chapter, bool(each.refusal)) for each in found]


def tree_with(part_id: str, text: str) -> dict[str, str]:
    """The reference's graded modules with one part replaced."""
    part = BY_ID[part_id]
    files = {module: (paths.reference_root() / module).read_text() for module in GRADED_MODULES}
    return {**files, part.module: module_for(Work({part_id: text}), part.module, (part,))}


def head_dim(body: str, before: str = "") -> dict[str, str]:
    """A tree whose head_dim_of has this body."""
    lines = "\n".join("    " + line for line in body.splitlines())
    return tree_with("config.head_dim", f"{before}\ndef head_dim_of(hf_config):\n{lines}\n")
