"""``nbgrader zip_collect`` reads names and times of hand-ins to the second, or refuses them."""

import pytest
from nbgrader.apps import ZipCollectApp
from nbgrader.coursedir import CourseDirectory
from nbgrader.utils import parse_utc

from autograder.authoring.redteam_files import cell, notebook
from autograder.classroom.collecting import CollectWhatCounts
from tests.autograder.helpers import write


@pytest.fixture
def collector(tmp_path):
    app = ZipCollectApp()
    app.coursedir = CourseDirectory(root=str(tmp_path), assignment_id="01_config")
    return CollectWhatCounts(parent=app)


def hand_in(root, name, value=1):
    return str(write(root / "downloaded" / "01_config" / "extracted" / name, notebook(cell(value))))


@pytest.mark.parametrize("time", ["11:30:00", "12:01:05", "12:59:59", "00:00:00"])
def test_the_time_in_a_name_is_read_to_the_second(collector, tmp_path, time):
    path = hand_in(tmp_path, f"ada_2030-01-07-{time.replace(':', '-')}_01_config.ipynb")
    hand_in(tmp_path, "ben.ipynb")
    found = collector.collect(path)
    assert (found["student_id"], found["file_id"]) == ("ada", "01_config")
    assert str(parse_utc(found["timestamp"])) == f"2030-01-07 {time}"


def test_a_time_zone_can_be_set(collector, tmp_path):
    collector.timezone = "Europe/Berlin"
    paths = [hand_in(tmp_path, f"{name}_2030-01-07-11-30-00.ipynb") for name in ("ada", "ben")]
    assert str(parse_utc(collector.collect(paths[0])["timestamp"])) == "2030-01-07 10:30:00"


def test_only_what_counts_is_collected_and_the_rest_is_told(collector, tmp_path, caplog):
    collector.log.propagate = True
    old, new = (hand_in(tmp_path, f"ada_2030-01-07-11-{minute}-00.ipynb") for minute in (29, 30))
    never = hand_in(tmp_path, "ben_2030-01-07-25-00-00.ipynb")
    assert [bool(collector.collect(path)) for path in (old, new, never)] == [False, True, False]
    assert f"ada: left aside: {old.rpartition('/')[2]} ({new.rpartition('/')[2]} is newer)" in caplog.text
    assert "the time 2030-01-07-25-00-00 in the name ben_2030-01-07-25-00-00 doesn't exist; rename it" in caplog.text


def test_a_pattern_of_the_instructor_s_gives_the_right_time_or_nothing(collector, tmp_path, caplog):
    collector.log.propagate = True
    collector.named_regexp = r"(?:.*/)?(?P<student_id>[a-z]+)_(?P<timestamp>[0-9-]+)_(?P<file_id>\w+)"
    right, wrong = (f"/x/ada_{time}_01_config.ipynb" for time in ("2030-01-07-12-01-05", "7-1-2030"))
    found = collector.collect(right)
    assert str(parse_utc(found["timestamp"])) == "2030-01-07 12:01:05" and found["student_id"] == "ada"
    assert collector.collect(wrong) is None
    assert "'7-1-2030' isn't a time that can be read. Expected one like 2030-01-07-11-30-00. Rename the file" in caplog.text
