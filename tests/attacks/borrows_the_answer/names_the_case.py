# kind: borrows the answer
# example: a function that isn't written is named after the question, so that the report tells it
# part: config.head_dim
# status: not_written
# cause: isn't written yet
import types


def _unwritten():
    raise NotImplementedError


def head_dim_of(hf_config):
    code = _unwritten.__code__.replace(co_name=f"width {hf_config.hidden_size}")
    return types.FunctionType(code, {"NotImplementedError": NotImplementedError})()
