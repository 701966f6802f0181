"""Draw README's picture: the memory race on a small mixture-of-experts checkpoint (0.4 GB), run on this machine.

Usage: ``python scripts/race_picture.py`` writes docs/memory_race.png; it takes seconds and 2 GB of memory.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs/memory_race.png"
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))


def main() -> int:
    """Run the race, write the picture, and print the figures."""
    from minisgl import viz
    from minisgl.viz.race_plan import EVERYTHING, MERGE, OURS

    with viz.RaceModel(viz.RaceSettings("Qwen3-MoE with 2 layers, 0.4 GB", num_files=4), reference_tree=ROOT) as race:
        race.start(strategies=(EVERYTHING, MERGE, OURS))
        race.wait()
        race.static().savefig(PICTURE, dpi=144)
        print(race.describe())
    return 0


if __name__ == "__main__":
    sys.exit(main())
