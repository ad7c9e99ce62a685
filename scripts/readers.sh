#!/bin/sh
# Installs the programs that exports and datasets are read back with, none of which
# is ours: Perfetto's messages and traceinsight (HTA's successor) from PyPI, speedscope's
# schema from npm; pyarrow, polars, DuckDB's shell, pyiceberg and Apache
# Spark from PyPI. Of tables of Iceberg also DuckDB with its extension, which PyPI has, and
# the Spark that Iceberg's runtime, from Maven Central, is made for.
#
#   readers.sh           install them if they are missing (1.9 GB on disk)
#   readers.sh --check   exit status 0 if they are there, 1 if not
#
# What they depend on is not pinned: they only read what we wrote.
set -eu

perfetto=0.59.1
traceinsight=0.6.1
jsonschema=4.25.1
speedscope=1.25.0
home=${EBPFPROF_CACHE:-$HOME/.cache/ebpfprof}/readers
done=$home/installed-$perfetto-$traceinsight-$jsonschema-$speedscope

# Of datasets: an environment of their own, since polars and Spark agree on little.
pyarrow=26.0.1
polars=2.1.0
duckdb=1.5.6
spark=4.3.0
datasets=${EBPFPROF_CACHE:-$HOME/.cache/ebpfprof}/dataset-readers
iceberg=0.12.0
datasets_done=$datasets/installed-$pyarrow-$polars-$duckdb-$spark

iceberg_done=$datasets/installed-iceberg-$iceberg

# An extension is of one version of DuckDB, and Iceberg's runtime of one of Spark.
duckdb_iceberg=1.5.5
spark_iceberg=4.1.4
iceberg_runtime=org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0
tables=${EBPFPROF_CACHE:-$HOME/.cache/ebpfprof}/iceberg-readers
tables_done=$tables/installed-$duckdb_iceberg-$spark_iceberg-${iceberg_runtime##*:}

case ${1-} in
--check)
	[ -e "$done" ] && [ -e "$datasets_done" ] && [ -e "$iceberg_done" ] && [ -e "$tables_done" ]
	exit
	;;
'') ;;
*)
	echo "usage: readers.sh [--check]" >&2
	exit 2
	;;
esac

[ -e "$done" ] && [ -e "$datasets_done" ] && [ -e "$iceberg_done" ] && [ -e "$tables_done" ] && exit 0
mkdir -p "$(dirname "$home")"
exec 9>"$home.lock"
flock 9

install_dataset_readers() {
	rm -rf "$datasets"
	/usr/bin/python3 -m venv "$datasets"
	# DuckDB's shell runs in its own process: nothing of ours is linked with it.
	if ! "$datasets/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary :all: \
		"pyarrow==$pyarrow" "polars==$polars" "duckdb-cli==$duckdb" >"$datasets/install.log" 2>&1; then
		tail -n 5 "$datasets/install.log" >&2
		echo "readers.sh: pip could not fetch what reads datasets" >&2
		return 1
	fi
	# There is no wheel of Spark. Without Java it would not run.
	if command -v java >/dev/null; then
		"$datasets/bin/python" -m pip install --quiet --disable-pip-version-check "pyspark==$spark" >>"$datasets/install.log" 2>&1 ||
			echo "readers.sh: pip could not fetch Spark: it reads no datasets in the tests" >&2
	fi
	touch "$datasets_done"
}

[ -e "$datasets_done" ] || install_dataset_readers
if [ ! -e "$iceberg_done" ]; then
	if "$datasets/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary :all: \
		"pyiceberg==$iceberg" >>"$datasets/install.log" 2>&1; then
		touch "$iceberg_done"
	else
		echo "readers.sh: pip could not fetch pyiceberg: nothing reads tables of Iceberg in the tests" >&2
	fi
fi

install_table_readers() {
	rm -rf "$tables"
	/usr/bin/python3 -m venv "$tables"
	if ! "$tables/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary :all: "duckdb==$duckdb_iceberg" \
		"duckdb-extension-iceberg==$duckdb_iceberg" "duckdb-extension-avro==$duckdb_iceberg" >"$tables/install.log" 2>&1; then
		echo "readers.sh: pip could not fetch DuckDB's extension for Iceberg: it reads no tables of it in the tests" >&2
	fi
	if command -v java >/dev/null && command -v mvn >/dev/null; then
		{
			"$tables/bin/python" -m pip install --quiet --disable-pip-version-check "pyspark==$spark_iceberg" &&
				mvn -q -B dependency:copy "-Dartifact=$iceberg_runtime" "-DoutputDirectory=$tables/jars"
		} >>"$tables/install.log" 2>&1 ||
			echo "readers.sh: pip and Maven could not fetch Spark and Iceberg's runtime: it reads no tables of Iceberg in the tests" >&2
	fi
	touch "$tables_done"
}

[ -e "$tables_done" ] || install_table_readers
[ -e "$done" ] && exit 0
rm -rf "$home"
/usr/bin/python3 -m venv "$home"
if ! "$home/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary :all: \
	"perfetto==$perfetto" "traceinsight==$traceinsight" "jsonschema==$jsonschema" >"$home/install.log" 2>&1; then
	tail -n 5 "$home/install.log" >&2
	echo "readers.sh: pip could not fetch what reads exports" >&2
	exit 1
fi
if command -v npm >/dev/null; then
	npm install --silent --no-fund --no-audit --ignore-scripts --prefix "$home" "speedscope@$speedscope" >>"$home/install.log" 2>&1 ||
		echo "readers.sh: npm could not fetch speedscope: its schema is not checked" >&2
fi
touch "$done"
