"""`attnviz schema`: what a config may say, for editors."""

from __future__ import annotations

import json

from attnviz.configs.schema import json_schema
from attnviz.specs.batch import SchemaSpec
from attnviz.workflows import Events, Result


def schema(spec: SchemaSpec) -> Events:
    """The JSON Schema of batch configs."""
    return iter((Result(lines=tuple(json.dumps(json_schema(), indent=1).splitlines())),))
