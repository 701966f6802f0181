# kind: uses up resources
# example: the disk is filled
# part: config.head_dim
# status: failed, output_limit, memory_limit, time_limit
# cause: OSError|grew over|MiB|processor|no answer
def head_dim_of(hf_config):
    number = 0
    while number < 64:
        with open(f"big-{number}", "wb") as file:
            for _ in range(64):
                file.write(bytes(1 << 20))
        number += 1
    return -1
