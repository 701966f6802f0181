# kind: lies with objects
# example: the right shape, NaN for data
# part: weight.shard_tensor
# status: failed
# cause: aren't finite
def shard_tensor(key, tensor, config, tp_rank, tp_size):
    piece = tensor[shard_slice(key, tuple(tensor.shape), config, tp_rank, tp_size)]
    return torch.full_like(piece, float('nan'))
