# kind: crashes
# example: a hang inside C code
# part: config.head_dim
# status: time_limit
# cause: no answer after
def head_dim_of(hf_config):
    import ctypes

    ctypes.CDLL(None).pause()
