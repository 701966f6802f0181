"""Memory races: predictions by hand and measured, and processes that end when they should."""

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from minisgl.checkpoint import _read
from minisgl.checkpoint.maker import make_checkpoint, stored_shapes
from minisgl.errors import MinisglError
from minisgl.viz import race_plan
from minisgl.viz.drawing import mib, round_ticks
from minisgl.viz.race import THIS_TREE, RaceModel, remove_left_behind
from minisgl.viz.race_lane import Lane
from minisgl.viz.race_picture import thin
from minisgl.viz.race_plan import (
    BUILD,
    EVERYTHING,
    MERGE,
    OURS,
    SHAPES,
    STUDENT,
    Prediction,
    RaceSettings,
    make_stored,
    predict,
)
from tests.viz.test_stepper import GATE, KV, TINY, Q

# Each lane is a process that imports PyTorch: seconds on an idle machine, a minute on a busy one.
pytestmark = pytest.mark.timeout(600)
MIB = 2**20
TINY_BYTES = 2 * sum(rows * columns for rows, columns in ((s + (1,))[:2] for s in stored_shapes(TINY).values()))
linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells anonymous and file-backed memory apart")


@pytest.fixture
def tiny(tmp_path):
    return make_checkpoint(tmp_path / "tiny", TINY, files=2)


@pytest.fixture(scope="module")
def raced():
    """A finished race of four lanes; the student's tree is this one."""
    with RaceModel(RaceSettings(num_files=3, shuffled=True), student_tree=THIS_TREE) as model:
        model.start(strategies=model.trees)
        model.wait(500)
        yield model


def test_predictions_by_hand(tiny):
    stored = make_stored(RaceSettings(str(tiny)), tiny)
    assert stored.num_bytes == TINY_BYTES
    assert predict(EVERYTHING, stored, True).anonymous_bytes == TINY_BYTES
    copied = Q + 2 * KV + 2 * GATE
    assert predict(BUILD, stored, True).anonymous_bytes == 2 * TINY_BYTES + copied
    assert predict(MERGE, stored, True).anonymous_bytes == TINY_BYTES + copied
    assert predict(MERGE, stored, False).anonymous_bytes == TINY_BYTES + 2 * GATE
    assert predict(OURS, stored, True).anonymous_bytes == TINY_BYTES, "all are smaller than what is worth mapping"
    assert predict(STUDENT, stored, False).anonymous_bytes == 2 * GATE


@linux
def test_whole_large_parameters_are_predicted_to_stay_in_the_file(tmp_path):
    config, _ = SHAPES["Qwen3 with 4 layers, 0.2 GB"]
    stored = make_stored(RaceSettings(), tmp_path)
    merged = 4 * 2 * 4096 * 1024  # q, k and v; gate and up lie end to end in the file
    small = 2 * (4 * (2 * 128 + 2 * 1024) + 1024)
    found = predict(OURS, stored, True)
    assert found.anonymous_bytes == merged + small
    assert (
        found.resident_bytes == stored.num_bytes == 2 * sum(_numbers(shape) for shape in stored_shapes(config).values())
    )
    assert race_plan._MAPPED_FROM_BYTES == _read._MAPPED_FROM_BYTES


@linux
def test_what_lies_in_a_hole_is_not_mapped(tmp_path, monkeypatch):
    monkeypatch.setattr(race_plan, "_ALL_HOLES_FROM_BYTES", 0)
    stored = make_stored(RaceSettings(num_files=1), tmp_path)
    assert len(stored.mapped_params()) <= 1, "only the first tensor of a file shares a block with its header"
    assert predict(OURS, stored, True).resident_bytes == stored.num_bytes


def _numbers(shape):
    return shape[0] * (shape[1] if len(shape) > 1 else 1)


def test_a_made_checkpoint_takes_little_disk_and_has_data_in_every_large_tensor(tmp_path):
    stored = make_stored(RaceSettings(num_files=5), tmp_path)
    files = {tensor.file for tensor in stored.tensors.values()}
    assert len(files) == 5
    assert sum(file.stat().st_blocks * 512 for file in files) < stored.num_bytes / 100


@linux
def test_measured_peaks_are_within_5_percent_of_the_prediction(raced):
    assert [lane.strategy for lane in raced.lanes.values()] == [BUILD, EVERYTHING, MERGE, OURS, STUDENT]
    for lane in raced.lanes.values():
        assert lane.status == "finished", lane.message
        assert lane.measured_bytes == pytest.approx(lane.prediction.anonymous_bytes, rel=0.05)
        assert lane.kernel_bytes == pytest.approx(lane.prediction.resident_bytes, rel=0.05)
        assert lane.counted_bytes == lane.prediction.anonymous_bytes, "counted bytes are exact"
        assert lane.done_bytes == lane.total_bytes


def test_events_and_samples_share_one_axis(raced):
    for lane in raced.lanes.values():
        kinds = {kind for _, kind, _, _ in lane.events}
        assert {"read", "yield"} <= kinds
        times = [sample[0] for sample in lane.samples]
        assert times == sorted(times)
        assert times[0] <= lane.events[0][0] <= lane.events[-1][0] <= times[-1]
    assert "merge" in {kind for _, kind, _, _ in raced.lanes[MERGE].events}


def test_words_table_and_picture_give_the_models_numbers(raced):
    words, svg = raced.describe(), raced.picture().to_svg()
    for row in raced.results:
        assert f"predicted {row['predicted']:,} bytes" in words
        assert f"measured {row['measured']:,}" in words
        assert f"counted {row['counted']:,}" in words
        assert f"predicted {mib(row['predicted'])}, measured {mib(row['measured'])}" in svg
    assert "as Linux counts it" in words or sys.platform != "linux"
    assert raced.static().axes


def test_a_race_can_be_replayed_and_is_kept(raced):
    assert len(raced.history) == 1
    whole = raced.picture().to_svg()
    raced.replay(raced.duration_s / 3)
    assert raced.picture().to_svg() != whole
    raced.show(0)
    assert raced.replay_s is None and len(raced.lanes) == 5


def test_stopping_ends_the_process_at_once():
    with RaceModel() as model:
        model.start(strategies=[EVERYTHING, MERGE])
        deadline = time.monotonic() + 30
        while model.lanes[EVERYTHING].pid is None and time.monotonic() < deadline:
            time.sleep(0.02)
        process = psutil.Process(model.lanes[EVERYTHING].pid)
        model.stop()
        assert not model.is_running
        assert not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
        assert [lane.status for lane in model.lanes.values()] == ["stopped", "stopped"]
        scratch = Path(model._scratch.name)
    assert not scratch.exists(), "made checkpoints are removed"


def test_checkpoints_of_a_killed_kernel_are_removed_later(tmp_path):
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        pass
    names = {
        f"minisgl-race-{gone.pid}-old": 7200,
        f"minisgl-race-{gone.pid}-new": 60,
        f"minisgl-race-{os.getpid()}-mine": 7200,
    }
    for name, age_s in names.items():
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (time.time() - age_s,) * 2)
    remove_left_behind(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(list(names)[1:])


def test_a_race_on_more_than_the_memory_is_not_started(tmp_path, monkeypatch):
    monkeypatch.setattr("minisgl.viz.race.available_bytes", lambda: 100 * MIB)
    with RaceModel() as model:
        model.start(strategies=[EVERYTHING])
        model.wait(10)
        assert model.lanes[EVERYTHING].status == "too large"
        assert "needs 184 MiB, 100 MiB are free" in model.describe()
        assert not model.history


def test_a_tree_that_can_not_load_fails_with_its_message(tmp_path, tiny):
    (tmp_path / "minisgl").mkdir()
    for entry in (THIS_TREE / "minisgl").iterdir():
        if entry.name != "models":
            (tmp_path / "minisgl" / entry.name).symlink_to(entry)
    models = tmp_path / "minisgl" / "models"
    models.mkdir()
    for entry in (THIS_TREE / "minisgl/models").glob("*.py"):
        (models / entry.name).write_text(entry.read_text())
    (models / "weight.py").write_text("raise NotImplementedError('load_weight is not written yet')")
    with RaceModel(RaceSettings(str(tiny)), student_tree=tmp_path) as model:
        model.start(strategies=[STUDENT])
        model.wait(200)
        assert model.lanes[STUDENT].status == "failed"
        assert "load_weight is not written yet" in model.lanes[STUDENT].message


def test_processes_end_with_the_process_that_started_the_race():
    program = (
        "import time\nfrom minisgl.viz.race import RaceModel\nmodel = RaceModel()\nmodel.start(strategies=['everything'])\n"
        "while model.lanes['everything'].pid is None: time.sleep(0.02)\n"
        "print(model.lanes['everything'].pid, flush=True)\ntime.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, cwd=THIS_TREE) as starter:
        lane = psutil.Process(int(starter.stdout.readline()))
        starter.kill()
    gone, _ = psutil.wait_procs([lane], timeout=60)
    assert gone


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (RaceSettings("/no/such/folder"), "no such folder"),
        (RaceSettings(tp_size=3), "can't be cut for 3 ranks"),
        (RaceSettings(tp_size=2, tp_rank=2), "rank is 2. Expected 0 to 1"),
    ],
)
def test_settings_that_can_not_be_raced_on_are_refused(settings, message):
    with RaceModel(settings) as model, pytest.raises(MinisglError, match=message):
        model.start()


def test_a_learners_loader_that_holds_everything_is_named_in_words(tiny):
    with RaceModel(RaceSettings(str(tiny), keep=False), student_tree=THIS_TREE) as model:
        model.prepare(strategies=[STUDENT])
        for size, is_named in ((GATE, False), (TINY_BYTES, True)):
            model.lanes[STUDENT].samples = [(0.1, size, 0, size, size)]
            assert ("it holds every parameter at once" in model.picture().to_svg()) == is_named


@pytest.mark.parametrize(("top", "ticks"), [(448 * MIB, [0, 200, 400]), (0.9 * MIB, [0, 0.5]), (7 * MIB, [0, 5])])
def test_ticks_are_round(top, ticks):
    assert round_ticks(top, 3) == [tick * MIB for tick in ticks]


def test_a_long_curve_is_thinned_without_losing_its_peak():
    points = [(float(index), 0.0) for index in range(10_000)]
    points[4321] = (4321.0, 7.0)
    kept = thin(points)
    assert len(kept) < 600 and (4321.0, 7.0) in kept and kept == sorted(kept)


def test_where_the_split_is_unknown_resident_memory_counts():
    lane = Lane("ours", Prediction(1, 1, ""), 1)
    base = {"anonymous_bytes": None, "file_backed_bytes": None, "resident_bytes": 100}
    lane.take({"line": "start", "baseline": base})
    lane.take({"line": "sample", "time_s": 0.1, **base, "resident_bytes": 150, "live_tensor_bytes": 0})
    assert lane.measured_bytes == 50
