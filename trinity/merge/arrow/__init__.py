"""The folds as Arrow kernels over tables in this process; the modules have the names of those of ``merge.sql``."""
