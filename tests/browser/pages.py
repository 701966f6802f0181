"""What a test does in JupyterLab, by the keyboard and the mouse."""

import os
import time
from pathlib import Path

PICTURES = Path(os.environ.get("COURSE_SCREENSHOTS", "/tmp/course-screenshots"))
CELL_LIMIT_S = 60


class Notebook:
    """An open notebook; cells are named by their id in the file."""

    def __init__(self, page, lab, path):
        self.page = page
        page.goto(f"{lab}/lab/tree/{path}?reset")
        page.wait_for_function(
            """path => {
                const panel = window.jupyterapp?.shell.currentWidget;
                return panel?.context?.path === path && panel.context.isReady && panel.content.widgets.length > 5
                    && panel.sessionContext.session?.kernel?.status === 'idle';
            }""",
            arg=path,
            timeout=90_000,
        )

    def cell(self, cell_id):
        """Bring a cell into view and return it."""
        self.page.evaluate(
            """id => {
                const panel = window.jupyterapp.shell.currentWidget;
                const index = panel.content.widgets.findIndex(cell => cell.model.id === id);
                if (index < 0) {
                    const known = panel.content.widgets.map(cell => cell.model.id);
                    throw new Error(`${panel.context.path} has no cell ${id}; it has ${known}`);
                }
                panel.content.activeCellIndex = index;
                return panel.content.scrollToItem(index, 'center');
            }""",
            cell_id,
        )
        self.page.wait_for_timeout(150)
        return self.page.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-Cell.jp-mod-active")

    def write(self, cell_id, text):
        """Replace a cell's text as a student does: click, select all, type (here: insert)."""
        editor = self.cell(cell_id).locator(".cm-content")
        editor.click()
        self.page.keyboard.press("Control+A")
        self.page.keyboard.insert_text(text)

    def run(self, cell_id):
        """Run a cell with Control+Enter and return the text of its outputs."""
        cell = self.cell(cell_id)
        cell.locator(".jp-InputPrompt").click()
        before = self._count(cell_id)
        self.page.keyboard.press("Control+Enter")
        deadline = time.monotonic() + CELL_LIMIT_S
        while time.monotonic() < deadline:
            if self._count(cell_id) not in (None, before):
                self.page.wait_for_timeout(200)
                outputs = cell.locator(".jp-OutputArea-output")
                return "\n".join(outputs.all_inner_texts())
            self.page.wait_for_timeout(100)
        self.screenshot("failed")
        raise AssertionError(f"cell {cell_id} didn't finish in {CELL_LIMIT_S} s; see {self.picture('failed')}")

    def _count(self, cell_id):
        return self.page.evaluate(
            """id => window.jupyterapp.shell.currentWidget.content.widgets
                .find(cell => cell.model.id === id).model.executionCount""",
            cell_id,
        )

    def run_all(self):
        """Run every cell, as Run > Run All Cells does, and wait until the last one is done."""
        self.page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-all-cells')")
        self.page.wait_for_function(
            """() => {
                const panel = window.jupyterapp.shell.currentWidget;
                const code = panel.content.widgets.filter(cell => cell.model.type === 'code');
                return panel.sessionContext.session?.kernel?.status === 'idle'
                    && code.every(cell => cell.model.executionCount !== null && cell.model.executionState !== 'running');
            }""",
            timeout=60_000,
        )

    def document(self):
        """Return the notebook as it stands on the page, outputs included."""
        return self.page.evaluate("() => window.jupyterapp.shell.currentWidget.content.model.toJSON()")

    def close(self):
        """Stop the kernel and close the notebook without saving it."""
        self.page.evaluate(
            """async () => {
                const panel = window.jupyterapp.shell.currentWidget;
                await panel.sessionContext.shutdown();
                await panel.context.revert();
                panel.close();
            }"""
        )

    def save(self):
        """Save with Control+S and wait until it is done."""
        self.page.keyboard.press("Control+S")
        self.page.wait_for_function("() => !window.jupyterapp.shell.currentWidget.context.model.dirty", timeout=30_000)

    def picture(self, name):
        PICTURES.mkdir(parents=True, exist_ok=True)
        return PICTURES / f"{name}.png"

    def screenshot(self, name, cell_id=None):
        if cell_id:
            self.cell(cell_id)
        self.page.screenshot(path=self.picture(name))


def click_validate(page):
    """Press nbgrader's Validate and return what its dialog says."""
    page.get_by_role("button", name="Validate").first.click()
    dialog = page.locator(".jp-Dialog")
    dialog.wait_for(timeout=180_000)
    return dialog.inner_text()
