"""What every right BaseLLMModel is: a layer that promises forward() and can't exist without it."""

import pytest

from autograder.judge.checking import expect


@pytest.mark.part("base.base_llm_model")
def test_a_model_is_a_layer(subject):
    """A model is a BaseOP, so it has state_dict and a strict load_state_dict."""
    base_class = subject.ask("decoder.base_class")
    expect(base_class["is_a_layer"], True, what="is it a BaseOP", hint="derive from BaseOP too: a model is a layer")
    expect(base_class["keys"], ["weight"], what="the keys of a subclass", hint="don't hide BaseOP's state_dict")


@pytest.mark.part("base.base_llm_model", gist=True)
def test_a_model_without_forward_cannot_be_created(subject):
    """Neither BaseLLMModel nor a subclass that forgets forward can be created."""
    base_class = subject.ask("decoder.base_class")
    if base_class["heeds_abstract_methods"]:
        hint = "the class heeds abstract methods but has none: mark forward with @abstractmethod"
    elif base_class["forward_is_abstract"]:
        hint = "forward is marked, but a mark works only in a class that derives from ABC"
    else:
        hint = "forward is marked with @abstractmethod, in a class that derives from ABC: both are needed"
    expect(base_class["created"], False, what="could a BaseLLMModel be created", hint=hint)
    expect(base_class["created_without_forward"], False, what="could a subclass without forward", hint=hint)


@pytest.mark.part("base.base_llm_model")
def test_forward_takes_no_arguments(subject):
    """forward() takes nothing but self: the batch comes from the global context."""
    base_class = subject.ask("decoder.base_class")
    expect(
        base_class["arguments_of_forward"],
        ["self"],
        what="the arguments of forward",
        hint="token ids and positions come from the global context, not as arguments",
    )
    expect(base_class["result_of_forward"], 7, what="a subclass's forward()", hint="a subclass only needs forward")
