# kind: lies with objects
# example: __class__ says int
# part: config.head_dim
# status: refused
# cause: plain data was expected
class Liar:
    __class__ = int

    def __eq__(self, other):
        return True


def head_dim_of(hf_config):
    return Liar()
