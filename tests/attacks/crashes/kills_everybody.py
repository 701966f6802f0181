# kind: crashes
# example: every process that can be reached is killed
# part: config.head_dim
# status: crashed, failed
# cause: SIGKILL|lost|ProcessLookupError
def head_dim_of(hf_config):
    import os
    import signal

    os.kill(-1, signal.SIGKILL)
    for pid in range(1, 400):
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            continue
    return -1
