# kind: uses up resources
# example: an endless loop that swallows interrupts
# part: config.head_dim
# status: time_limit
# cause: processor time|no answer after
def head_dim_of(hf_config):
    import signal

    for number in range(1, 32):
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
            continue
    while True:
        try:
            while True:
                pass
        except BaseException:
            continue
