"""Tables as a data source of Spark: ``spark.readStream.format("trinity")`` and ``spark.read.format("trinity")``.

Spark plans a Python data source in a process of its own, without a session (``source.py``), and reads it in Python
workers (``rows.py``). The planning process asks the driver's process (``rendezvous.py``), which knows the tables, for
the files that a batch consists of (``answers.py``, ``offsets.py``).
"""
