# kind: crashes
# example: abort
# part: config.head_dim
# status: crashed
# cause: SIGABRT
def head_dim_of(hf_config):
    import os

    os.abort()
