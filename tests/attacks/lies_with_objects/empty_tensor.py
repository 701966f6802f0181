# kind: lies with objects
# example: the right shape without data: torch.empty
# part: weight.shard_tensor
# status: failed
# cause: holds numbers that aren't finite
def shard_tensor(key, tensor, config, tp_rank, tp_size):
    piece = tensor[shard_slice(key, tuple(tensor.shape), config, tp_rank, tp_size)]
    return torch.empty(piece.shape, dtype=piece.dtype)
