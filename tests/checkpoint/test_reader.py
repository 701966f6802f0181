"""Plans become parameters, on the CPU and through the threads of the CUDA reader."""

import os
import random
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from minisgl.checkpoint import (
    Checkpoint,
    ParameterPlan,
    Piece,
    Reader,
    StoredTensor,
    _memory,
    open_checkpoint,
    open_reader,
    reader,
)
from minisgl.checkpoint.reader import CpuReader
from minisgl.checkpoint.reader_cuda import CudaReader
from minisgl.errors import CheckpointError
from minisgl.utils.memory import read_memory

CPU = torch.device("cpu")
DTYPES = [torch.float32, torch.float16, torch.bfloat16]


class FakeCopies:
    """Stand in for a device: copies take a moment, and happen only when they are waited for or time has passed."""

    def __init__(self) -> None:
        self.num_pinned = 0
        self.most_pinned = 0
        self._lock = threading.Lock()

    def pinned_buffer(self, num_bytes: int) -> tuple[torch.Tensor, Callable[[], None]]:
        with self._lock:
            self.num_pinned += 1
            self.most_pinned = max(self.most_pinned, self.num_pinned)
        return torch.full((num_bytes,), 255, dtype=torch.uint8), self._give_back

    def _give_back(self) -> None:
        with self._lock:
            self.num_pinned -= 1

    def ready(self) -> object:
        return None

    def start(self, source: torch.Tensor, target: torch.Tensor, after: object) -> Callable[[], None]:
        def finish() -> None:
            time.sleep(random.random() * 0.0005)
            target.copy_(source)  # only now, so that a buffer reused too early spoils the copy

        return finish


def threaded(copies: FakeCopies | None = None, buffer_bytes: int = 512) -> CudaReader:
    return CudaReader(CPU, copies or FakeCopies(), num_threads=4, buffer_bytes=buffer_bytes)


@pytest.fixture(params=["cpu", "threads"])
def any_reader(request: pytest.FixtureRequest) -> Iterator[Reader]:
    with CpuReader() if request.param == "cpu" else threaded() as opened:
        yield opened


def reader_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("weight-reader")]


def stored(folder: Path, tensors: dict[str, torch.Tensor]) -> Checkpoint:
    save_file(tensors, folder / "model.safetensors")
    return open_checkpoint(folder)


def random_slice(generator: random.Random, size: int) -> slice:
    start = generator.randint(0, size)
    return slice(start, generator.randint(start, size))


def read_one(opened: Reader, shape: tuple[int, ...], *pieces: Piece) -> torch.Tensor:
    """Have one parameter read."""
    [(name, tensor)] = opened.read([ParameterPlan("p", shape, pieces)])
    assert name == "p"
    return tensor


@pytest.fixture
def dirty_memory() -> Iterator[None]:
    """Have torch.empty give NaN, so that what nobody fills can be seen."""
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.usefixtures("dirty_memory")
@pytest.mark.parametrize("seed", range(4))
def test_slices_of_any_shape_lie_end_to_end_and_zeros_behind_them(
    tmp_path: Path, any_reader: Reader, seed: int
) -> None:
    generator = random.Random(seed)
    plans, expected = [], {}
    for number in range(12):
        dtype, columns = generator.choice(DTYPES), [generator.choice([1, 2, 7, 40]) for _ in range(number % 2)]
        shapes = [(generator.choice([1, 3, 40]), *columns) for _ in range(generator.randint(1, 4))]
        tensors = {f"t{i}": torch.randn(shape).to(dtype) for i, shape in enumerate(shapes)}
        (tmp_path / str(number)).mkdir()
        sources = stored(tmp_path / str(number), tensors).tensors
        narrow = tuple(random_slice(generator, size) for size in columns)
        cuts = {key: (random_slice(generator, len(tensor)), *narrow) for key, tensor in tensors.items()}
        rows = torch.cat([tensors[key][cut] for key, cut in cuts.items()])
        rows = torch.cat([rows, torch.zeros(generator.randint(0, 3), *rows.shape[1:], dtype=dtype)])
        pieces = [Piece(sources[key], cut) for key, cut in cuts.items()]
        plans.append(ParameterPlan(f"p{number}", tuple(rows.shape), pieces))
        expected[f"p{number}"] = rows
    found = dict(any_reader.read(plans))
    assert list(found) == list(expected)
    for name, tensor in expected.items():
        assert found[name].dtype == tensor.dtype
        assert torch.equal(found[name], tensor)


def test_the_rows_of_all_experts_lie_end_to_end(tmp_path: Path, any_reader: Reader) -> None:
    tensors = {f"t{i}": torch.randn(3, 5) for i in range(4)}
    sources = stored(tmp_path, tensors).tensors
    found = read_one(any_reader, (2, 6, 5), *[Piece(sources[key], ()) for key in tensors])
    assert torch.equal(found, torch.cat(list(tensors.values())).view(2, 6, 5))


def test_no_more_parameters_than_the_lookahead_are_under_way(tmp_path: Path) -> None:
    """Each is whole when it comes, and they come in the order of the plans."""
    tensors = {f"t{i}": torch.full((40, 40), float(i)) for i in range(30)}
    sources = stored(tmp_path, tensors).tensors
    started = []

    class Counting(CudaReader):
        lookahead = 2

        def start(self, plan: ParameterPlan) -> tuple[torch.Tensor, Callable[[], None]]:
            started.append(plan.name)
            return super().start(plan)

    plans = [ParameterPlan(key, (40, 40), [Piece(sources[key], ())]) for key in tensors]
    with Counting(CPU, FakeCopies(), num_threads=4, buffer_bytes=512) as opened:
        for number, (name, tensor) in enumerate(opened.read(plans)):
            assert name == plans[number].name
            assert torch.equal(tensor, tensors[name])
            assert len(started) == min(number + 3, 30)


def test_a_parameter_that_has_been_handed_out_is_not_kept(tmp_path: Path) -> None:
    tensors = {f"t{i}": torch.ones(4) for i in range(5)}
    sources = stored(tmp_path, tensors).tensors
    given: list[weakref.ref[torch.Tensor]] = []
    with open_reader("cpu") as opened:
        for _, tensor in opened.read([ParameterPlan(key, (4,), [Piece(sources[key], ())]) for key in tensors]):
            assert all(reference() is None for reference in given)
            given.append(weakref.ref(tensor))
            del tensor
            assert given[-1]() is None


@pytest.mark.parametrize("row_bytes", [64, 500, 512, 6000, 70_000])
def test_columns_are_read_right_whatever_the_way_of_reading(tmp_path: Path, any_reader: Reader, row_bytes: int) -> None:
    tensor = torch.randn(50, 2 * row_bytes).to(torch.bfloat16)
    checkpoint = stored(tmp_path, {"odd": torch.zeros(3), "t": tensor})
    columns = slice(row_bytes // 4, row_bytes // 4 + row_bytes // 2)
    parameter = read_one(any_reader, (50, row_bytes // 2), Piece(checkpoint.tensors["t"], (slice(None), columns)))
    assert torch.equal(parameter, tensor[:, columns])
    assert any_reader.bytes_read == parameter.nbytes


def test_a_file_whose_tensors_start_at_odd_bytes_is_read_right(tmp_path: Path, any_reader: Reader) -> None:
    from tests.checkpoint.raw_files import file_bytes

    tensor = torch.arange(4096, dtype=torch.float32).view(2, 2048)
    header = {"t": {"dtype": "F32", "shape": [2, 2048], "data_offsets": [0, tensor.nbytes]}}
    content = file_bytes(header, tensor.numpy().tobytes())
    assert (len(content) - tensor.nbytes) % 4, "the test needs an odd start"
    (tmp_path / "model.safetensors").write_bytes(content)
    source = open_checkpoint(tmp_path).tensors["t"]
    parameter = read_one(any_reader, (2, 1000), Piece(source, (slice(None), slice(48, 1048))))
    assert torch.equal(parameter, tensor[:, 48:1048])


def test_holes_are_filled_with_zeros_without_being_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from minisgl.checkpoint.maker import make_checkpoint
    from tests.checkpoint.tiny import CONFIGS

    config = {**CONFIGS["llama"], "vocab_size": 10_000}
    source = open_checkpoint(make_checkpoint(tmp_path / "made", config, data="sparse")).tensors["lm_head.weight"]
    monkeypatch.setattr(os, "preadv", lambda *_: pytest.fail("read a hole"))
    with open_reader("cpu") as opened:
        assert not read_one(opened, source.shape, Piece(source, ())).any()


def test_data_behind_a_hole_is_read(tmp_path: Path, any_reader: Reader) -> None:
    tensor = torch.zeros(1024, 1024)
    tensor[-1, -1] = 1
    source = stored(tmp_path, {"t": tensor}).tensors["t"]
    content = source.file.read_bytes()
    with open(source.file, "wb") as opened:
        opened.write(content[: source.offset])
        opened.seek(len(content) - 4)
        opened.write(content[-4:])
    assert torch.equal(read_one(any_reader, (1024, 1024), Piece(source, ())), tensor)


def cut_short(folder: Path, shape: tuple[int, ...], left: int) -> StoredTensor:
    source = stored(folder, {"t": torch.ones(shape)}).tensors["t"]
    with open(source.file, "r+b") as opened:
        opened.truncate(left)
    return source


@pytest.mark.parametrize("columns", [1000, 400, 16], ids=["whole", "wide rows", "narrow rows"])
def test_a_file_that_has_become_shorter_gives_an_error(tmp_path: Path, any_reader: Reader, columns: int) -> None:
    source = cut_short(tmp_path, (500, 1000), left=1_000_000)
    message = (
        rf"model\.safetensors: only 1000000 bytes left while reading tensor 't'\. Expected: at least "
        rf"{source.offset + source.num_bytes} bytes, as when its header was read\. What to do: don't change"
    )
    with pytest.raises(CheckpointError, match=message):
        read_one(any_reader, (500, columns), Piece(source, (slice(None), slice(0, columns))))


def test_a_file_that_has_gone_gives_an_error(tmp_path: Path, any_reader: Reader) -> None:
    source = stored(tmp_path, {"t": torch.ones(3)}).tensors["t"]
    source.file.unlink()
    with pytest.raises(CheckpointError, match=r"can't be opened \(No such file or directory\)"):
        read_one(any_reader, (3,), Piece(source, ()))


WRONG_PIECES = {
    "other columns": ((4, 2), (), r"a slice of shape \(4, 3\) for \(4, 2\) left of p"),
    "too many rows": ((3, 3), (), r"a slice of shape \(4, 3\) for \(3, 3\) left of p"),
    "behind the end": ((9, 3), (slice(0, 9),), r"slice\(0, 9, None\) of a dimension of size 4"),
    "a step": ((2, 3), (slice(0, 4, 2),), r"slice\(0, 4, 2\) of a dimension of size 4"),
    "too many slices": ((4, 3), (slice(0, 4),) * 3, r"3 slices for shape \(4, 3\)"),
}


@pytest.mark.parametrize("name", WRONG_PIECES)
def test_a_piece_that_does_not_fit_is_refused(tmp_path: Path, any_reader: Reader, name: str) -> None:
    shape, slices, message = WRONG_PIECES[name]
    source = stored(tmp_path, {"t": torch.ones(4, 3)}).tensors["t"]
    with pytest.raises(CheckpointError, match=message):
        read_one(any_reader, shape, Piece(source, slices))


def test_pieces_of_two_dtypes_are_refused(tmp_path: Path, any_reader: Reader) -> None:
    sources = stored(tmp_path, {"a": torch.ones(4, 3), "b": torch.ones(4, 3).half()}).tensors
    with pytest.raises(CheckpointError, match=r"stored as torch\.float16, read into torch\.float32"):
        read_one(any_reader, (8, 3), Piece(sources["a"], ()), Piece(sources["b"], ()))


def test_other_devices_are_filled_through_the_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "_PART_BYTES", 16)
    source = stored(tmp_path, {"t": torch.arange(12.0).view(3, 4)}).tensors["t"]
    with open_reader("meta") as opened:
        assert read_one(opened, (3, 4), Piece(source, ())).device.type == "meta"
        assert opened.bytes_read == 48


def test_the_threads_own_a_buffer_each_and_give_all_back(tmp_path: Path) -> None:
    copies = FakeCopies()
    tensors = {f"t{i}": torch.randn(40, 40) for i in range(30)}
    checkpoint = stored(tmp_path, tensors)
    with threaded(copies) as opened:
        plans = [ParameterPlan(key, (40, 40), [Piece(checkpoint.tensors[key], ())]) for key in tensors]
        parameters = dict(opened.read(plans))
    assert all(torch.equal(parameters[key], tensor) for key, tensor in tensors.items())
    assert copies.num_pinned == 0 < copies.most_pinned <= 4
    assert not reader_threads()


def test_closing_with_much_left_to_do_returns_soon_and_leaves_nothing(tmp_path: Path) -> None:
    copies = FakeCopies()
    source = stored(tmp_path, {"t": torch.randn(400, 400)}).tensors["t"]
    opened = threaded(copies, buffer_bytes=64)
    plan = ParameterPlan("p", (400, 400), [Piece(source, ())])
    _, wait = opened.start(plan)  # 10,000 parts
    assert len(reader_threads()) == 4
    started = time.monotonic()
    opened.close()
    opened.close()
    assert time.monotonic() - started < 5
    assert copies.num_pinned == 0
    assert not reader_threads()
    with pytest.raises(Exception, match="the reader was closed"):
        wait()
    with pytest.raises(RuntimeError, match="the reader is closed"):
        opened.start(plan)


def test_an_error_in_one_parameter_does_not_spoil_the_others(tmp_path: Path) -> None:
    good = stored(tmp_path, {"t": torch.randn(100, 100)}).tensors["t"]
    (tmp_path / "bad").mkdir()
    bad = cut_short(tmp_path / "bad", (100, 100), left=1000)
    with threaded() as opened:
        _, wait_for_failing = opened.start(ParameterPlan("bad", (100, 100), [Piece(bad, ())]))
        parameter, wait_for_working = opened.start(ParameterPlan("good", (100, 100), [Piece(good, ())]))
        with pytest.raises(CheckpointError, match="only 1000 bytes left"):
            wait_for_failing()
        wait_for_working()
    with open_reader("cpu") as plain:
        assert torch.equal(parameter, read_one(plain, (100, 100), Piece(good, ())))


def test_a_failing_copy_is_reported(tmp_path: Path) -> None:
    class Failing(FakeCopies):
        def start(self, source: torch.Tensor, target: torch.Tensor, after: object) -> Callable[[], None]:
            def finish() -> None:
                raise RuntimeError("the device is gone")

            return finish

    copies = Failing()
    source = stored(tmp_path, {"t": torch.ones(8)}).tensors["t"]
    with threaded(copies) as opened, pytest.raises(RuntimeError, match="the device is gone"):
        read_one(opened, (8,), Piece(source, ()))
    assert copies.num_pinned == 0


def test_running_out_of_pinned_memory_is_reported(tmp_path: Path) -> None:
    class Full(FakeCopies):
        def pinned_buffer(self, num_bytes: int) -> tuple[torch.Tensor, Callable[[], None]]:
            raise MemoryError("no more pages can be locked")

    source = stored(tmp_path, {"t": torch.ones(8)}).tensors["t"]
    with threaded(Full()) as opened, pytest.raises(MemoryError, match="no more pages"):
        read_one(opened, (8,), Piece(source, ()))


def test_the_loader_gives_the_same_through_the_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from minisgl.checkpoint.maker import make_checkpoint
    from tests.checkpoint.tiny import CONFIGS, assert_same, load, merged

    copies = FakeCopies()
    monkeypatch.setattr("minisgl.models.weight.open_reader", lambda device: threaded(copies))
    folder = make_checkpoint(tmp_path / "made", CONFIGS["qwen3 moe"], data="tagged", files=3, layout="torn")
    assert_same(load(folder), merged(CONFIGS["qwen3 moe"], data="tagged"))
    assert copies.num_pinned == 0
    assert not reader_threads()


def large_parameter(folder: Path) -> tuple[torch.Tensor, StoredTensor, list[Piece]]:
    """Make a tensor of 4 MiB, the right half of whose columns is wanted: no run of bytes, and several parts to read."""
    tensor = torch.randn(2048, 1024).to(torch.bfloat16)
    source = stored(folder, {"t": tensor}).tensors["t"]
    return tensor[:, 512:], source, [Piece(source, (slice(None), slice(512, 1024)))]


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "_PART_BYTES", 64 * 1024)
    monkeypatch.setattr(reader, "num_threads", lambda most: 3)


@pytest.mark.usefixtures("small_parts")
def test_a_large_parameter_is_read_by_threads_that_end_with_the_reader(tmp_path: Path) -> None:
    expected, _, pieces = large_parameter(tmp_path)
    with CpuReader() as opened:
        for _ in range(5):
            assert torch.equal(read_one(opened, (2048, 512), *pieces), expected)
        assert 1 <= len(reader_threads()) <= 3
    assert not reader_threads()
    links = [os.path.realpath(f"/proc/self/fd/{descriptor}") for descriptor in os.listdir("/proc/self/fd")]
    assert not [link for link in links if str(tmp_path) in link]


@pytest.mark.usefixtures("small_parts")
def test_an_error_in_one_of_the_threads_is_the_callers(tmp_path: Path) -> None:
    _, source, pieces = large_parameter(tmp_path)
    os.truncate(source.file, 2_000_000)
    with CpuReader() as opened, pytest.raises(CheckpointError, match="only 2000000 bytes left"):
        read_one(opened, (2048, 512), *pieces)
    assert not reader_threads()


@pytest.mark.usefixtures("small_parts")
def test_nothing_is_written_any_more_after_an_interrupt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, _, pieces = large_parameter(tmp_path)
    read_box, main, calls = reader.read_box, threading.main_thread(), []

    def slowly(*arguments: object) -> None:
        calls.append(arguments)
        if len(calls) == 10:  # of 32, when all are handed out
            signal.pthread_kill(main.ident, signal.SIGINT)
        time.sleep(0.05)
        read_box(*arguments)

    monkeypatch.setattr(reader, "read_box", slowly)
    parameter = torch.zeros(2048, 512, dtype=torch.bfloat16)
    monkeypatch.setattr(torch, "empty", lambda *_, **__: parameter)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    with CpuReader() as opened:
        try:
            with pytest.raises(KeyboardInterrupt):
                read_one(opened, (2048, 512), *pieces)
        finally:
            signal.signal(signal.SIGINT, before)
        assert len(calls) < 32
        left = parameter.clone()
        time.sleep(0.2)
        assert torch.equal(parameter, left)
    assert not reader_threads()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems are left to find memory when it is used")
def test_the_pages_of_a_buffer_can_be_found_before_it_is_used() -> None:
    num_bytes = 64 * 1024 * 1024  # more than the allocator ever takes out of memory that it has kept
    buffer = torch.empty(num_bytes, dtype=torch.uint8)
    before = read_memory().anonymous_bytes
    _memory.populate(buffer)
    after = read_memory().anonymous_bytes
    assert before is not None
    assert after is not None
    assert after - before > 0.9 * num_bytes


def test_small_neighbours_travel_in_one_copy(tmp_path: Path) -> None:
    tensors = {f"e{number}": torch.randn(4, 4) for number in range(20)}  # 64 bytes each
    sources = stored(tmp_path, tensors).tensors
    copies, sizes = FakeCopies(), []
    start = copies.start
    copies.start = lambda source, target, after: (sizes.append(source.numel()), start(source, target, after))[1]
    with threaded(copies) as opened:
        parameter = read_one(opened, (20, 4, 4), *[Piece(sources[key], ()) for key in tensors])
    assert torch.equal(parameter, torch.stack(list(tensors.values())))
    assert sorted(sizes) == [256, 512, 512], "512 bytes fit into a buffer"
