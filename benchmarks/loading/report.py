"""Gather measured loads, and print them as tables with every target beside its figure."""

from dataclasses import dataclass, field
from statistics import median

from benchmarks.loading.process import Load

MIB = 2**20


@dataclass
class Report:
    """Collect the targets of all sections for the summary at the end."""

    targets: list[tuple[str, str, str, bool]] = field(default_factory=list)

    def section(self, title: str) -> None:
        """Start a section."""
        print(f"\n== {title}\n", flush=True)

    def target(self, what: str, wanted: str, figure: str, is_met: bool) -> None:
        """Note one target and its figure."""
        self.targets.append((what, wanted, figure, is_met))
        print(f"   {'met   ' if is_met else 'MISSED'}  {what}: {figure} (target {wanted})", flush=True)

    def at_most(self, what: str, value: float, limit: float, unit: str = "") -> None:
        """Note a target that is an upper limit."""
        self.target(what, f"<= {limit:,.2f}{unit}", f"{value:,.2f}{unit}", value <= limit)

    def at_least(self, what: str, value: float, limit: float, unit: str = "") -> None:
        """Note a target that is a lower limit."""
        self.target(what, f">= {limit:,.2f}{unit}", f"{value:,.2f}{unit}", value >= limit)

    def summary(self) -> bool:
        """Print all targets again; return whether all are met."""
        print("\n== All targets\n")
        width = max(len(what) for what, *_ in self.targets)
        for what, wanted, figure, is_met in self.targets:
            print(f"   {'met   ' if is_met else 'MISSED'}  {what:{width}}  {figure:>16}  {wanted}")
        return all(is_met for *_, is_met in self.targets)


def table(loads: dict[str, list[Load]]) -> None:
    """Print the medians of each way, the spread of its wall time, and the ratio to ours."""
    print(f"   {'way':26}{'wall s':>8}{'(min - max)':>16}{'x ours':>8}{'CPU s':>8}{'x ours':>8}"
          f"{'anon MiB':>10}{'file MiB':>10}{'peak MiB':>10}{'read MiB':>10}{'result':>9}")  # fmt: skip
    ours = loads["ours"]
    for way, runs in loads.items():
        walls = [run.wall_s for run in runs]
        wall_ratio, cpu_ratio = (typical(runs, name) / typical(ours, name) for name in ("wall_s", "cpu_s"))
        spread = f"({min(walls):.2f} - {max(walls):.2f})"
        sizes = [f"{typical(runs, name) / MIB:10,.0f}" for name in ("anon_peak", "file_peak", "peak", "read")]
        print(f"   {way:26}{median(walls):8.2f}{spread:>16}{wall_ratio:8.2f}{typical(runs, 'cpu_s'):8.2f}{cpu_ratio:8.2f}"
              f"{''.join(sizes)}{typical(runs, 'held') / MIB:9,.0f}")  # fmt: skip
    print()


def typical(runs: list[Load], name: str) -> float:
    """Return the median of one figure."""
    return median(getattr(run, name) for run in runs)
