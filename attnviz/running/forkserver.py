"""What workers are forked from, where it begins: imported by nothing but that process, before all that they need."""

import atexit
import gc
import os

# Torch reads it once: several processes are quicker with a thread each, and no bit depends on how many there are.
os.environ["OMP_NUM_THREADS"] = "1"
gc.disable()  # nothing that is imported is garbage; each worker looks for its own
# Nothing here has to be put away: taking down torch and matplotlib piece by piece took two seconds after each command.
atexit.register(os._exit, 0)
