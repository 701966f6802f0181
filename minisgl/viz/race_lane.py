"""One lane of a memory race: what its process reported so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from minisgl.viz.race_plan import STRATEGIES, Prediction


@dataclass
class Lane:
    """One strategy's run.

    Attributes:
        strategy: A key of ``STRATEGIES``.
        prediction: What it must take.
        status: waiting, starting, running, finished, stopped, failed, or "too large" (never started).
        baseline: The process's memory before it loaded; sizes below are above it.
        samples: (seconds, anonymous bytes or None, file-backed bytes or None, resident bytes, live tensor bytes).
        events: (seconds, kind, name, bytes).
        done_bytes: Bytes read and bytes handed out so far, of ``total_bytes``.
        counted_bytes: Exact peak of live tensors, counted.
        kernel_bytes: Peak of resident memory by the kernel's high-water mark; None where it can't be reset.
        message: Why it failed or wasn't started.
    """

    strategy: str
    prediction: Prediction
    total_bytes: int
    status: str = "waiting"
    baseline: dict[str, Any] = field(default_factory=dict)
    samples: list[tuple[float, int | None, int | None, int, int]] = field(default_factory=list)
    events: list[tuple[float, str, str, int]] = field(default_factory=list)
    done_bytes: int = 0
    counted_bytes: int | None = None
    kernel_bytes: int | None = None
    message: str = ""
    pid: int | None = None

    @property
    def label(self) -> str:
        """The strategy in words."""
        return STRATEGIES[self.strategy]

    @property
    def measured_bytes(self) -> int | None:
        """Largest sampled anonymous memory; resident memory where the system doesn't tell the two apart."""
        values = [sample[1] if sample[1] is not None else sample[3] for sample in self.samples]
        return max(values, default=None)

    @property
    def duration_s(self) -> float:
        """Seconds of the load so far."""
        return self.samples[-1][0] if self.samples else 0.0

    def take(self, line: dict[str, Any]) -> None:
        """Take in one line that the process wrote."""
        kind = line.pop("line")
        if kind == "start":
            self.baseline, self.status = line["baseline"], "running"
        elif kind == "sample":
            above = [
                line[name] - self.baseline[name] if line[name] is not None else None
                for name in ("anonymous_bytes", "file_backed_bytes", "resident_bytes")
            ]
            self.samples.append((line["time_s"], *above, line["live_tensor_bytes"]))
        elif kind == "event":
            self.events.append((line["time_s"], line["kind"], line["name"], line["num_bytes"]))
            self.done_bytes += line["num_bytes"] if line["kind"] in ("read", "yield") else 0
        elif kind == "done":
            self.counted_bytes, self.kernel_bytes, self.status = (
                line["counted_bytes"],
                line["resident_bytes"],
                "finished",
            )
        elif kind == "failed":
            self.status, self.message = "failed", line["message"]
