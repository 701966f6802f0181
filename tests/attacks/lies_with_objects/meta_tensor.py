# kind: lies with objects
# example: the right shape without data: the meta device
# part: weight.shard_tensor
# status: failed, refused
# cause: isn't a tensor with data
def shard_tensor(key, tensor, config, tp_rank, tp_size):
    piece = tensor[shard_slice(key, tuple(tensor.shape), config, tp_rank, tp_size)]
    return torch.empty_like(piece, device='meta')
