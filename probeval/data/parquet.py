"""Parquet files as tables, within the limits of memory.

Parquet stores repeated values once, so a small file can stand for a large table. Its values are counted before it is
read, and its texts are measured while each is still stored once.
"""

from __future__ import annotations

import re
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from probeval.data.limits import check_cells, most_bytes, refuse_size
from probeval.errors import DataError

if TYPE_CHECKING:
    from pyarrow import Table
    from pyarrow.parquet import FileMetaData

__all__ = ["parquet_table"]

UNNAMED = re.compile(r"__index_level_\d+__")  # the index of a data frame, where it has no name
NUMBER = 8  # bytes of a number, or of the place of a text
UNPACKS = "unpacks to"


def parquet_table(path: Path, data: bytes) -> pd.DataFrame:
    """The table in the content of a parquet file."""
    try:
        import pyarrow as pa
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise DataError("reading parquet needs pyarrow: pip install 'probeval[parquet]'.", path=path) from None
    most = most_bytes(len(data))
    try:
        meta = ParquetFile(BytesIO(data)).metadata
        check_cells(meta.num_rows, meta.num_columns, most, path=path)
        if _fixed_bytes(meta) > most:
            raise refuse_size(UNPACKS, most, path=path)
        texts = [meta.schema.column(i).path for i in range(meta.num_columns) if _is_text(meta, i)]
        table = ParquetFile(BytesIO(data), read_dictionary=texts).read()
        if _text_bytes(table) > most:
            raise refuse_size(UNPACKS, most, path=path)
        plain = pa.table([_dense(column) for column in table.columns], names=table.column_names)
        # What pandas noted about the frame is not needed: an index with a name is a column like any other.
        frame = pd.DataFrame(plain.to_pandas(ignore_metadata=True))
        return frame[[name for name in frame.columns if not UNNAMED.fullmatch(name)]]
    except DataError:
        raise
    except Exception as error:  # pyarrow's errors have no public base class
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        raise DataError(f"not a parquet file: {reason}.", path=path) from None


def _is_text(meta: FileMetaData, column: int) -> bool:
    return str(meta.schema.column(column).physical_type) == "BYTE_ARRAY"


def _fixed_bytes(meta: FileMetaData) -> int:
    """The bytes of all values, texts by their places."""
    total = 0
    for group in range(meta.num_row_groups):
        for column in range(meta.num_columns):
            width = max(NUMBER, meta.schema.column(column).length or 0)
            total += max(0, meta.row_group(group).column(column).num_values) * width
    return total


def _text_bytes(table: Table) -> int:
    """The bytes of all texts of a table in which each is stored once."""
    import pyarrow as pa
    import pyarrow.compute as pc

    total = 0
    for column in table.columns:
        for chunk in column.chunks:
            if pa.types.is_dictionary(chunk.type):
                lengths = pc.binary_length(chunk.dictionary).cast(pa.int64())
                total += pc.sum(lengths.take(chunk.indices)).as_py() or 0
            else:
                total += chunk.nbytes
    return total


def _dense(column: Any) -> Any:
    import pyarrow as pa

    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
