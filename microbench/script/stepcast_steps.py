"""Tells when training steps begin and end, for `stepcast probe script` and `stepcast import pcap`.

Copy this file beside a training, or have its folder in PYTHONPATH. It needs nothing but Python, and
does nothing where the variable STEPCAST_STEPS is not set.

PyTorch, whatever the version and however many micro-steps are accumulated:

    import stepcast_steps
    stepcast_steps.watch(optimizer)

Keras, also with TensorFlow's strategies:

    model.fit(..., callbacks=[stepcast_steps.keras_callback()])

Any other loop, behind each step:

    steps = stepcast_steps.Steps()
    for batch in loader:
        train(batch)
        steps.done()

A step goes from the end of the one before to its own end, so that reading data is part of it. Rank
0 writes the CSV file that STEPCAST_STEPS names, rank N that name with `.N` behind it; all of them
together are what `import pcap --steps` reads.
"""

import os
import socket
import time

_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")


def _rank():
    for name in _RANKS:
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return 0


class Steps:
    """Writes a row for each step, at once."""

    def __init__(self, path=None, host=None):
        path = path or os.environ.get("STEPCAST_STEPS")
        rank = _rank()
        self._host = host or socket.gethostname()
        self._file = None
        self._step = 0
        if path:
            self._file = open(path if rank == 0 else f"{path}.{rank}", "w", encoding="utf-8")
            if rank == 0:
                self._file.write("host,step,begin_s,end_s\n")
                self._file.flush()
        self._last = time.time_ns()

    def done(self):
        """A step has ended, and the next begins."""
        now = max(time.time_ns(), self._last + 1)
        if self._file:
            times = ",".join(f"{t // 10**9}.{t % 10**9:09d}" for t in (self._last, now))
            self._file.write(f"{self._host},{self._step},{times}\n")
            self._file.flush()
        self._step += 1
        self._last = now


def watch(optimizer, steps=None):
    """Has each call of optimizer.step() end a step. Returns the Steps."""
    steps = steps or Steps()
    step = optimizer.step

    def timed_step(*args, **kwargs):
        outcome = step(*args, **kwargs)
        steps.done()
        return outcome

    optimizer.step = timed_step
    return steps


def keras_callback(steps=None):
    """A callback of Keras that ends a step behind each batch."""
    try:
        from keras.callbacks import Callback
    except ImportError:
        from tensorflow.keras.callbacks import Callback
    steps = steps or Steps()

    class StepsCallback(Callback):
        def on_train_batch_end(self, batch, logs=None):
            steps.done()

    return StepsCallback()
