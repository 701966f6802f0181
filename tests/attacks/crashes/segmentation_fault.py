# kind: crashes
# example: a segmentation fault
# part: config.head_dim
# status: crashed
# cause: SIGSEGV
def head_dim_of(hf_config):
    import ctypes

    ctypes.string_at(0)
