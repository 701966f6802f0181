# kind: lies with objects
# example: an error whose text holds every name there is, whatever was asked
# part: config.sizes
# status: failed
# cause: raises an error whatever it is asked
def sizes_of(hf_config):
    names = "num_hidden_layers num_attention_heads num_key_value_heads hidden_size intermediate_size vocab_size"
    raise ConfigError(f"{names} {vars(hf_config)}")
