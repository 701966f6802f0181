# kind: leaves early
# example: os._exit(0) when the module is imported
# part: config.head_dim
# status: crashed
# cause: left early, with exit code 0
import os

os._exit(0)


def head_dim_of(hf_config):
    return -1
