"""``trinity demo``: the flights of 2013 from New York as a change stream, in three formats."""
