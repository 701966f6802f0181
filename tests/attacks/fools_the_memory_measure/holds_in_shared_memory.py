# kind: fools the memory measure
# example: copies are held in shared memory
# part: weight.load
# status: failed
# cause: at its peak|memory|MiB|processes|No space|raised|crashed|share|File too large
# base: reference
# points: some
_load = load_weight


def load_weight(model_path, device, *, progress=True):
    held = []
    for name, tensor in _load(model_path, device, progress=progress):
        held.append(tensor.clone().share_memory_())
        yield name, tensor
