# kind: borrows the answer
# example: stack frames are searched for an expectation
# part: config.head_dim
# status: failed
# cause: isn't what was expected
def head_dim_of(hf_config):
    import sys

    frame = sys._getframe()
    while frame is not None:
        for name, value in list(frame.f_locals.items()):
            if name in ("expected", "hidden", "case") or (isinstance(value, dict) and "expected" in value):
                raise RuntimeError("BORROWED")
        frame = frame.f_back
    return -1
