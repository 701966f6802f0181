"""`make site` builds pages that lead nowhere dead, load nothing from elsewhere and give no solution away."""

import shutil
from pathlib import Path

import pytest

from autograder.text import reference
from scripts import site
from tests.project.shell import shell

CHAPTERS = [path.stem for path in site.notebooks(site.ROOT / "notebooks")]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built pages."""
    out = tmp_path_factory.mktemp("site") / "pages"
    assert shell("make site", more=f"SITE_ARGS='--out {out}'").splitlines()[-1] == str(out / "index.html")
    return out


pytestmark = pytest.mark.timeout(600)


def test_every_chapter_and_guide_has_a_page(pages: Path):
    expected = {f"chapters/{name}.html" for name in CHAPTERS} | {f"{name}.html" for name in (*site.GUIDES, "index")}
    assert not [name for name in expected if not (pages / name).is_file()]


def test_the_build_leaves_nothing_beside_the_pages(pages: Path):
    assert list(pages.parent.iterdir()) == [pages]
    assert not (site.ROOT / "jupyter_execute").exists()  # where it was when the pages lay in the root


def test_chapters_are_executed_and_their_answers_fold(pages: Path):
    text = (pages / "chapters/01_config.html").read_text()
    assert "config.head_dim: passed" in text
    assert "<summary>1. Qwen3-0.6B has hidden_size 1024" in text
    assert "<math" in text and "mathjax.js" not in text.lower()


def test_solved_chapters_are_laid_out_for_instructors_only(tmp_path: Path):
    for with_solutions in (False, True):
        source = tmp_path / str(with_solutions)
        source.mkdir()
        site.lay_out(source, with_solutions)
        assert (source / "solutions").exists() == with_solutions
        assert ("solutions/03_weight" in (source / "index.md").read_text()) == with_solutions
    assert {path.stem for path in (tmp_path / "True/solutions").iterdir()} == set(CHAPTERS)


def test_commands_can_be_copied_and_links_have_a_preview(pages: Path):
    text = (pages / "chapters/03_weight.html").read_text()
    assert "copybutton.js" in text and 'href="../_static/favicon.svg"' in text
    assert 'property="og:image" content="../_static/memory_race.png"' in text
    assert (pages / "_static/memory_race.png").is_file()


def test_a_planted_dead_link_is_found(pages: Path, tmp_path: Path):
    shutil.copytree(pages, tmp_path / "site")
    (tmp_path / "site/new.html").write_text('<a href="gone.html">x</a><a href="index.html#nowhere">y</a><a href="api.html">z</a>')
    found = site.dead_links(tmp_path / "site")
    assert found == ["new.html: gone.html", "new.html: index.html#nowhere (no such place on the page)"]


def test_a_planted_solution_is_found(tmp_path: Path):
    code = reference.piece("config.head_dim").replace("&", "&amp;").replace("<", "&lt;")
    (tmp_path / "page.html").write_text(f"<pre>{code}</pre>")
    line = "head_dim = hf_config.hidden_size // hf_config.num_attention_heads"
    assert any(line in found for found in site.solutions_on(tmp_path))


def test_a_planted_load_from_elsewhere_is_found(tmp_path: Path):
    (tmp_path / "page.html").write_text('<script src="https://example.invalid/x.js"></script><a href="https://example.invalid">x</a>')
    assert len(site.outside_loads(tmp_path)) == 1


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 375])
def test_pages_fit_the_screen_and_answers_open(pages: Path, width: int, chromium):
    page = chromium.new_page(viewport={"width": width, "height": 900})
    failed: list[str] = []
    # A page that is left before its icon has come ends that request, which is no fault.
    page.on("requestfailed", lambda request: request.failure == "net::ERR_ABORTED" or failed.append(request.url))
    page.on("pageerror", lambda error: failed.append(str(error)))
    for name in ("index", "instructor", "api", *(f"chapters/{chapter}" for chapter in CHAPTERS)):
        page.goto((pages / f"{name}.html").as_uri())
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), name
    page.goto((pages / "chapters/01_config.html").as_uri())
    answer = page.locator("article details").first
    assert not answer.locator("p").first.is_visible()
    answer.locator("summary").click()
    assert answer.locator("p").first.is_visible()
    assert page.locator("math").first.bounding_box()["width"] > 0
    assert not failed
