"""The projections that a loader splits or merges, by their names in a checkpoint. Each table stands here only."""

# The dimension that tensor parallelism splits, by projection. What isn't here stays whole.
SPLIT_DIM = {
    **dict.fromkeys(("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj", "embed_tokens", "lm_head"), 0),
    **dict.fromkeys(("o_proj", "down_proj"), 1),
}

# What the model holds as one matrix, and the projections that the checkpoint stores, in row order.
MERGED = {"qkv_proj": ("q_proj", "k_proj", "v_proj"), "gate_up_proj": ("gate_proj", "up_proj")}
