"""The notebooks and module trees in one student's hand-ins, and which of them counts for a chapter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from autograder.classroom.claims import NUMBER, TIME, Claim, chapter_in, time_in
from autograder.classroom.submitted_files import MODULES, File, Unreadable, files_of
from autograder.parts import BY_ID, CHAPTERS, is_whole_package, parts_of_chapter, parts_of_module
from autograder.text.notebook import NotANotebook, chapters_of, decoded, read_cells, work_of_notebook
from autograder.text.sources import is_stub, syntax_error_of
from autograder.text.work import Work, syntax_words, work_of_modules

SAME_MOMENT_S = 5  # copying or unpacking a hand-in may change the times of all its files to about now


@dataclass
class Document:
    """A notebook, or the modules of one folder.

    Attributes:
        claim: the hand-in that it lies in.
        name: the hand-in's name and its place in it.
        changed: when it was last changed, in seconds since 1970.
        work: what it holds.
        chapters: the chapters that it is, the first before all.
        text: a notebook's own text; empty for modules.
    """

    claim: Claim
    name: str
    changed: float
    work: Work
    chapters: list[str]
    text: str = ""
    number: int = field(init=False)

    def __post_init__(self) -> None:
        found = NUMBER.fullmatch(PurePosixPath(self.name).stem)
        self.number = int(found["browser"] or found["platform"]) if found and self.text else 0

    def parts_written(self, chapter: str) -> int:
        """Count the parts of a chapter that are more than the untouched stub."""
        written = {*self.work.broken, *(name for name, text in self.work.pieces.items() if not is_stub(text))}
        return sum(BY_ID[part_id].chapter == chapter for part_id in written)


@dataclass
class Choice:
    """What counts for a chapter.

    Attributes:
        document: the notebook or the modules; None where there are none, or where it can't be told.
        notes: what was left aside, and why.
        refusal: why it can't be told what counts; empty where it can.
    """

    document: Document | None = None
    notes: list[str] = field(default_factory=list)
    refusal: str = ""


def documents_of(claim: Claim, problems: list[str]) -> list[Document]:
    """Read a hand-in.

    Args:
        claim: the hand-in.
        problems: is given the reasons why something in it can't be read.
    """
    found: list[Document] = []
    trees: dict[str, list[File]] = {}
    try:
        for file in files_of(claim.path, problems):
            if file.name.lower().endswith(".ipynb"):
                with _reading(file, problems):
                    found.append(_notebook(claim, file))
            elif PurePosixPath(file.name).name in MODULES:
                trees.setdefault(PurePosixPath(file.name).parent.as_posix(), []).append(file)
            else:
                problems.append(f"{file.name} is neither a notebook nor a zip nor a module that is graded")
        for files in trees.values():
            with _reading(files[0], problems):
                found.append(_tree(claim, files, problems))
    except Unreadable as error:
        problems.append(str(error))
    except (OSError, RecursionError, MemoryError) as error:
        problems.append(f"{claim.path.name} can't be read ({type(error).__name__}); check that it opens and hand it in anew")
    return found


def choose(documents: Iterable[Document], chapter: str) -> Choice:
    """Choose what counts for a chapter: the newest notebook that holds work, else the newest modules that do."""
    every = [each for each in documents if chapter in each.chapters]
    own = [each for each in every if each.chapters[0] == chapter or not each.text] or every
    claims = {each.claim.path: each.claim for each in own}
    newest = max((claim.order for claim in claims.values()), default=None)
    rivals = sorted(str(path) for path, claim in claims.items() if claim.order == newest and not claim.account)
    if len(rivals) > 1:
        return Choice(refusal=two_claims(rivals))
    if not own:
        return Choice()
    written = [each for each in own if each.parts_written(chapter)] or [each for each in every if each.parts_written(chapter)]
    best = _newest(written or own, chapter)
    if best.claim.alone and (folders := _side_by_side(written)):
        return Choice(
            refusal=f"{best.claim.path.name} holds work for {chapter} in several folders side by side ({', '.join(folders)}). "
            "Expected one student's work. Grade a whole class's zip unpacked, a folder for each student"
        )
    notes = [f"left aside: {each.name} ({_why(each, best, chapter)})" for each in every if each is not best]
    named = chapter_in(PurePosixPath(best.name).name)
    if best.text and named not in ("", chapter):
        notes.append(f"{best.name} holds work for {chapter} and not for {named}, and is graded as that")
    return Choice(best, notes)


def two_claims(places: Sequence[str]) -> str:
    """Say that two hand-ins name the same student."""
    return (
        f"two hand-ins name this student: {places[0]} and {places[1]}; neither was graded. Find out whose they are, and "
        "leave one, or rename one"
    )


def _side_by_side(documents: list[Document]) -> list[str]:
    """Return the folders of a zip where they may be those of many students; none where a time makes them attempts."""
    places = [PurePosixPath(each.name) for each in documents if each.claim.path.suffix.lower() == ".zip"]
    folders = sorted({place.parent for place in places})
    one_home = len(folders) > 1 and len({folder.parent for folder in folders}) == 1 and len(folders[0].parts) > 1
    return [folder.name for folder in folders[:3]] if one_home and not any(map(TIME.search, map(str, folders))) else []


def _newest(documents: list[Document], chapter: str) -> Document:
    documents = [each for each in documents if each.text] or documents
    last = max(each.claim.order for each in documents)
    documents = [each for each in documents if each.claim.order == last]
    now = max(each.changed for each in documents)
    documents = [each for each in documents if now - each.changed <= SAME_MOMENT_S]

    def rank(each: Document) -> tuple[int, int, int, str]:
        return (-each.parts_written(chapter), -each.number, each.name.count("/"), each.name)

    return min(documents, key=rank)


def _why(document: Document, best: Document, chapter: str) -> str:
    if not document.parts_written(chapter):
        return "nothing is written in it"
    if not document.text and best.text:
        return "modules; the notebook counts"
    if document.chapters[0] != best.chapters[0] and document.text:
        return f"its own chapter is {document.chapters[0]}"
    return f"{best.name} is newer"


def _notebook(claim: Claim, file: File) -> Document:
    text = decoded(file.content)
    cells = read_cells(text)
    work = work_of_notebook(cells)
    chapters = chapters_of(cells, work, chapter_in(PurePosixPath(file.name).name))
    return Document(claim, _name(claim, file.name), _changed(file), work, chapters, text)


def _tree(claim: Claim, files: list[File], problems: list[str]) -> Document:
    texts = {MODULES[PurePosixPath(file.name).name]: decoded(file.content) for file in files}
    work = work_of_modules({module: texts[module] for module in MODULES.values() if module in texts})
    held = {BY_ID[part_id].chapter for part_id in (*work.pieces, *work.problems, *work.broken)}
    for module, text in texts.items():
        error = syntax_error_of(text)
        if error is not None and parts_of_module(module)[0].chapter not in held:
            problems.append(f"{module} has a {syntax_words(error)}")
    folder = PurePosixPath(files[0].name).parent.as_posix()
    chapters = [chapter for chapter in CHAPTERS if chapter in held]
    return Document(claim, _name(claim, folder), max(map(_changed, files)), work, chapters)


def _name(claim: Claim, inner: str) -> str:
    return claim.path.name if inner in (claim.path.name, ".") else f"{claim.path.name}/{inner}"


def _changed(file: File) -> float:
    """Return when a file was last changed: the time in its name or a folder's wins, since copying doesn't change it."""
    for name in reversed(PurePosixPath(file.name).parts):
        with suppress(Unreadable):  # a student may call a folder anything
            if found := time_in(name):
                return found[0].timestamp()
    return file.changed


@contextmanager
def _reading(file: File, problems: list[str]) -> Iterator[None]:
    """Note why a file can't be read, so that it spoils nothing beside it."""
    try:
        yield
    except NotANotebook as error:
        problems.append(f"{PurePosixPath(file.name).name} {error}")
    except (RecursionError, MemoryError) as error:
        problems.append(f"{PurePosixPath(file.name).name} can't be read ({type(error).__name__}); hand it in anew")


def whole_package(documents: list[Document], chapter: str, work: Work) -> Work:
    """Return the work on a chapter; of one that is graded on the whole package, with what counts for the other chapters."""
    if not is_whole_package(chapter):
        return work
    whole = Work()
    for other in CHAPTERS:
        chosen = choose(documents, other).document if other != chapter else None
        if chosen is not None:
            whole.update(chosen.work.only(part.id for part in parts_of_chapter(other)))
    whole.update(work)
    return whole
