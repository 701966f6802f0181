"""Trees for the tests of the autograder."""

from autograder import paths, reference
from autograder.parts import BY_ID, GRADED_MODULES
from autograder.sources import assemble


def tree_with(part_id: str, text: str) -> dict[str, str]:
    """The reference's graded modules with one part replaced."""
    part = BY_ID[part_id]
    files = {module: (paths.reference_root() / module).read_text() for module in GRADED_MODULES}
    pieces = {**reference.pieces(part.module), part.name: text}
    return {**files, part.module: assemble(part.module, reference.header(part.module), pieces)}


def head_dim(body: str, before: str = "") -> dict[str, str]:
    """A tree whose head_dim_of has this body."""
    lines = "\n".join("    " + line for line in body.splitlines())
    return tree_with("config.head_dim", f"{before}\ndef head_dim_of(hf_config):\n{lines}\n")
