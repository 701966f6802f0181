"""nbgrader's configuration of this course: run its commands in this folder.

solutions/ is the source directory, notebooks/ the release directory. Our judge stands in the place of nbgrader's own
execution of notebooks (see autograder/student/validate.py and autograder/classroom/nbgrader.py); everything else is nbgrader's.
"""

import os
import sys
from importlib.util import find_spec

HERE = os.path.dirname(os.path.abspath(__file__))
if os.path.isdir(os.path.join(HERE, "autograder")) and HERE not in sys.path:
    sys.path.insert(0, HERE)
# nbgrader calls `alembic` by name when it makes a gradebook; it lies beside this Python, whether or not that is activated.
os.environ["PATH"] = os.path.dirname(sys.executable) + os.pathsep + os.environ.get("PATH", "")

from nbgrader import preprocessors as stock  # noqa: E402
from nbgrader.validator import Validator  # noqa: E402

from autograder.student.validate import ValidateParts  # noqa: E402

c = get_config()

c.CourseDirectory.course_id = "minisgl"
c.CourseDirectory.root = HERE
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "notebooks"

if find_spec("autograder.classroom"):  # a student kit has only Validate
    from autograder.classroom.nbgrader import configure

    configure(c)
Validator.preprocessors.tag(config=True)  # nbgrader forgets to: without this the next line has no effect
c.Validator.preprocessors = [stock.CheckCellMetadata, stock.ClearOutput, ValidateParts]

# For a run of nbgrader's own execution step: a first check waits until its worker is warm.
c.Execute.timeout = 300
