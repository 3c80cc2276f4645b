"""Sources as tables of columns: text, Parquet, data frames; columns have no meaning yet."""
