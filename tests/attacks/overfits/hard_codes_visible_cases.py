# kind: overfits
# example: the visible cases are hard-coded
# part: config.head_dim
# status: failed
# cause: none of the hidden ones
def head_dim_of(hf_config):
    visible = {(1024, 16, 128): 128, (48, 6, None): 8, (48, 6, 6): 6}
    given = getattr(hf_config, "head_dim", None)
    if (hf_config.hidden_size, hf_config.num_attention_heads, given) in visible:
        return visible[hf_config.hidden_size, hf_config.num_attention_heads, given]
    return 128 if given else 64
