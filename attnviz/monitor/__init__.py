"""Watching attention while a model trains: what a look sees, a run of looks, its alarms, its curves and its film.

`look` knows torch and the kernels, `run` the numbers of a run and what is wrong with them, `watch` the loop of
training, `report` and `film` what is shown afterwards. Nothing here knows a command.
"""
