"""What attended while a capture was open, or mixed tokens otherwise, and was not handed over: where, and in words."""

import traceback
from collections.abc import Iterable

from torch import Tensor

from attnviz.display import list_first

MAX_NAMED = 4  # places in a sentence
READ = "scaled_dot_product_attention, flex_attention, nn.MultiheadAttention and softmax(…) @ value can be recorded"
NO_SOFTMAX = (
    f"{READ}. No softmax ran here: a model such as Mamba has none, and other libraries are not seen. "
    "attnviz.from_attentions takes weights of NumPy, say."
)
UNUSED = (
    f"{READ}. {{ran}} ran here, and none was multiplied with states of different tokens as it was: attention in "
    "pieces, such as Longformer's, cannot be put together. attnviz.from_attentions takes weights that the model gives."
)
STANDING_FOR_OTHERS = ("FakeTensor", "FunctionalTensor")  # by name, as importing them takes long
# Where torch calls a model with tensors that stand for others: files of its own, and what people call them.
TRANSFORMS = {
    ("_functorch/vmap.py", "_functorch/eager_transforms.py"): "under torch.vmap or another transform of torch.func",
    ("jit/_trace.py",): "under torch.jit.trace",
}


# What is told of places, by kind, in the order of sentences.
KINDS = {
    "changed": "attention whose weights were changed before the values",
    "mixing": "what mixes tokens otherwise, and so has no weights that sum to 1",
    "pieces": "softmaxes over scores in pieces, which were not multiplied with values as they were",
    "depth": "attention to several states of one token, as of several layers",
    "kernels": "attention in kernels that keep their weights",
    "threads": "modules that ran in another thread",
    "failed": "operators that could not be followed",
    "empty": "attention whose tensors stand for numbers, or for texts of several lengths",
}


class Unread:
    """Places by kind, each as it came."""

    def __init__(self) -> None:
        self.places: dict[str, list[str]] = {kind: [] for kind in KINDS}
        self.n_softmaxes = 0

    def describe_none(self) -> str:
        """Say why nothing was handed over."""
        ran = "1 softmax" if self.n_softmaxes == 1 else f"{self.n_softmaxes} softmaxes"
        return " ".join(self.describe()) or (UNUSED.format(ran=ran) if self.n_softmaxes else NO_SOFTMAX)

    def describe(self) -> tuple[str, ...]:
        """Say in a sentence each what attended, or may have, and was not handed over."""
        found = [(what, self.places[kind]) for kind, what in KINDS.items() if self.places[kind]]
        return tuple(
            f"Not in here: {what}: {list_first(list(dict.fromkeys(places)), MAX_NAMED)}." for what, places in found
        )


def why_unreadable(given: Iterable[Tensor]) -> str:
    """Say where the numbers of some tensors cannot be read, such as "under torch.jit.trace"; "" where they can."""
    for tensor in given:
        if type(tensor).__name__ in STANDING_FOR_OTHERS:
            return "under torch.export or another tracer"
        if tensor.is_meta:
            return "on the meta device"
        if tensor.is_nested:
            return "in nested tensors"
    files = {frame.f_code.co_filename.replace("\\", "/") for frame, _ in traceback.walk_stack(None)}
    return next((where for end, where in TRANSFORMS.items() if any(file.endswith(end) for file in files)), "")
