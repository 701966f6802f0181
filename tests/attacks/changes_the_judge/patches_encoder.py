# kind: changes the judge
# example: the encoder of answers is replaced
# part: config.head_dim
# status: refused
# cause: isn't plain data|no known kind
def head_dim_of(hf_config):
    import sys

    for name, module in list(sys.modules.items()):
        if name.endswith("plain") and hasattr(module, "encode"):
            module.encode = lambda value, most: (b'{"$tensor": "t9"}', b"")
    return -1
