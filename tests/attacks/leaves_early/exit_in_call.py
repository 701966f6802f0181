# kind: leaves early
# example: os._exit(0) in a call
# part: config.head_dim
# status: crashed
# cause: left early, with exit code 0
def head_dim_of(hf_config):
    import os

    os._exit(0)
