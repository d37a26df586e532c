"""What `attnviz changed` reads."""

from dataclasses import replace

from attnviz.bounded import expand_path, is_file
from attnviz.commands.changed.spec import ChangedSpec
from attnviz.errors import InvalidModel
from attnviz.inputs import Inputs, leave_out_copies, read_inputs
from attnviz.models.decomposition import Decomposable
from attnviz.models.loading import find_model


def changed_inputs(spec: ChangedSpec) -> Inputs:
    """Read two models, or one and a folder of LoRA, and the texts.

    Raises InvalidModel, InvalidOption, InvalidSource.
    """
    from attnviz.models.huggingface.files import ADAPTER, CONFIG  # what reads the hub comes with it

    folder = expand_path(spec.tuned, InvalidModel)
    is_adapter = is_file(folder / ADAPTER) and not is_file(folder / CONFIG)
    names = (spec.base,) if is_adapter else (spec.base, spec.tuned)
    references = [find_model(replace(spec.model, model=name)).answering(Decomposable) for name in names]
    for reference in references:
        if reference.works_by_hand:
            raise InvalidModel(f"{reference} is not of transformers", hint="Give smollm2, or folders such as of BERT.")
        reference.check()
    inputs = read_inputs(references, spec.text, every=True, out=spec.figure.out)
    documents, copies = leave_out_copies(inputs.documents)
    corpus = replace(inputs.corpus, notices=(*inputs.corpus.notices, *copies))
    files = {each.name: each for each in folder.glob("adapter_*")} if is_adapter else {}
    return replace(inputs, corpus=corpus, documents=documents[: spec.texts], files=files)
