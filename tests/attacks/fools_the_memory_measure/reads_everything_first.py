# kind: fools the memory measure
# example: everything is read first
# part: weight.load
# status: failed
# cause: at its peak|memory|MiB|processes|No space|raised|crashed|share
# base: reference
# points: some
_load = load_weight


def load_weight(model_path, device, *, progress=True):
    yield from list(_load(model_path, device, progress=progress))
