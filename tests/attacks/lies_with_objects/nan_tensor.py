# kind: lies with objects
# example: the right shape, NaN for data
# part: weight.merge
# status: failed
# cause: aren't finite
# base: reference
# points: some
_merge = merge_stream


def merge_stream(stream, config):
    for name, tensor in _merge(stream, config):
        yield name, torch.full_like(tensor, float('nan'))
