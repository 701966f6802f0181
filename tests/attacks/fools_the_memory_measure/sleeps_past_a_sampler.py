# kind: fools the memory measure
# example: everything is held for an instant only
# part: weight.load
# status: failed
# cause: at its peak|memory|MiB|processes|No space|raised|crashed|share
# base: reference
# points: some
_load = load_weight


def load_weight(model_path, device, *, progress=True):
    everything = list(_load(model_path, device, progress=progress))
    names = [name for name, _ in everything]
    del everything
    for name, tensor in _load(model_path, device, progress=progress):
        yield name, tensor
