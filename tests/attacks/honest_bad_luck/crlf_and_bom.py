# kind: honest bad luck
# example: CRLF, a BOM and letters outside ASCII
# saved: with CRLF and a BOM
# part: config.head_dim
# status: passed
# points: full

def head_dim_of(hf_config):
    größe = "ü"  # Größe
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
