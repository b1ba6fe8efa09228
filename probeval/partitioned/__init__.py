"""Campaigns in partitions: evaluation as a map over blocks of queries and a reduction, here or by Dask."""
