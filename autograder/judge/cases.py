"""The cases of a check: those that students see, and an instructor's hidden ones, which reach a run as an argument."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest

NUM_HIDDEN = 3
_Draw = Callable[[random.Random], Mapping[str, Any]]


class Case(Mapping[str, Any]):
    """One set of values for a check.

    Attributes:
        name: what the case is called in a test's id.
        origin: where a hidden case comes from, for the instructor; empty for one that students see.
    """

    def __init__(self, name: str, values: Mapping[str, Any], origin: str = "") -> None:
        self.name = name
        self.origin = origin
        self._values = dict(values)

    @property
    def hidden(self) -> bool:
        """Whether no student may see it."""
        return bool(self.origin)

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Case({self.name!r})"


class Source(random.Random):
    """What a check's ``draw`` draws from: the numbers are the seed's, the kinds of cases are the same for any seed.

    ``randint``, ``randrange`` and ``choices`` give numbers and letters that only the instructor's seed tells. ``choice``,
    ``sample`` and ``random`` decide the kind of case (a family, a number of ranks, a switch): if the seed decided these
    too, a mistake that shows in one kind only would cost much with one seed and nothing with the next.
    """

    def __init__(self, seed: str, name: str, number: int) -> None:
        super().__init__(_number_of(f"{seed}/{name}/{number}"))
        self._kinds = random.Random(_number_of(f"{name}/{number}"))

    getrandbits = random.Random.getrandbits  # randint and randrange draw from it, whatever random() is

    def random(self) -> float:
        """Return a number in [0, 1) that is the same for any seed."""
        return self._kinds.random() if hasattr(self, "_kinds") else super().random()

    def choice(self, seq: Any) -> Any:
        """Return one of the kinds, the same one for any seed."""
        return self._kinds.choice(seq)

    def sample(self, population: Sequence[Any], k: int, **options: Any) -> list[Any]:
        """Return some of the kinds, the same ones for any seed."""
        return self._kinds.sample(population, k, **options)

    def choices(self, population: Sequence[Any], *, k: int = 1, **_: Any) -> list[Any]:  # type: ignore[override]
        """Return values that only the seed tells."""
        return [population[self.randrange(len(population))] for _ in range(k)]


def _number_of(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest(), "big")


class Cases(Sequence[Any]):
    """The cases of one check, as ``pytest.mark.parametrize`` takes them: the visible ones, until hidden ones come in."""

    def __init__(self, name: str, visible: Sequence[Mapping[str, Any]], draw: _Draw | None, num_hidden: int) -> None:
        self.name = name
        self.draw = draw
        self.num_hidden = num_hidden
        self.visible = [
            Case(str(values.get("id", f"case-{number}")), values) for number, values in enumerate(visible, 1)
        ]

    def __getitem__(self, index: Any) -> Any:
        return _parameters(self.visible)[index]

    def __len__(self) -> int:
        return len(self.visible)

    def drawn(self, seed: str) -> list[Mapping[str, Any]]:
        """Return the values of the cases that a seed gives."""
        return [self.draw(Source(seed, self.name, number)) for number in range(self.num_hidden)] if self.draw else []

    def with_hidden(self, hidden: HiddenCases) -> list[Any]:
        """Return pytest parameters: the visible cases, then the hidden ones."""
        return _parameters([*self.visible, *hidden.of(self)])


def _parameters(found: Sequence[Case]) -> list[Any]:
    return [pytest.param(case, id=case.name) for case in found]


def cases(
    name: str,
    *,
    visible: Sequence[Mapping[str, Any]] = (),
    draw: _Draw | None = None,
    num_hidden: int = NUM_HIDDEN,
) -> Cases:
    """Return the parameters of a check: the visible cases and, in an instructor's run, the hidden ones.

    Args:
        name: the cases' name; it enters the seed, and names them in the instructor's files.
        visible: values of each case that students may see.
        draw: makes one more case from a ``Source``; its expectation too.
        num_hidden: how many are drawn.
    """
    return Cases(name, visible, draw, num_hidden)


class HiddenCases:
    """An instructor's hidden cases: drawn from the seed, and listed in JSON files.

    Args:
        files: the text of each file of the instructor's folder, by name.

    Attributes:
        shown: whether messages may tell of them: only where the reference is judged, for the instructor.
    """

    def __init__(self, files: Mapping[str, str]) -> None:
        self.shown = False
        self.seed = files.get("seed", "").strip()
        self.listed = {name: json.loads(text) for name, text in sorted(files.items()) if name.endswith(".json")}
        self._made: dict[str, list[Case]] = {}

    def of(self, check: Cases) -> list[Case]:
        """Return a check's hidden cases; the same objects each time."""
        if check.name not in self._made:
            found = [(values, f"drawn case {number}") for number, values in enumerate(check.drawn(self.seed), 1)]
            for file, lists in self.listed.items():
                found += [
                    (values, f"{file}, case {number}") for number, values in enumerate(lists.get(check.name, []), 1)
                ]
            self._made[check.name] = [
                Case(f"hidden-{number}", values, origin) for number, (values, origin) in enumerate(found, 1)
            ]
        return self._made[check.name]
