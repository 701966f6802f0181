# kind: uses up resources
# example: a thread bomb
# part: config.head_dim
# status: refused, failed, memory_limit, time_limit
# cause: processes or threads|can't start new thread|memory|MiB|no answer|processor
def head_dim_of(hf_config):
    import threading
    import time

    while True:
        threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
