"""Read what students hand in: notebooks, folders, zip files, bare module trees. Only as text; nothing is run.

One reader for ``grade``, nbgrader's commands and collecting: an entry's name tells whose it is (``claims``), all in it is
that student's, and of several notebooks for a chapter the newest that holds work counts (``documents``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from autograder.classroom.claims import Claim, chapter_in, claims_of
from autograder.classroom.documents import Document, choose, documents_of, two_claims, whole_package
from autograder.parts import CHAPTERS
from autograder.text.work import Work
from autograder.worker.outcome import clean

MAX_NOTES = 8


@dataclass
class Submission:
    """One student's work for one chapter.

    Attributes:
        student: the student's name, from the path.
        chapter: the chapter's id; empty where it can't be told.
        work: the parts.
        refusal: why it can't be graded; empty when it can.
        notes: what was left aside, and what else was noticed.

    Name, chapter, refusal and notes are made lines of text that can be shown and stored.
    """

    student: str
    chapter: str
    work: Work = field(default_factory=Work)
    refusal: str = ""
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.student, self.chapter = _line(self.student, 100), _line(self.chapter, 100)
        self.refusal = _line(self.refusal, 400)
        more = [f"and {len(self.notes) - MAX_NOTES} more"] * (len(self.notes) > MAX_NOTES)
        self.notes = [_line(note, 300) for note in self.notes[:MAX_NOTES]] + more


def _line(text: str, most: int) -> str:
    return clean(text, most).replace("\n", " ").replace("\t", " ")


class HandIns:
    """All that one student handed in, read.

    Args:
        claims: the entries that are the student's.
    """

    def __init__(self, claims: list[Claim]) -> None:
        self.student = claims[0].student
        self.problems: list[str] = []
        self.documents = [each for claim in claims for each in documents_of(claim, self.problems)]
        self._home = chapter_in(claims[0].path.parent.name)
        accounts = {claim.account: str(claim.path) for claim in claims}
        self._refusal = next((claim.problem for claim in claims if claim.problem), "")
        if len(accounts) > 1:
            self._refusal = self._refusal or two_claims(sorted(accounts.values()))

    def chapters(self) -> list[str]:
        """Return the chapters that were handed in; those of modules only where there is no notebook."""
        counting = [each for each in self.documents if each.text] or self.documents
        held = {each for document in counting for each in document.chapters}
        return [each for each in CHAPTERS if each in held | {chapter_in(problem) for problem in self.problems}]

    def submissions(self, chapter: str | None = None) -> list[Submission]:
        """Return the submission for a chapter, or for each; a refused one where there is none."""
        wanted = [chapter] if chapter else self.chapters()
        reason = "".join(self.problems[:1]) or "no cell headed by %%module and no graded module was found in it"
        nothing = Submission(self.student, self._home, refusal=self._refusal or reason)
        return [self.chosen(each)[0] for each in wanted] or [nothing]

    def chosen(self, chapter: str) -> tuple[Submission, Document | None]:
        """Return the submission for a chapter, and the notebook or the modules that count, if any do."""
        choice = choose(self.documents, chapter)
        refusal = self._refusal or choice.refusal
        if choice.document is not None and not refusal:
            work = whole_package(self.documents, chapter, choice.document.work)
            aside = [f"left aside: {problem}" for problem in self.problems]
            return Submission(self.student, chapter, work, "", [*choice.notes, *aside, *work.notes]), choice.document
        named = [problem for problem in self.problems if chapter in problem] or self.problems
        refusal, others = refusal or "".join(named[:1]), ", ".join(self.chapters())
        notes = [f"nothing in it is of {chapter}; it holds {others}"] if others and not refusal else []
        return Submission(self.student, chapter, Work(), refusal, notes), None


def find(paths: list[Path], chapter: str | None = None) -> list[Submission]:
    """Read all submissions below the given paths, sorted by student and chapter; no two are of one student and chapter.

    Args:
        paths: a class's folder with an entry for each student or attempt, or one student's folder, zip or notebook.
        chapter: grade only this chapter; otherwise those that a submission has parts of.

    Raises:
        ValueError: a folder holds chapters, and each of them a class.
    """
    found = [each for claims in claims_of(paths).values() for each in HandIns(claims).submissions(chapter)]
    return sorted(found, key=lambda each: (each.student, each.chapter))
