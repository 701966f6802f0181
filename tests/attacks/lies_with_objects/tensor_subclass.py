# kind: lies with objects
# example: a tensor subclass that lies about its shape
# part: weight.shard_tensor
# status: refused
# cause: plain data was expected
class Liar(torch.Tensor):
    @property
    def shape(self):
        return torch.Size([1])


def shard_tensor(key, tensor, config, tp_rank, tp_size):
    piece = tensor[shard_slice(key, tuple(tensor.shape), config, tp_rank, tp_size)]
    return piece.clone().as_subclass(Liar)
