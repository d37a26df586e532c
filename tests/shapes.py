"""Shapes are checked where arrays come and go, and nowhere else: jaxtyping's hook binds the arguments of every call.

Most calls pass no array. Checking those too takes half of the time of tests, and mypy knows their types.
"""

import re
import sys
from collections.abc import Callable
from typing import Any, get_args

import jaxtyping

_CHECKED = jaxtyping.jaxtyped


def check_arrays_only() -> None:
    """For all modules that are imported from now on."""
    vars(jaxtyping)["jaxtyped"] = _of_arrays


def _of_arrays(*, typechecker: Any) -> Callable[[Any], Any]:
    """What the hook puts above every function and class."""
    checked: Callable[[Any], Any] = _CHECKED(typechecker=typechecker)
    return lambda made: checked(made) if _has_arrays(made) else made


def _has_arrays(made: Any) -> bool:
    """Whether an annotation of a function, a property or a dataclass names an array."""
    made = getattr(made, "__func__", made)  # of a class or static method
    made = getattr(made, "fget", made)
    known = getattr(made, "__globals__", None) or vars(sys.modules[made.__module__])
    kinds = made.__annotations__.values()
    words = {word for each in kinds if isinstance(each, str) for word in re.findall(r"\w+", each)}
    return any(map(_is_array, [*kinds, *map(known.get, words)]))


def _is_array(found: object) -> bool:
    """One of jaxtyping's types, such as Float, or what is made of them."""
    if isinstance(found, type):
        return found.__module__.startswith("jaxtyping") or issubclass(found, jaxtyping.AbstractArray)
    return any(map(_is_array, get_args(found)))
