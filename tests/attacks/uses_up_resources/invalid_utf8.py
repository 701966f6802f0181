# kind: uses up resources
# example: output that isn't UTF-8, and an answer that can't be encoded
# part: config.head_dim
# status: failed
# cause: raised ValueError
def head_dim_of(hf_config):
    import os

    os.write(1, bytes(range(128, 256)) * 4)
    raise ValueError("\ud800 \x1b[31m \u202e")
