# kind: uses up resources
# example: one huge line
# part: config.head_dim
# status: output_limit
# cause: printed
def head_dim_of(hf_config):
    import sys

    sys.stderr.write("x" * (8 << 20))
    return -1
