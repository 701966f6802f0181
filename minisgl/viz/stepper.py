"""The merge stepper's model: two ways to get from a checkpoint's tensors to a model's parameters, step by step.

*File order* reads tensors as they come and keeps the parts of a merged parameter in a buffer until the last one is
there; then it concatenates them. *By parameter* knows from the headers where everything lies: it allocates one
parameter, reads its parts into place, and hands it out before it starts the next. Bytes are this rank's.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from minisgl.checkpoint.maker import stored_shapes
from minisgl.errors import MinisglError
from minisgl.viz.configs import DTYPE_BYTES, sizes_of
from minisgl.viz.drawing import mib
from minisgl.viz.known import SMALL, Config
from minisgl.viz.layout import Sharding, kind_of_group, param_of, parameters_of
from minisgl.viz.stepper_picture import draw_stepper

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from minisgl.viz.drawing import Picture

FILE_ORDER, BY_PARAMETER = "file order", "by parameter"
ALGORITHMS = (FILE_ORDER, BY_PARAMETER)
ORDERS = ("as saved", "files shuffled", "groups torn apart")


@dataclass(frozen=True)
class Step:
    """Say what one algorithm does in one step, which is one tensor read.

    Attributes:
        key: The stored tensor that is read.
        param: The parameter that it is part of.
        action: What happens, in words.
        assembling: Unfinished parameters after the step -> the keys that are there.
        yielded: Parameters handed out in this step.
        held_bytes: What the loader itself holds after the step; what it has handed out doesn't count.
        peak_bytes: The most that it held during the step.
    """

    key: str
    param: str
    action: str
    assembling: Mapping[str, tuple[str, ...]]
    yielded: tuple[str, ...]
    held_bytes: int
    peak_bytes: int


class StepperModel:
    """Step through a checkpoint's tensors with both algorithms.

    Args:
        config: A name of ``choices`` or a config.json's fields.
        order: One of ``ORDERS``.
        num_files: Over how many files the tensors are spread.
        tp_size: Ranks; the bytes are those of rank 0.
        seed: Of the shuffled order.

    Attributes:
        position: Steps done so far, 0 to ``num_steps``.
    """

    choices = tuple(SMALL)

    def __init__(
        self, config: str | Config = "Qwen3, 2 layers", *, order: str = ORDERS[0], num_files: int = 4, tp_size: int = 1,
        seed: int = 0,
    ) -> None:  # fmt: skip
        if order not in ORDERS:
            raise MinisglError(f"order is {order!r}. Expected one of {', '.join(ORDERS)}. Choose one of these.")
        self.config = SMALL[config] if isinstance(config, str) else config
        self.order, self.num_files, self.seed = order, num_files, seed
        self.shapes = stored_shapes(self.config)
        self.sharding = Sharding(self.config, tp_size)
        self.item_bytes = DTYPE_BYTES[sizes_of(self.config).dtype]
        self.files = self._spread()
        self.position = 0

    def _spread(self) -> list[list[str]]:
        """Deal the keys out to files, and put the files in the order in which they are read."""
        keys, rng = list(self.shapes), random.Random(self.seed)
        if self.order == "groups torn apart":  # the parts of a group as far from each other as can be
            keys.sort(key=lambda key: param_of(key)[1][::-1])
        num_files = min(self.num_files, len(keys))
        ends = [len(keys) * index // num_files for index in range(num_files + 1)]
        files = [keys[start:end] for start, end in pairwise(ends)]
        if self.order == "files shuffled":
            rng.shuffle(files)
            for in_file in files:
                rng.shuffle(in_file)
        return files

    @property
    def keys(self) -> list[str]:
        """All keys, in file order."""
        return [key for in_file in self.files for key in in_file]

    @property
    def num_steps(self) -> int:
        """How many tensors there are to read, which is the same for both algorithms."""
        return len(self.shapes)

    @cached_property
    def groups(self) -> dict[str, list[str]]:
        """Parameter -> its parts in row order."""
        return parameters_of(self.keys)

    def local_bytes(self, key: str) -> int:
        """Size of this rank's part of a stored tensor."""
        return self.sharding.local_size(key, self.shapes[key]) * self.item_bytes

    @cached_property
    def steps(self) -> dict[str, list[Step]]:
        """Every step of each algorithm."""
        return {FILE_ORDER: list(self._file_order()), BY_PARAMETER: list(self._by_parameter())}

    def _file_order(self) -> Iterator[Step]:
        buffers: dict[str, list[str]] = {}
        held = 0
        for key in self.keys:
            param, size = param_of(key)[0], self.local_bytes(key)
            parts = self.groups[param]
            if len(parts) == 1:
                yield Step(
                    key, param, "read, nothing to merge, hand out", _frozen(buffers), (param,), held, held + size
                )
                continue
            buffers.setdefault(param, []).append(key)
            held += size
            if len(buffers[param]) < len(parts):
                missing = len(parts) - len(buffers[param])
                yield Step(
                    key, param, f"read into the buffer, {missing} more to come", _frozen(buffers), (), held, held
                )
                continue
            whole = sum(self.local_bytes(part) for part in parts)
            peak = held + whole  # the concatenated copy beside its parts
            held -= whole
            del buffers[param]
            verb = "pack" if kind_of_group(param, parts) == "pack" else "merge"
            yield Step(
                key, param, f"read the last part, {verb} by copying, hand out", _frozen(buffers), (param,), held, peak
            )

    def _by_parameter(self) -> Iterator[Step]:
        for param, parts in self.groups.items():
            whole = sum(self.local_bytes(part) for part in parts)
            for count, key in enumerate(parts, 1):
                if count < len(parts):
                    action = (
                        "allocate the parameter, read the first part into place" if count == 1 else "read into place"
                    )
                    yield Step(key, param, action, {param: tuple(parts[:count])}, (), whole, whole)
                else:
                    action = "allocate, read, hand out" if count == 1 else "read the last part into place, hand out"
                    yield Step(key, param, action, {}, (param,), 0, whole)

    def peak_bytes(self, algorithm: str) -> int:
        """The most that an algorithm holds beyond what it has handed out."""
        return self._peaks[algorithm]

    @cached_property
    def _peaks(self) -> dict[str, int]:
        return {name: max(step.peak_bytes for step in steps) for name, steps in self.steps.items()}

    def held_bytes(self, algorithm: str) -> int:
        """What an algorithm holds at ``position``."""
        return self.steps[algorithm][self.position - 1].held_bytes if self.position else 0

    def yielded(self, algorithm: str) -> list[str]:
        """Parameters handed out so far."""
        return [name for step in self.steps[algorithm][: self.position] for name in step.yielded]

    def results(self, algorithm: str) -> dict[str, tuple[str, ...]]:
        """Give what comes out at the end: parameter -> its parts in row order."""
        return {name: tuple(self.groups[name]) for step in self.steps[algorithm] for name in step.yielded}

    def same_results(self) -> bool:
        """Tell whether both algorithms give the parameters that the unshuffled files give."""
        return self._same_results

    @cached_property
    def _same_results(self) -> bool:
        expected = {name: tuple(parts) for name, parts in parameters_of(self.shapes).items()}
        return all(self.results(algorithm) == expected for algorithm in ALGORITHMS)

    def go_to(self, position: int) -> None:
        """Move to after ``position`` steps, or to the nearest end."""
        self.position = max(0, min(position, self.num_steps))

    def summary(self) -> str:
        """Say in one line what the two cost so far and at worst."""
        figures = "; ".join(
            f"{name}: holds {mib(self.held_bytes(name))}, at most {mib(self.peak_bytes(name))}" for name in ALGORITHMS
        )
        same = "the same parameters come out" if self.same_results() else "THE RESULTS DIFFER"
        return f"step {self.position} of {self.num_steps}. {figures}. {len(self.groups)} parameters; {same}"

    def describe(self) -> str:
        """Say in words what the picture shows."""
        lines = [f"Merge stepper, {len(self.files)} files, {self.order}: {self.summary()}."]
        for name in ALGORITHMS:
            if self.position:
                step = self.steps[name][self.position - 1]
                lines.append(f"{name}: {step.key} -> {step.param}: {step.action}.")
                for param, there in step.assembling.items():
                    lines.append(f"  assembling {param}: {len(there)} of {len(self.groups[param])} parts")
            lines.append(f"  handed out: {len(self.yielded(name))} of {len(self.groups)} parameters")
        return "\n".join(lines)

    def picture(self) -> Picture:
        """Draw both algorithms at ``position``."""
        return draw_stepper(self)

    def static(self) -> Figure:
        """Give the picture as a matplotlib figure."""
        return self.picture().to_figure()


def _frozen(buffers: dict[str, list[str]]) -> dict[str, tuple[str, ...]]:
    return {name: tuple(keys) for name, keys in buffers.items()}
