# kind: leaves early
# example: a forged skip
# part: config.head_dim
# status: failed
# cause: Skipped|ModuleNotFoundError
def head_dim_of(hf_config):
    import pytest

    pytest.skip("nothing to see here")
