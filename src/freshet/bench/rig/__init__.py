"""What benchmarks are built from: an engine over a log of its own (:mod:`~freshet.bench.rig.engine`), Structured
Streaming over folders of files (:mod:`~freshet.bench.rig.streaming`), rows that come when they are due
(:mod:`~freshet.bench.rig.feed`), and a meter of processes (:mod:`~freshet.bench.rig.meter`).

The first two import PySpark: import them inside functions, so that ``--help`` comes at once.
"""
