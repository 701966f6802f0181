"""nbgrader's configuration of this course: run its commands in this folder.

solutions/ is the source directory, notebooks/ the release directory. Our judge stands in the place of nbgrader's own
execution of notebooks (see autograder/nbgrader_support.py); everything else is nbgrader's.
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
if os.path.isdir(os.path.join(HERE, "autograder")) and HERE not in sys.path:
    sys.path.insert(0, HERE)
# nbgrader calls `alembic` by name when it makes a gradebook; it lies beside this Python, whether or not that is activated.
os.environ["PATH"] = os.path.dirname(sys.executable) + os.pathsep + os.environ.get("PATH", "")

from nbconvert.preprocessors import ClearMetadataPreprocessor  # noqa: E402
from nbgrader import preprocessors as stock  # noqa: E402
from nbgrader.validator import Validator  # noqa: E402

from autograder.nbgrader_support import (  # noqa: E402
    GradeParts,
    MendCells,
    ReadOrExplain,
    ValidateParts,
    expect_unsaved_rows,
)

expect_unsaved_rows()
c = get_config()

c.CourseDirectory.course_id = "minisgl"
c.CourseDirectory.root = HERE
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "notebooks"

c.Autograde.exporter_class = ReadOrExplain
c.Autograde.sanitize_preprocessors = [
    MendCells,
    stock.ClearOutput,
    stock.DeduplicateIds,
    stock.OverwriteKernelspec,
    stock.OverwriteCells,
    stock.CheckCellMetadata,
]
c.Autograde.autograde_preprocessors = [
    GradeParts,
    stock.IgnorePattern,
    ClearMetadataPreprocessor,
    stock.LimitOutput,
    stock.SaveAutoGrades,
    stock.AssignLatePenalties,
    stock.CheckCellMetadata,
]
c.ClearMetadataPreprocessor.preserve_cell_metadata_mask = [("nbgrader",)]
Validator.preprocessors.tag(config=True)  # nbgrader forgets to: without this the next line has no effect
c.Validator.preprocessors = [stock.CheckCellMetadata, stock.ClearOutput, ValidateParts]

# For a run of nbgrader's own execution step: a first check waits until its worker is warm.
c.Execute.timeout = 300
