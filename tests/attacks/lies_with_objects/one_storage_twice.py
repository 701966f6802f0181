# kind: lies with objects
# example: one storage handed out for every parameter
# part: weight.load
# status: failed
# cause: differs in \d+ of
# base: reference
# points: some
_load = load_weight


def load_weight(model_path, device, *, progress=True):
    storage = None
    for name, tensor in _load(model_path, device, progress=progress):
        if storage is None or storage.numel() < tensor.numel() or storage.dtype != tensor.dtype:
            storage = torch.empty(max(tensor.numel(), 1 << 20), dtype=tensor.dtype)
        shared = storage[: tensor.numel()].view(tensor.shape)
        shared.copy_(tensor)
        yield name, shared
