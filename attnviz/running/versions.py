"""Which versions of packages the bytes of a figure follow from."""

from importlib.metadata import version

PACKAGES = ("attnviz", "matplotlib", "numpy", "seaborn", "tokenizers", "torch")


def read_versions() -> dict[str, str]:
    """Return the version of each of these packages, by name."""
    return {package: version(package) for package in PACKAGES}
