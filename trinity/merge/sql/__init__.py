"""The folds as Spark SQL over a DataFrame or over the text of a query, which is translated to other dialects."""
