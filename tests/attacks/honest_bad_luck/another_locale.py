# kind: honest bad luck
# example: another locale
# part: config.head_dim
# status: passed
# points: full
def head_dim_of(hf_config):
    import locale
    import os

    os.environ["LC_ALL"] = "de_DE.UTF-8"
    try:
        locale.setlocale(locale.LC_ALL, "")
    except locale.Error:
        pass
    head_dim = getattr(hf_config, "head_dim", None)
    if head_dim is None:
        if hf_config.hidden_size % hf_config.num_attention_heads:
            raise ConfigError(
                f"hidden_size is {hf_config.hidden_size}, num_attention_heads {hf_config.num_attention_heads}, no head_dim"
            )
        head_dim = hf_config.hidden_size // hf_config.num_attention_heads
    if type(head_dim) is not int or head_dim <= 0 or head_dim % 2:
        raise ConfigError(f"head_dim is {head_dim!r}")
    return head_dim
