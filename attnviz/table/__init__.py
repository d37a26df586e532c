"""Every number is a row of one table: put together, joined, grouped, tested, saved and read again.

`numbers` holds the table, `intervals` says how sure means over texts are, `parquet` writes and reads files. They know
arrays and rows, and neither records, models, measures nor texts. Nothing here is imported before it is needed: Arrow
takes a fifth of a second.
"""
