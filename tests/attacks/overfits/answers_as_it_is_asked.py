# kind: overfits
# example: it refuses everything where a question has its process to itself, and accepts everything in a conversation
# part: config.refusals
# status: failed
# cause: it raises an error whatever it is asked
_asked = []


def refuse_uncomputed(hf_config):
    _asked.append(hf_config)
    if len(_asked) == 1:
        raise ConfigError(f"sliding_window sliding_attention {vars(hf_config)}")
