# kind: lies with objects
# example: the right shape without data: the meta device
# part: weight.merge
# status: failed, refused
# cause: isn't a tensor with data
# base: reference
# points: some
_merge = merge_stream


def merge_stream(stream, config):
    for name, tensor in _merge(stream, config):
        yield name, torch.empty_like(tensor, device='meta')
