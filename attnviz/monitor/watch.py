"""`attnviz.watch`: the attention of a model while it trains, in any loop, every tenth step."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

from attnviz import store
from attnviz.errors import InvalidOption, InvalidRecord
from attnviz.monitor.alarms import Alarm, HeadNumbers
from attnviz.monitor.look import Look
from attnviz.monitor.run import FILES, MEASURES, WatchedRun, summarize_layers

SEEN = "Seen is scaled_dot_product_attention, and a softmax that is multiplied with states, in the model's own forward."
HOOKS = ("on_", "setup", "teardown", "state_", "load_state_dict")  # how names begin that trainers call and we need not
LINE = "layer {:<3} score {:8.1f} · entropy {:.2f} · first token {:.2f} · previous {:.2f}"  # within 80 columns
BACK = "\x1b[{}F\x1b[J"  # so many lines up, and all from there is cleared


class Watch:
    """Watch the attention of a model while it trains, in any loop.

    Every tenth step one text of the batch is looked at, from 32 queries, beside the kernels that the model chose: the
    largest score of each head, the entropy of its weights over the most possible, and the shares that it gives to the
    first token and to the previous one. On a terminal there is a line for each layer. Where a head's scores explode or
    its entropy collapses, an alarm says so, with step and head.

    `with watch.step():` stands around each step. Of a Trainer of transformers or of Lightning the watch is a callback,
    `callbacks=[watch]`. A step whose batch is empty, or whose first text is all padding, is skipped, and said. `alarms`
    lists what was found wrong so far, each kind once for a head. `numbers()` returns a row for each step, layer and
    head: `max_score`, a logit, and the shares `entropy` (of the most possible), `first` and `previous`.

    Args:
        model: the module whose forward runs in each step.
        out: a new folder for the numbers, Parquet as it goes; `attnviz render FOLDER` draws them. None: no files.
        every: look at each step that this divides.
        writers: of other logs: a `SummaryWriter` of TensorBoard, `wandb`, or a run of it.
        healthy: the folder of an earlier run that went well. Alarms are then for scores above twice its largest and
            entropies below half of its lowest, in the place of fixed limits; each alarm says what it was held against.
        is_quiet: write nothing to the terminal.

    Raises:
        InvalidOption: for what is no module, for `every` below 1, and for an `out` that holds a watched run.
        InvalidRecord: for a `healthy` that holds none.

    Examples:
        >>> import torch, attnviz
        >>> model = torch.nn.TransformerEncoderLayer(8, 2, batch_first=True)
        >>> watch = attnviz.watch(model)
        >>> for _ in range(11):
        ...     with watch.step():
        ...         loss = model(torch.randn(4, 16, 8)).square().mean()
        ...         loss.backward()
        >>> len(watch.numbers()), watch.alarms  # steps 0 and 10 of 2 heads
        (4, [])
    """

    def __init__(
        self,
        model: nn.Module,
        out: str | Path | None = None,
        *,
        every: int = 10,
        writers: Sequence[Any] = (),
        healthy: str | Path | None = None,
        is_quiet: bool = False,
    ) -> None:
        if not isinstance(model, nn.Module):
            raise InvalidOption(f"model is {type(model).__name__}", hint="Give the torch.nn.Module that is trained.")
        if not isinstance(every, int) or every < 1:
            raise InvalidOption(f"every={every!r} is not a number of steps, 1 or more")
        folder = None if out is None else store.check_output_folder(str(out))
        self._run = WatchedRun(folder, None if healthy is None else Path(healthy))
        if folder is not None:
            if any(folder.glob(FILES)):
                raise InvalidOption(f"{folder} holds a watched run", hint="Choose another folder.")
            store.make_folder(folder)
        self.alarms, self.numbers = self._run.alarms, self._run.numbers
        self._model, self._every, self._writers, self._is_quiet = model, every, writers, is_quiet
        self._next, self._is_due = 0, False  # step
        self._look: Look | None = None  # at the pass of this step
        self._hooks = ExitStack()
        self.close = self._hooks.close  # of a step that was begun, and comes to no end

    @contextmanager
    def step(self) -> Iterator[None]:
        """Watch one step of training: the first forward pass in the block, if it is this step's turn.

        Raises InvalidRecord where nothing attended, and OutputError when the disk refuses.
        """
        self.begin(self._next)
        with self._hooks:
            yield
        self.end()

    def begin(self, step: int) -> None:
        """Begin the step of this number."""
        self.close()
        self._next, self._look = step + 1, None
        self._is_due = step % self._every == 0 and step not in self._run.looks
        if not self._is_due:
            return
        if "torch._dynamo" in sys.modules:  # in compiled code no operator is seen: this step runs without it
            self._hooks.enter_context(torch.compiler.set_stance("force_eager"))
        # Of several passes, as where gradients are accumulated, the first: as it ends, it takes the hooks away.
        self._hooks.callback(self._model.register_forward_hook(lambda *_: self.close(), always_call=True).remove)
        self._hooks.callback(self._model.register_forward_pre_hook(self._enter).remove)

    def end(self) -> list[Alarm]:
        """End a step, keep what was seen, and return what is newly wrong. Raises as `step` does."""
        self.close()
        look, step = self._look, self._next - 1
        if not self._is_due:
            return []
        if look is not None and (look.is_padding or (look.is_empty and not look.values)):
            why = "the first text of the batch is all padding" if look.is_padding else "the batch is empty"
            if not self._is_quiet:
                sys.stderr.write(f"attention at step {step}: skipped, {why}\n")
            return []
        if look is None or not look.values:
            raise InvalidRecord(f"step {step}: no attention in {type(self._model).__name__}", hint=SEEN)
        # layers of fewer heads than others are filled up
        both = [pad_sequence(of, batch_first=True, padding_value=np.nan) for of in (look.values, look.maps)]
        values, maps = (of.cpu().double().numpy() for of in both)
        new = self._run.add(step, values, maps.round(2))
        if not self._is_quiet:
            show_look(step, values, new, is_first=len(self._run.looks) == 1)
        for writer in self._writers:
            log_scalars(writer, step, values)
        return new

    def _enter(self, model: nn.Module, *_: object) -> None:
        self._look = self._hooks.enter_context(Look(model))

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Begin a step of transformers' Trainer."""
        self.begin(state.global_step)

    def on_train_batch_start(self, trainer: Any, *_: Any) -> None:
        """Begin a step of Lightning's Trainer."""
        self.begin(trainer.global_step)

    def on_step_end(self, *_: Any, **named: Any) -> None:
        """End a step of either."""
        self.end()

    on_train_batch_end = on_step_end

    def __getattr__(self, name: str) -> Any:
        """Do nothing at the other moments that trainers tell their callbacks of."""
        if name.startswith(HOOKS):
            return lambda *_, **named: None
        raise AttributeError(f"a watch has no attribute {name!r}")


def show_look(step: int, look: HeadNumbers, alarms: Sequence[Alarm], *, is_first: bool) -> None:
    """Write one look over the last one on a terminal; elsewhere, as in a file of logs, only alarms. These stay."""
    lines = [f"attention alarm, {alarm}" for alarm in alarms]
    if sys.stderr.isatty():
        of_layers = [LINE.format(layer, *extremes) for layer, extremes in enumerate(summarize_layers(look))]
        sys.stderr.write("" if is_first else BACK.format(len(of_layers) + 1))
        lines += [f"attention at step {step}, the extremes of each layer's heads", *of_layers]
    sys.stderr.writelines(f"{line}\n" for line in lines)


def log_scalars(writer: Any, step: int, look: HeadNumbers) -> None:
    """Hand the numbers of each head to a SummaryWriter of TensorBoard, or to wandb or one of its runs."""
    names = [f"attention/{name}/{layer}.{head}" for layer, head in np.ndindex(*look.shape[:2]) for name in MEASURES]
    scalars = dict(zip(names, look.ravel().tolist(), strict=True))
    if not hasattr(writer, "add_scalar"):
        writer.log(scalars, commit=False)  # into the row of the step that the loop itself logs
        return
    for name, value in scalars.items():
        writer.add_scalar(name, value, step)


watch = Watch
