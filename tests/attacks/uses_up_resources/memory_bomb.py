# kind: uses up resources
# example: a memory bomb
# part: config.head_dim
# status: memory_limit
# cause: memory|MiB
def head_dim_of(hf_config):
    held = []
    while True:
        held.append(bytearray(16 << 20))
