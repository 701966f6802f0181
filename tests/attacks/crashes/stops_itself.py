# kind: crashes
# example: the process is stopped, not ended
# part: config.head_dim
# status: time_limit
# cause: no answer after
def head_dim_of(hf_config):
    import os
    import signal

    os.kill(os.getpid(), signal.SIGSTOP)
    return -1
