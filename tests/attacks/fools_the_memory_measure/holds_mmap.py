# kind: fools the memory measure
# example: copies are held in anonymous maps
# part: weight.load
# status: failed
# cause: at its peak|memory|MiB|processes|No space|raised|crashed|share
# base: reference
# points: some
_load = load_weight


def load_weight(model_path, device, *, progress=True):
    import mmap

    held = []
    for name, tensor in _load(model_path, device, progress=progress):
        part = mmap.mmap(-1, max(tensor.nbytes, 1))
        part.write(tensor.contiguous().view(torch.uint8).numpy().tobytes() if tensor.nbytes else b"")
        held.append(part)
        yield name, tensor
