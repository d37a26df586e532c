"""The wing of `attnviz changed`: what tuning did to the heads of a model."""
