# kind: leaves something behind
# example: threads that go on
# part: config.head_dim
# status: failed
# cause: isn't what was expected
def head_dim_of(hf_config):
    import threading
    import time

    for _ in range(4):
        threading.Thread(target=time.sleep, args=(600,)).start()
    return -1
