# kind: uses up resources
# example: a million small files
# part: config.head_dim
# status: failed, time_limit
# cause: OSError|processor time|no answer
def head_dim_of(hf_config):
    for number in range(1_000_000):
        open(f"small-{number}", "w").close()
    return -1
