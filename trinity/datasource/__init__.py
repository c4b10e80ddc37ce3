"""Tables as a Spark data source: ``spark.readStream.format("trinity")`` and ``spark.read.format("trinity")``.

Spark plans a Python data source in a separate process, without a session (``source.py``), and reads it in Python
workers (``rows.py``). The planning process asks the driver's process (``rendezvous.py``), which has the tables, for the
files of a batch (``answers.py``, ``offsets.py``).
"""
