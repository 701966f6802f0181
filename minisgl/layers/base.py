"""What every layer is: an object with parameters, children, and a strict way to fill them.

Not `torch.nn.Module`: inference needs neither gradients, hooks nor buffers, and the few lines below can be read whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from minisgl.errors import MinisglError


class BaseOP:
    """Hold parameters (attributes that are tensors) and children (attributes that are BaseOP).

    An attribute whose name starts with an underscore is neither: rotary tables, a tied embedding, another layer that
    is only borrowed. An attribute that is None (an absent bias) has no key.
    """

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the layer's output."""
        raise NotImplementedError(f"{type(self).__name__} has no forward()")

    def state_dict(self, prefix: str = "") -> dict[str, torch.Tensor]:
        """Return every parameter below this object by its full key, in the order of definition.

        Args:
            prefix: key of this object itself; "" at the root.

        Returns:
            The parameters themselves, not copies.
        """
        result: dict[str, torch.Tensor] = {}
        for key, owner, name in self._slots(prefix):
            result[key] = getattr(owner, name)
        return result

    def load_state_dict(self, state_dict: Mapping[str, torch.Tensor]) -> None:
        """Put the given tensors in the place of the parameters, if and only if they are exactly those expected.

        The tensors are assigned, not copied: afterwards the model and the caller share them.

        Args:
            state_dict: every key of `state_dict()`, each with the same shape and dtype. Keys that the model takes
                from elsewhere (`lm_head.weight` of tied embeddings) may be there and are dropped.

        Raises:
            MinisglError: a key is missing or unexpected, a value isn't a tensor, a shape or dtype differs. All of them
                are reported at once, and the model stays as it was.
        """
        slots = {key: (owner, name) for key, owner, name in self._slots("")}
        expected = {key: getattr(owner, name) for key, (owner, name) in slots.items()}
        problems = _compare(expected, state_dict, dropped=self._dropped_keys(""))
        if problems:
            raise MinisglError(_refusal(type(self).__name__, problems))
        for key, (owner, name) in slots.items():
            setattr(owner, name, state_dict[key])

    def _slots(self, prefix: str) -> Iterator[tuple[str, BaseOP, str]]:
        """Walk the parameters below this object: (full key, owner, attribute name)."""
        for name, value in self._members():
            if isinstance(value, torch.Tensor):
                yield _join(prefix, name), self, name
            elif isinstance(value, BaseOP):
                yield from value._slots(_join(prefix, name))

    def _dropped_keys(self, prefix: str) -> set[str]:
        """Return the keys below this object that a checkpoint may store though no parameter takes them."""
        children = ((name, value) for name, value in self._members() if isinstance(value, BaseOP))
        return {key for name, child in children for key in child._dropped_keys(_join(prefix, name))}

    def _members(self) -> Iterator[tuple[str, Any]]:
        return ((name, value) for name, value in vars(self).items() if not name.startswith("_"))


class OPList(BaseOP):
    """Hold layers in order; their keys are their numbers, as in `layers.0.mlp…`."""

    def __init__(self, ops: Sequence[BaseOP]) -> None:
        """Keep `ops` under `.op_list`."""
        self.op_list = list(ops)

    def _members(self) -> Iterator[tuple[str, Any]]:
        return ((str(index), op) for index, op in enumerate(self.op_list))


def _join(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name


_KINDS = ("missing", "unexpected", "not a tensor", "wrong shape", "wrong dtype")


def _compare(
    expected: Mapping[str, torch.Tensor], found: Mapping[str, torch.Tensor], dropped: set[str]
) -> list[tuple[str, str, str]]:
    """List every difference as (kind, key, what was expected and found), in the order of kinds, then of keys."""
    problems = []
    for key, want in expected.items():
        shape = f"expected {tuple(want.shape)} {_name(want.dtype)}"
        if key not in found:
            problems.append(("missing", key, shape))
            continue
        have = found[key]
        if not isinstance(have, torch.Tensor):
            problems.append(("not a tensor", key, f"{shape}, found {type(have).__name__}"))
            continue
        if have.shape != want.shape:
            problems.append(("wrong shape", key, f"expected {tuple(want.shape)}, found {tuple(have.shape)}"))
        if have.dtype != want.dtype:
            problems.append(("wrong dtype", key, f"expected {_name(want.dtype)}, found {_name(have.dtype)}"))
    for key in set(found) - set(expected) - dropped:
        have = found[key]
        what = f"{tuple(have.shape)} {_name(have.dtype)}" if isinstance(have, torch.Tensor) else type(have).__name__
        problems.append(("unexpected", key, f"found {what}"))
    return sorted(problems, key=lambda problem: (_KINDS.index(problem[0]), problem[1]))


def _refusal(model: str, problems: list[tuple[str, str, str]]) -> str:
    kinds = [kind for kind, _, _ in problems]
    counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in _KINDS if kind in kinds)
    kind_width = max(len(kind) for kind in kinds)
    key_width = max(len(key) for _, key, _ in problems)
    rows = [f"  {kind:<{kind_width}}  {key:<{key_width}}  {detail}" for kind, key, detail in problems]
    advice = (
        "Nothing was loaded. Expected exactly the keys, shapes and dtypes of model.state_dict(): "
        "check that weights and config.json belong together, and the dtype that the model was built with."
    )
    return "\n".join([f"{model} can't take these weights: {counts}.", *rows, advice])


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
