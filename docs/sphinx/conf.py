"""Sphinx's configuration for `make site`; scripts/site.py lays out the pages and calls it."""

import latex2mathml.converter
from docutils import nodes

project = "Load a real language model into a model you write yourself"
author = "the course's maintainers"
html_title = "minisgl course"
extensions = ["myst_nb", "sphinx_copybutton"]
html_theme = "furo"
# Results have JupyterLab's colours, and in its absence some for white pages; on dark ones they need lighter.
_DARK = {
    "color-background-primary": "#131416",
    "jp-content-font-color0": "#fff",
    "jp-content-link-visited-color": "#ba68c8",
    "jp-error-color1": "#f44336",
    "jp-inverse-layout-color3": "#bdbdbd",
    "jp-success-color1": "#4caf50",
    "jp-warn-color1": "#ff9800",
}
html_theme_options = {"source_repository": "", "dark_css_variables": _DARK}
html_show_sphinx = False
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["course.css"]
html_favicon = "_static/favicon.svg"
# A prompt isn't part of a command, and results aren't copied.
copybutton_prompt_text = "$ "
copybutton_selector = "div.cell_input pre, div.highlight-bash pre, div.highlight-python pre"
# The chapters' stored outputs are shown; nothing is run here.
nb_execution_mode = "off"
nb_merge_streams = True
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
# Notebook cells of %%module and %load_ext aren't plain Python; docutils' and myst's notes on them are no use.
suppress_warnings = ["misc.highlighting_failure", "mystnb.unknown_mime_type", "myst.header"]
html_math_renderer = "mathml"


def _mathml(translator, node: nodes.Element, display: str) -> None:
    """Write a formula as MathML, which browsers draw by themselves: no script, no network."""
    translator.body.append(latex2mathml.converter.convert(node.astext(), display=display))
    raise nodes.SkipNode


def _block(translator, node: nodes.Element) -> None:
    translator.body.append('<div class="math-block">')
    try:
        _mathml(translator, node, "block")
    except nodes.SkipNode:
        translator.body.append("</div>\n")
        raise


def _add_preview(app, pagename: str, templatename: str, context: dict, doctree: object) -> None:
    """Name the picture and the sentence that chat programs show beside a link to a page."""
    picture = context["pathto"]("_static/memory_race.png", 1)
    context["metatags"] = context.get("metatags", "") + (
        f'<meta property="og:title" content="{context.get("title", "")}">'
        f'<meta property="og:description" content="{project}"><meta property="og:image" content="{picture}">'
    )


def setup(app) -> dict[str, bool]:
    """Register the renderer of formulas."""
    app.connect("html-page-context", _add_preview)
    app.add_html_math_renderer("mathml", (lambda t, n: _mathml(t, n, "inline"), None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
