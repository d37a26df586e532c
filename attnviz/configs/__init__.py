"""What configs and manifests say. The only room that knows YAML and pydantic; knows no texts, models or figures."""
