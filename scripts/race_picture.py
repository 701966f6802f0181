"""Draw README's picture: three ways to load a small checkpoint (0.2 GB), measured on this machine.

Usage: ``python scripts/race_picture.py`` writes docs/memory_race.svg (it follows a dark theme) and docs/memory_race.png (for
previews of links); it takes seconds and 1 GB of memory.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs/memory_race.svg"
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

if TYPE_CHECKING:
    from minisgl.viz.drawing import Picture

LABELS = {
    "build": ("build the model, read, merge, copy", "#D55E00"),
    "merge": ("read everything, then merge", "#E69F00"),
    "ours": ("plan first, fill in place (this course)", "#0072B2"),
}
THEME = "<style>svg{color:#1a1a1a}@media(prefers-color-scheme:dark){svg{color:#f0f0f0}}</style><defs>"


def draw(peaks: dict[str, int], model_bytes: int) -> "Picture":
    """Draw one bar for each way and one sentence above them."""
    from minisgl.viz.drawing import Picture, mib

    times = peaks["build"] / model_bytes
    sentence = f"Memory needed to read a model of {mib(model_bytes)} and hand it on"
    picture = Picture(720, 186, f"{sentence}: {', '.join(f'{LABELS[way][0]} {mib(size)}' for way, size in peaks.items())}.")
    picture.text(8, 24, sentence, size=18, bold=True)
    for index, (way, size) in enumerate(peaks.items()):
        y, width = 44 + 42 * index, 320 * size / max(peaks.values())
        picture.text(280, y + 20, LABELS[way][0], size=13.5, anchor="end")
        picture.rect(290, y, width, 28, LABELS[way][1], edge="none")
        picture.text(298 + width, y + 20, mib(size), size=14, bold=True)
    last = f"Planned ahead, loading takes the room of one tensor, not {times:.1f} times the model."
    picture.text(8, 176, last, size=14)
    return picture


def main() -> int:
    """Run the race, write both pictures, and print the figures."""
    from minisgl import viz

    settings = viz.RaceSettings(num_files=3, keep=False)
    with viz.RaceModel(settings, reference_tree=ROOT) as race:
        race.start(strategies=tuple(LABELS))
        race.wait()
        print(race.describe())
        assert race.stored is not None
        picture = draw({way: lane.measured_bytes or 0 for way, lane in race.lanes.items()}, race.stored.num_bytes)
    PICTURE.write_text(picture.to_svg().replace("<defs>", THEME, 1) + "\n", encoding="utf-8")
    picture.to_figure().savefig(PICTURE.with_suffix(".png"), dpi=144)
    return 0


if __name__ == "__main__":
    sys.exit(main())
