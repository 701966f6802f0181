"""Run damaged checkpoints through the loader and judge what comes out.

Allowed are: one of our own exceptions, or exactly the weights that the undamaged files hold (as far as the damaged headers
still describe the same bytes). Not allowed: any other exception, a hang, or tensors that the files don't hold.
"""

import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import torch
from safetensors import SafetensorError, safe_open

from minisgl.checkpoint.maker import make_checkpoint
from minisgl.errors import MinisglError
from minisgl.models import load_weight
from tests.fuzz.mutate import damage

LIMIT_S = 20
_SIZES = {
    "num_hidden_layers": 1,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 11,
    "rms_norm_eps": 1e-6,
    "hidden_act": "silu",
    "max_position_embeddings": 64,
    "rope_theta": 10000.0,
}
MODELS = {
    "qwen3": {**_SIZES, "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "head_dim": 8},
    "moe": {
        **_SIZES,
        "architectures": ["Qwen3MoeForCausalLM"],
        "model_type": "qwen3_moe",
        "head_dim": 8,
        "num_experts": 2,
        "num_experts_per_tok": 1,
        "moe_intermediate_size": 8,
        "rope_scaling": {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 32},
    },
}


class Hang(BaseException):
    """Say that a load took too long."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise ``Hang`` in the main thread if the block computes for longer, or takes ten times as long by the clock.

    A busy machine makes a load take long, not compute long; only one that waits for something is caught by the clock.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        raise Hang(f"still loading after {seconds} s")

    timers = ((signal.SIGPROF, signal.ITIMER_PROF, seconds), (signal.SIGALRM, signal.ITIMER_REAL, 10 * seconds))
    before = {number: signal.signal(number, stop) for number, _, _ in timers}
    for _, timer, limit in timers:
        signal.setitimer(timer, limit)
    try:
        yield
    finally:
        for number, timer, _ in timers:
            signal.setitimer(timer, 0)
            signal.signal(number, before[number])


def make_models(folder: Path) -> list[Path]:
    """Write the sound checkpoints that get damaged: in one file and in two with an index."""
    made = []
    for name, config in MODELS.items():
        made.append(make_checkpoint(folder / f"{name}-one", config, data="random"))
        made.append(make_checkpoint(folder / f"{name}-two", config, data="random", files=2, layout="torn"))
    return made


def run_case(seed: int, number: int, sound: Path) -> str:
    """Damage a copy of a checkpoint, load it, and return ``refused`` or ``loaded``.

    Raises:
        AssertionError: Something that isn't allowed came out; the message says which case it was.
    """
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "damaged"
        shutil.copytree(sound, folder)
        case = f"seed {seed}, case {number} ({damage(seed, number, folder)}) of {sound.name}"
        weights = {}
        try:
            with time_limit(LIMIT_S):
                for name, tensor in load_weight(folder, "cpu", progress=False):
                    weights[name] = tensor
        except MinisglError as error:
            assert len(str(error)) < 20_000, f"{case}: a message of {len(str(error))} characters"
            return "refused"
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            raise AssertionError(f"{case}: {type(error).__name__}: {str(error)[:300]}") from error
        assert_held_by_the_files(case, folder, weights)
        return "loaded"


def assert_held_by_the_files(case: str, folder: Path, weights: dict[str, torch.Tensor]) -> None:
    """Check the loaded weights against what the safetensors library reads from the same damaged files."""
    stored: dict[str, torch.Tensor] = {}
    for file in sorted(folder.glob("*.safetensors")):
        try:
            with safe_open(file, "pt") as opened:
                stored |= {key: opened.get_tensor(key) for key in opened.keys()}  # noqa: SIM118 - not a dict
        except SafetensorError as error:
            raise AssertionError(f"{case}: loaded, but safetensors refuses {file.name}: {error}") from error
    rows = {
        tuple(row.view(torch.uint8).tolist())
        for tensor in stored.values()
        for row in tensor.reshape(-1, tensor.shape[-1])
    }
    for name, tensor in weights.items():
        for row in tensor.reshape(-1, tensor.shape[-1]):
            assert tuple(row.view(torch.uint8).tolist()) in rows, f"{case}: {name} has a row that no file holds"


def run(seed: int, num_cases: int, folder: Path) -> Counter[str]:
    """Run many cases over checkpoints made in a folder; return how many were refused and loaded."""
    sound = make_models(folder)
    return Counter(run_case(seed, number, sound[number % len(sound)]) for number in range(num_cases))
