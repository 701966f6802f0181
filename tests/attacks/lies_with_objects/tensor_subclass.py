# kind: lies with objects
# example: a tensor subclass that lies about its shape
# part: weight.merge
# status: refused
# cause: plain data was expected
# base: reference
# points: some
class Liar(torch.Tensor):
    @property
    def shape(self):
        return torch.Size([1])


_merge = merge_stream


def merge_stream(stream, config):
    for name, tensor in _merge(stream, config):
        yield name, tensor.clone().as_subclass(Liar)
