"""Answers ebpfprof's queries in Spark SQL. Run by spark-submit: driver.py SOCKET

A line of JSON each way. First {"tables": {name: [file]}}, answered by {}; then
{"sql": text, "args": [value]}, answered by {"columns": [name]}, lines of {"rows": [[value]]}
and {}, or by {"error": text}. It ends with the socket.
"""
import json
import math
import socket
import sys

from pyspark.sql import SparkSession

BATCH = 1000


def main():
    channel = socket.socket(socket.AF_UNIX)
    channel.connect(sys.argv[1])
    stream = channel.makefile("rwb")
    spark = SparkSession.builder.getOrCreate()

    def say(what):
        stream.write(json.dumps(what).encode() + b"\n")

    def tables(question):
        for name, files in question["tables"].items():
            # The files one by one: names of directories are no columns then.
            spark.read.option("mergeSchema", "true").parquet(*files).createOrReplaceTempView(name)

    def query(question):
        found = spark.sql(question["sql"], args=question["args"])
        say({"columns": found.columns})
        rows = []
        for row in found.toLocalIterator(prefetchPartitions=True):
            rows.append([plain(value) for value in row])
            if len(rows) == BATCH:
                say({"rows": rows})
                rows = []
        say({"rows": rows})

    for line in stream:
        question = json.loads(line)
        try:
            tables(question) if "tables" in question else query(question)
            say({})
        except Exception as e:
            say({"error": str(e)})
        stream.flush()
    spark.stop()


def plain(value):
    """JSON has no numbers for infinity and NaN."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if isinstance(value, float):
        return {"float": repr(value)}
    return value


main()
