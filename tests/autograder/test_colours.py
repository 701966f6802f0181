"""The colours of results can be read on light and dark pages: WCAG's contrast for text, 4.5."""

import re
import runpy
import sys
from pathlib import Path

import pytest

from autograder.paths import HOME
from autograder.student.display import MARKS

LAB = Path(sys.prefix, "share/jupyter/lab")
BACKGROUNDS = ("--jp-layout-color0", "--jp-rendermime-table-row-background")
COLOURS = sorted({colour for _, _, colour in MARKS.values()})
NAMED = {"white": "#fff", "black": "#000"}
ENOUGH = 4.5

Rgb = tuple[float, ...]


def variables_in(text: str) -> dict[str, str]:
    return dict(re.findall(r"(--[a-z0-9-]+):\s*([^;}]+)", text))


def theme(name: str) -> dict[str, str]:
    """Read a theme of JupyterLab, with the palette that all of them draw from."""
    (core,) = (LAB / "static").glob("jlab_core.*.js")
    palette = re.findall(r"(--md-[a-z-]+\d+):\s*(#[0-9a-f]+)", core.read_text(encoding="utf-8"))
    css = LAB / f"themes/@jupyterlab/theme-{name}-extension/index.css"
    return dict(palette) | variables_in(css.read_text(encoding="utf-8"))


def rgb(colour: str, variables: dict[str, str]) -> Rgb:
    """Compute a colour as a browser does: a variable, else what stands in for it; or two of those, mixed."""
    if mix := re.fullmatch(r"color-mix\(in srgb,(var\([^)]+\)) (\d+)%,(var\([^)]+\))\)", colour):
        share = int(mix[2]) / 100
        both = zip(rgb(mix[1], variables), rgb(mix[3], variables), strict=True)
        return tuple(share * one + (1 - share) * other for one, other in both)
    if named := re.fullmatch(r"var\((--[a-z0-9-]+)(?:,(.+))?\)", colour):
        return rgb(variables.get(named[1]) or named[2], variables)
    digits = NAMED.get(colour, colour).removeprefix("#")
    digits = "".join(digit * (6 // len(digits)) for digit in digits)
    return tuple(int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4))


def luminance(colour: Rgb) -> float:
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: Rgb, other: Rgb) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_contrast_is_as_wcag_defines_it():
    assert contrast(rgb("white", {}), rgb("#000", {})) == pytest.approx(21)
    assert contrast(rgb("#b42318", {}), rgb("#111", {})) == pytest.approx(2.87, abs=0.01)
    assert rgb("color-mix(in srgb,var(--a,#fff) 60%,var(--b,#fff))", {"--b": "#000"}) == pytest.approx((0.6,) * 3)


@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.parametrize("name", ["light", "dark", "dark-high-contrast"])
def test_in_jupyterlab_each_theme_has_the_colours_and_they_are_readable(name, colour):
    variables = theme(name)
    assert not [used for used in re.findall(r"--[a-z0-9-]+", colour) if used not in variables]
    for background in BACKGROUNDS:
        assert contrast(rgb(colour, variables), rgb(variables[background], variables)) >= ENOUGH, background


@pytest.mark.parametrize("colour", COLOURS)
def test_without_jupyterlab_the_colours_are_readable_on_white_and_on_the_dark_pages_of_the_site(colour):
    assert contrast(rgb(colour, {}), rgb("white", {})) >= ENOUGH
    options = runpy.run_path(str(HOME / "docs/sphinx/conf.py"))["html_theme_options"]
    dark = {f"--{name}": value for name, value in options["dark_css_variables"].items()}
    assert contrast(rgb(colour, dark), rgb(dark["--color-background-primary"], {})) >= ENOUGH
