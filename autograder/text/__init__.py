"""From the text of cells and files to the modules under judgement. Nothing is run."""
