"""The folds over Arrow tables in this process; the modules have the names of those of ``merge.sql``."""
