"""A process has the hidden cases that were installed last, and none once they are uninstalled."""

from autograder import paths
from autograder.classroom import hidden
from autograder.judge.judge import reference_work
from autograder.parts import BY_ID

HEAD_DIM = BY_ID["config.head_dim"]


def num_hidden(judge):
    (result,) = judge.judge(reference_work([HEAD_DIM]), [HEAD_DIM])
    return sum(test.hidden for test in result.tests)


def test_hidden_cases_come_and_go(judge):
    assert num_hidden(judge) == 0 and paths.hidden_root() is None
    for _ in range(2):
        hidden.install({"seed": "one\n"})
        try:
            assert num_hidden(judge) > 0
        finally:
            hidden.uninstall()
        assert num_hidden(judge) == 0 and paths.hidden_root() is None


def test_nobody_else_can_read_or_foresee_where_hidden_cases_lie(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    places = set()
    for _ in range(2):
        hidden.install({"seed": "one\n"})
        places.add(paths.hidden_root())
        assert paths.hidden_root().stat().st_mode & 0o077 == 0
    assert len(places) == 2 and len(list(tmp_path.iterdir())) == 1
    hidden.uninstall()
    assert not list(tmp_path.iterdir())
