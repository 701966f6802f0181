# kind: lies with objects
# example: the right shape, wrong order
# part: weight.merge
# status: failed
# cause: differs in \d+ of
# base: reference
# points: some
_merge = merge_stream


def merge_stream(stream, config):
    for name, tensor in _merge(stream, config):
        yield name, tensor.flip(0)
