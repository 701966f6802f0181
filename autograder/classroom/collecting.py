"""What ``nbgrader zip_collect`` takes of a learning platform's download: for each student the hand-in that counts.

nbgrader's own collector reads a time as 2030-01-07-11-30-00 as 11:00, and one with 12-59-59 ends the command.
"""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from typing import Any

from nbgrader.plugins import FileNameCollectorPlugin
from traitlets import Unicode

from autograder.classroom.claims import claims_of, time_in
from autograder.classroom.submissions import HandIns
from autograder.classroom.submitted_files import Unreadable


class CollectWhatCounts(FileNameCollectorPlugin):
    """Collect each student's newest hand-in that holds work, read as ``grade`` reads it; or by a pattern, if one is set."""

    timezone = Unicode("UTC", help="The time zone of the times in file names, as in Europe/Berlin.").tag(config=True)

    def collect(self, submitted_file: str) -> dict[str, str] | None:
        """Return whose a file is, for which notebook, and when it was handed in; None for a file that doesn't count."""
        if self.named_regexp:
            return self._by_pattern(submitted_file)
        if not hasattr(self, "_found"):
            self._found = self._read()
        return self._found.get(os.path.realpath(submitted_file))

    def _read(self) -> dict[str, dict[str, str]]:
        """Return what each file that counts is."""
        app: Any = self.parent
        chapter = app.coursedir.assignment_id
        archive, home = (Path(app._format_collect_path(step)) for step in (app.archive_directory, app.extracted_directory))
        packed = [each for each in archive.iterdir() if not each.name.startswith(".")] if archive.is_dir() else []
        if len(packed) == 1 and packed[0].suffix == ".zip":  # nbgrader unpacked the class's zip into a folder of that name
            home = home / packed[0].stem
        found = {}
        for claims in claims_of([home]).values():
            submission, document = HandIns(claims).chosen(chapter)
            for told in filter(None, [submission.refusal, *submission.notes]):
                self.log.warning("%s: %s", submission.student, told)
            if document is not None and document.text:
                path = os.path.realpath(document.claim.path.parent / document.name)
                time = document.claim.time
                found[path] = {"student_id": submission.student, "file_id": chapter, **self._stamp(time)}
            elif not submission.refusal:
                self.log.error("%s handed in no notebook for %s; nbgrader collects nothing else", submission.student, chapter)
        return found

    def _stamp(self, time: datetime | None) -> dict[str, str]:
        return {"timestamp": f"{time:%Y-%m-%d %H:%M:%S} {self.timezone}"} if time else {}

    def _by_pattern(self, submitted_file: str) -> dict[str, str] | None:
        """Collect by the instructor's pattern, and read its ``timestamp`` to the second or refuse the file."""
        found = super().collect(submitted_file)
        if not found or not found.get("timestamp"):
            return found
        try:
            read = time_in(found["timestamp"])
        except Unreadable:
            read = None
        if read is None or read[2] - read[1] != len(found["timestamp"]):
            self.log.error(
                "%s was not collected: %r isn't a time that can be read. Expected one like 2030-01-07-11-30-00. Rename the "
                "file, or mend the pattern",
                submitted_file,
                found["timestamp"],
            )
            return None
        return {**found, **self._stamp(read[0])}
