"""Rows of graded submissions, kept on disk: a class of any size takes the memory of one row at a time."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, overload

# What every row has.
FIELDS: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("student", "chapter", "status", "message"), str),
    **dict.fromkeys(("points", "max_points"), (int, float)),
    **dict.fromkeys(("parts", "feedback"), list),
}


class RowLog:
    """A file with a line for each finished submission; in memory is only where each line begins.

    A line is on disk before ``add`` returns, so that a run that is killed loses at most the submissions it had in hand.
    Inside ``with``, no other run can write the file; rows can be read afterwards, too.

    Args:
        path: the file; what an earlier run finished is in it already. A line that a kill cut short is taken out.

    Raises:
        ValueError: on entering, another run has the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._starts: dict[str, int] = {}

    def __enter__(self) -> RowLog:
        self._file = self._path.open("a+b")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise ValueError(
                f"another run of grade writes into {self._path.parent}; wait until it has ended, or give another --out"
            ) from None
        self._starts.update(self._read())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def _read(self) -> Iterator[tuple[str, int]]:
        start = 0
        self._file.seek(start)
        for line in self._file:
            if not line.endswith(b"\n"):
                self._file.truncate(start)
                return
            key = _key_of(line)
            if key:
                yield key, start
            start += len(line)

    def __contains__(self, key: str) -> bool:
        return key in self._starts

    def __getitem__(self, key: str) -> dict[str, Any]:
        """Read a row from the disk."""
        with self._path.open("rb") as file:
            file.seek(self._starts[key])
            row: dict[str, Any] = json.loads(file.readline())["row"]
        return row

    def add(self, key: str, row: dict[str, Any]) -> None:
        """Append a row; inside ``with`` only."""
        start = self._file.seek(0, os.SEEK_END)
        self._file.write((json.dumps({"key": key, "row": row}) + "\n").encode())
        self._file.flush()
        os.fsync(self._file.fileno())
        self._starts[key] = start


class Rows(Sequence[dict[str, Any]]):
    """A report's rows by student and chapter; each is read anew whenever it is asked for.

    Args:
        log: the rows of what was graded.
        keys: which of them belong to this report.
        refused: the rows of what couldn't be graded.
    """

    def __init__(self, log: RowLog, keys: Sequence[str], refused: Sequence[dict[str, Any]]) -> None:
        self._log = log
        places: list[tuple[tuple[str, ...], str | dict[str, Any]]] = [(_order(log[key]), key) for key in keys]
        places += [(_order(row), row) for row in refused]
        self._places = [place for _, place in sorted(places, key=lambda each: each[0])]

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...

    @overload
    def __getitem__(self, index: slice) -> list[dict[str, Any]]: ...

    def __getitem__(self, index: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        if isinstance(index, slice):
            return [self._row(place) for place in self._places[index]]
        return self._row(self._places[index])

    def _row(self, place: str | dict[str, Any]) -> dict[str, Any]:
        return self._log[place] if isinstance(place, str) else place


def _key_of(line: bytes) -> str:
    """Return the key of a line's row; empty where it isn't a row as ``add`` writes it: that submission is graded again."""
    try:
        record = json.loads(line)
        key, row = record["key"], record["row"]
        is_row = isinstance(key, str) and all(isinstance(row[name], kinds) for name, kinds in FIELDS.items())
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    return key if is_row else ""


def _order(row: dict[str, Any]) -> tuple[str, ...]:
    return (row["student"], row["chapter"], row["status"], row["message"])
