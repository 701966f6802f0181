"""Build the course as static pages in site/ (`make site`): chapters, guides and API, to be read without installing.

The chapters are the students' notebooks with the stored outputs of the executed, solved ones beside their cells; the parts that
students write stay empty. ``--solutions`` adds the solved chapters, for instructors only. The finished pages are then checked:
links inside the site lead to a page and to a place on it, nothing is loaded from elsewhere, and no line of a solution is on a
page that students read. Nothing is fetched, and nothing is run.

Usage: ``python scripts/site.py [--out DIR] [--solutions]``
"""

import argparse
import json
import re
import shutil
import sys
import tempfile
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

GUIDES = ("student", "instructor", "developer", "judging", "api", "structure")


def lay_out(source: Path, with_solutions: bool) -> None:
    """Write the pages' sources: what Sphinx is to turn into HTML."""
    (source / "_static").mkdir()
    shutil.copy(ROOT / "docs/sphinx/conf.py", source)
    shutil.copy(ROOT / "docs/sphinx/course.css", source / "_static")
    for picture in (ROOT / "docs").glob("*.[ps][nv]g"):
        shutil.copy(picture, source)
    for name in ("favicon.svg", "memory_race.png"):
        shutil.copy(ROOT / "docs" / name, source / "_static")
    shutil.copytree(ROOT / "docs/examples", source / "examples")
    for name in GUIDES:
        text = (ROOT / f"docs/{name}.md").read_text(encoding="utf-8")
        (source / f"{name}.md").write_text(relinked(text, ROOT / "docs"), encoding="utf-8")
    for name in ("CONTRIBUTING", "CHANGELOG"):
        text = (ROOT / f"{name}.md").read_text(encoding="utf-8")
        (source / f"{name.lower()}.md").write_text(relinked(text, ROOT), encoding="utf-8")
    (source / "chapters").mkdir()
    chapters = [copy_chapter(path, source / "chapters") for path in notebooks(ROOT / "notebooks")]
    solved = []
    if with_solutions:
        (source / "solutions").mkdir()
        for path in notebooks(ROOT / "solutions"):
            shutil.copy(path, source / "solutions")
            solved.append(f"solutions/{path.stem}")
    readme = relinked((ROOT / "README.md").read_text(encoding="utf-8"), ROOT)
    trees = [toctree("Chapters", chapters), toctree("Guides", [*GUIDES, "contributing", "changelog"])]
    trees += [toctree("Chapters, solved", solved)] if solved else []
    (source / "index.md").write_text("\n\n".join([readme, *trees]), encoding="utf-8")


def notebooks(folder: Path) -> list[Path]:
    """Return the chapters' notebooks in a folder of chapters."""
    return sorted(folder.glob("[0-9][0-9]_*/*.ipynb"))


def copy_chapter(release: Path, target: Path) -> str:
    """Copy a students' notebook, with the solved one's outputs at its cells, and return its name for a table of contents."""
    book = json.loads(release.read_text(encoding="utf-8"))
    solved = ROOT / "solutions" / release.relative_to(ROOT / "notebooks")
    outputs = {cell["id"]: cell.get("outputs", []) for cell in json.loads(solved.read_text(encoding="utf-8"))["cells"]}
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            is_part = cell["metadata"].get("nbgrader", {}).get("solution", False)
            cell["outputs"] = [] if is_part else outputs.get(cell["id"], [])
    (target / release.name).write_text(json.dumps(book), encoding="utf-8")
    return f"{target.name}/{release.stem}"


def toctree(caption: str, names: list[str]) -> str:
    """Return a hidden table of contents: it stands in the pages' sidebar."""
    return "\n".join(["```{toctree}", ":hidden:", f":caption: {caption}", "", *names, "```"])


def relinked(text: str, folder: Path) -> str:
    """Let a document's links lead to the site's pages; a link to a file that has no page becomes plain code."""
    pages = {ROOT / f"docs/{name}.md": f"{name}.md" for name in GUIDES}
    pages |= {ROOT / "README.md": "index.md", ROOT / "CONTRIBUTING.md": "contributing.md", ROOT / "CHANGELOG.md": "changelog.md"}

    def target(match: re.Match[str]) -> str:
        path = (folder / match[2]).resolve()
        if "://" in match[2] or match[2].startswith(("#", "mailto:")):
            return match[0]
        if path in pages:
            return f"[{match[1]}]({pages[path]}{match[3] or ''})"
        if path.is_relative_to(ROOT / "docs") and path.is_file():
            return f"[{match[1]}]({path.relative_to(ROOT / 'docs').as_posix()})"
        return match[1]

    text = re.sub(r"(?<!!)\[([^\]]+)\]\(([^)\s#]*)(#[^)\s]*)?\)", target, text)
    return re.sub(r"!\[([^\]]*)\]\(docs/", r"![\1](", text)


class Page(HTMLParser):
    """One page's links, anchors and text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take down what a tag links to and what it can be linked by."""
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.append(value)
            elif name in ("id", "name") and value:
                self.anchors.add(value)


def dead_links(site: Path) -> list[str]:
    """Return the links of a site that lead to no file of it, or to no place on that page."""
    pages = {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    dead = []
    for path, page in sorted(pages.items()):
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            to = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not to.exists():
                dead.append(f"{path.relative_to(site)}: {link}")
            elif parts.fragment and to in pages and unquote(parts.fragment) not in pages[to].anchors:
                dead.append(f"{path.relative_to(site)}: {link} (no such place on the page)")
    return dead


def outside_loads(site: Path) -> list[str]:
    """Return what pages would load from elsewhere: scripts, styles and pictures."""
    pattern = re.compile(r"<(?:script|link|img)\b[^>]*?(?:src|href)=\"(https?:)?//[^\"]*\"")
    found = []
    for path in sorted(site.rglob("*.html")):
        found += [f"{path.relative_to(site)}: {match[0]}" for match in pattern.finditer(path.read_text(encoding="utf-8"))]
    return found


def solutions_on(site: Path) -> list[str]:
    """Return the lines of the reference's graded parts that stand on pages which students read."""
    from autograder.authoring.release import telling_lines
    from autograder.parts import GRADED_MODULES

    lines = telling_lines(set(GRADED_MODULES))
    found = []
    for path in sorted(site.rglob("*")):
        place = path.relative_to(site)
        if path.suffix not in (".html", ".js", ".txt", ".md", ".ipynb") or place.parts[0] == "solutions":
            continue
        if place.name == "searchindex.js" and (site / "solutions").exists():
            continue
        text = unescape(re.sub(r"<[^>]+>", "", path.read_text(encoding="utf-8")))
        found += [f"{place}: {line.strip()}" for line in text.splitlines() if line.strip() in lines]
    return found


def main(argv: list[str] | None = None) -> int:
    """Build and check; return 1 when the pages have a fault."""
    from sphinx.cmd.build import build_main

    parser = argparse.ArgumentParser(description="Build the course as static pages.")
    parser.add_argument("--out", type=Path, default=ROOT / "site", help="where the pages go (default: site/)")
    parser.add_argument("--solutions", action="store_true", help="with the executed, solved chapters: for instructors only")
    options = parser.parse_args(argv)
    shutil.rmtree(options.out, ignore_errors=True)
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch, "source")
        source.mkdir()
        lay_out(source, options.solutions)
        # Into the scratch folder, not to their place: myst-nb keeps what it executes in a folder beside the pages.
        html = Path(scratch, "html")
        if build_main(["-q", "-W", "--keep-going", "-b", "html", "-d", f"{scratch}/doctrees", str(source), str(html)]):
            return 1
        shutil.copytree(html, options.out, dirs_exist_ok=True)  # a mounted folder stays, though emptied
    faults = {"dead links": dead_links(options.out), "loads from elsewhere": outside_loads(options.out)}
    faults["solution text"] = solutions_on(options.out)
    for kind, found in faults.items():
        print("".join(f"{kind}: {line}\n" for line in found), end="", file=sys.stderr)
    print(options.out / "index.html")
    return int(any(faults.values()))


if __name__ == "__main__":
    sys.exit(main())
