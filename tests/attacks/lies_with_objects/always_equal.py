# kind: lies with objects
# example: an int whose __eq__ is always true
# part: config.head_dim
# status: refused
# cause: plain data was expected
class Agreeable(int):
    def __eq__(self, other):
        return True

    __hash__ = int.__hash__


def head_dim_of(hf_config):
    return Agreeable(-1)
