"""Read a student's work out of cells or files: one reader for the notebook, the shell, Validate and every grader.

A student's module is all top-level statements of all its ``%%module`` cells, in order. Which part a statement belongs to
is told by the names that it binds, never by the cell it stands in. Nothing is run.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from autograder.parts import BY_ID, GRADED_MODULES, Part, parts_of_module
from autograder.text import reference
from autograder.text.sources import MAX_PART_CHARS, is_stub, normalize
from autograder.text.statements import MAX_STATEMENTS, Statement, merge, readable, statements_of

GIVEN = "_given_"  # what a name of the course's is called beside a student's own of that name
MAGIC = re.compile(r"^[ \t]*%%module[ \t]+(?P<module>\S+)(?:[ \t]+(?P<part>.*?))?[ \t]*$")
DEFINED = re.compile(r"^(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)|^(\w+)[ \t]*(?::[^=\n]+)?=(?!=)", re.MULTILINE)


@dataclass
class Work:
    """A student's own code, read from a workspace, a notebook or a tree.

    Attributes:
        pieces: part id -> source of the statements that bind the part's names.
        helpers: module -> source of all other statements of the student's, in order.
        helped: ids of parts that were taken from the reference by ``use_reference``.
        problems: part id -> why its text can't be used.
        broken: part id -> the syntax error in the only text that defines it.
        notes: what else was noticed while it was read, in words.
    """

    pieces: dict[str, str] = field(default_factory=dict)
    helpers: dict[str, str] = field(default_factory=dict)
    helped: set[str] = field(default_factory=set)
    problems: dict[str, str] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def as_plain(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {name: value for name, value in vars(self).items() if name != "helped"}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Work:
        """Return what ``as_plain`` made plain."""
        return cls(**plain)

    def only(self, part_ids: Iterable[str]) -> Work:
        """Return the work on some parts, with the helpers of their modules."""
        ids = set(part_ids)
        modules = {BY_ID[part_id].module for part_id in ids}
        return Work(
            {name: text for name, text in sorted(self.pieces.items()) if name in ids},
            {module: text for module, text in sorted(self.helpers.items()) if module in modules},
            problems={name: text for name, text in sorted(self.problems.items()) if name in ids},
            broken={name: text for name, text in sorted(self.broken.items()) if name in ids},
            notes=list(self.notes),
        )

    def update(self, other: Work) -> None:
        """Add other work, module by module; where both have a module, the other's statements come later."""
        for module in GRADED_MODULES:
            self._put(module, merge(self.statements(module), other.statements(module)))
        self.problems.update({name: why for name, why in other.problems.items() if name not in self.pieces})
        self.broken.update({name: why for name, why in other.broken.items() if name not in self.pieces})
        self.helped |= other.helped
        self.notes += [note for note in other.notes if note not in self.notes]

    def statements(self, module: str) -> list[Statement]:
        """Return the student's statements of a module: helpers first, then the parts in their order."""
        texts = [self.helpers.get(module, "")]
        texts += [self.pieces.get(part.id, "") for part in parts_of_module(module)]
        return [statement for text in texts for statement in statements_of(text)]

    def add(self, module: str, text: str) -> None:
        """Add a cell's or a file's text to a module."""
        good, broken, taken = readable(text)
        given = given_statements(module)
        new = [each for piece in good for each in statements_of(piece) if each.text not in given]
        before = self.statements(module)
        if len(before) + len(new) > MAX_STATEMENTS:
            self.notes.append(f"{module}: a text of {len(new)} statements was left out; {MAX_STATEMENTS} are read")
            new = []
        self._put(module, merge(before, [each for each in new if not _is_given(each)]))
        self.notes += [f"{module}: this line is for IPython and was left out: {line}" for line in taken]
        if any("breakpoint" in each.uses for each in new):
            self.notes.append(f"{module}: breakpoint() has no effect here; take it out")
        for chunk, error in broken:
            self.notes.append(f"{module}: {syntax_words(error)}")
            for part in _named_in(module, chunk):
                if not _is_written(self.pieces.get(part.id, "")):
                    self.pieces.pop(part.id, None)
                    self.broken[part.id] = syntax_words(error)
        for part in parts_of_module(module):
            if _is_written(self.pieces.get(part.id, "")):
                self.broken.pop(part.id, None)

    def forget(self, module: str) -> None:
        """Forget all of a module."""
        self._put(module, [])
        for part in parts_of_module(module):
            self.problems.pop(part.id, None)
            self.broken.pop(part.id, None)

    def drop(self, module: str, names: Iterable[str]) -> None:
        """Forget the statements that bind nothing but these names."""
        gone = set(names)
        self._put(module, [each for each in self.statements(module) if not each.names or not each.names <= gone])

    def _put(self, module: str, statements: list[Statement]) -> None:
        owner = {name: part for part in parts_of_module(module) for name in part.names}
        times = Counter(name for each in statements for name in each.names)
        texts: dict[str, list[str]] = {}
        for statement in statements:
            # What keeps a part's first meaning (``plain = f``, before f is defined anew) belongs to the part.
            names = statement.names | {name for name in statement.needs if times[name] > 1}
            part = next((owner[name] for name in owner if name in names), None)
            texts.setdefault(part.id if part else "", []).append(statement.text)
        for part in parts_of_module(module):
            self.pieces.pop(part.id, None)
            if part.id in texts:
                self.pieces[part.id] = "\n\n".join(texts[part.id])
                if len(self.pieces[part.id]) > MAX_PART_CHARS:
                    self.problems[part.id] = f"the part is longer than {MAX_PART_CHARS} characters; shorten it"
        self.helpers.pop(module, None)
        if "" in texts:
            self.helpers[module] = "\n\n".join(texts[""])


def work_of_cells(sources: Iterable[str]) -> Work:
    """Read the ``%%module`` cells among a notebook's code cells; others are left alone."""
    work = Work()
    for source in sources:
        cell = read_cell(source)
        if cell is not None:
            try:
                work.add(module_of_magic(cell[0]), cell[2])
            except ValueError as error:
                work.notes.append(f"a cell counts for nothing: {error}")
    return work


def work_of_modules(files: Mapping[str, str]) -> Work:
    """Read whole modules: path below ``minisgl/`` -> text. What the course provides in them is left aside."""
    work = Work()
    for module, text in files.items():
        work.add(module, text)
    return work


def read_cell(source: str) -> tuple[str, str, str] | None:
    """Return module, the words behind it and the body of a ``%%module`` cell, or None for another cell.

    Blank lines and comments may stand before the magic, since a kernel would refuse them but a grader can be kind.
    """
    lines = source.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for number, line in enumerate(lines):
        found = MAGIC.match(line)
        if found:
            return found["module"], found["part"] or "", "\n".join(lines[number + 1 :])
        if line.strip() and not line.lstrip().startswith("#"):
            return None
    return None


def module_of_magic(word: str) -> str:
    """Return the graded module that the first word behind ``%%module`` means.

    Raises:
        ValueError: there is none; the message lists them.
    """
    path = word.removeprefix("minisgl/").removeprefix("./")
    path = path if path.endswith(".py") else path + ".py"
    path = path if "/" in path else f"models/{path}"
    if path not in GRADED_MODULES:
        raise ValueError(f"{word!r} isn't a module that you write; those are {', '.join(GRADED_MODULES)}")
    return path


def syntax_words(error: SyntaxError) -> str:
    """Say where a syntax error is, and which Python says so: newer syntax is one too."""
    version = ".".join(str(number) for number in sys.version_info[:2])
    return f"syntax error in line {error.lineno}: {error.msg} (read by Python {version})"


def given_statements(module: str) -> frozenset[str]:
    """Return the texts of the statements that the course provides at the top of a module."""
    return frozenset(each.text for each in statements_of(reference.header(module)))


def _is_given(statement: Statement) -> bool:
    return bool(statement.names) and all(name.startswith(GIVEN) for name in statement.names)


def names_written_in(text: str) -> set[str]:
    """Return the names that a text seems to define at its margin; it needn't be Python that can be parsed."""
    return {first or second for first, second in DEFINED.findall(text[: 4 * MAX_PART_CHARS])}


def _named_in(module: str, text: str) -> list[Part]:
    names = names_written_in(text)
    return [part for part in parts_of_module(module) if names.intersection(part.names)]


def _is_written(text: str) -> bool:
    return bool(text) and not is_stub(normalize(text))


