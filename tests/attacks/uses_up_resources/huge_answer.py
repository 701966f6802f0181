# kind: uses up resources
# example: an answer of 300 MiB
# part: config.head_dim
# status: refused, memory_limit
# cause: too large|memory|MiB
def head_dim_of(hf_config):
    return "9" * (300 << 20)
