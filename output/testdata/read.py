"""Reads every table of a dataset with one reader and prints {table: [row]} as JSON.

read.py pyarrow|polars|pyspark DATASET TABLE...
"""
import json
import os
import sys


def pyarrow(folder):
    import pyarrow.dataset

    return pyarrow.dataset.dataset(folder, format="parquet").to_table().to_pylist()


def polars(folder):
    import polars

    return polars.read_parquet(os.path.join(folder, "*.parquet")).to_dicts()


def pyspark(folder):
    return [row.asDict(recursive=True) for row in spark().read.parquet(folder).collect()]


def spark():
    from pyspark.sql import SparkSession

    # A handful of rows: to compile code for each table takes longer than to read it.
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.host", "localhost").config("spark.driver.bindAddress", "127.0.0.1")
    builder = builder.config("spark.sql.codegen.wholeStage", "false").config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    return builder.getOrCreate()


read = {"pyarrow": pyarrow, "polars": polars, "pyspark": pyspark}[sys.argv[1]]
tables = {table: read(os.path.join(sys.argv[2], table)) for table in sys.argv[3:]}
print(json.dumps(tables))
