# kind: leaves something behind
# example: atexit and finalizers that fire after the verdict
# part: config.head_dim
# status: failed
# cause: isn't what was expected
class Late:
    def __del__(self):
        import os

        os.write(1, b"passed")
        while True:
            pass


def head_dim_of(hf_config):
    import atexit

    global kept
    kept = Late()
    atexit.register(Late)
    return -1
