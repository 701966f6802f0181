# kind: lies with objects
# example: a str subclass that equals everything
# part: config.architecture
# status: refused
# cause: plain data was expected
class Agreeable(str):
    def __eq__(self, other):
        return True

    __hash__ = str.__hash__


def architecture_of(hf_config):
    return Agreeable("?")
