# kind: honest bad luck
# example: a wrong submission
# part: config.head_dim
# status: failed
# cause: isn't what was expected
def head_dim_of(hf_config):
    return -1
