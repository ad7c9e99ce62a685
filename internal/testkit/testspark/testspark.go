// Package testspark has tests find Apache Spark.
package testspark

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/testcache"
)

// few is for a handful of rows: to compile code for each query takes longer than to run it.
const few = "spark.sql.codegen.wholeStage false\nspark.sql.codegen.factoryMode NO_CODEGEN\nspark.sql.shuffle.partitions " +
	"1\nspark.sql.adaptive.enabled false\n" +
	"spark.driver.extraJavaOptions -XX:TieredStopAtLevel=1 -XX:+UseSerialGC\n"

// Use has the one that `make readers` installs in PATH until the test ends; the test is
// skipped where there is none.
func Use(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("Spark takes long to start: not in -short")
	}
	bin := testcache.Path(t, "dataset-readers/bin", "Spark is not installed: run `make readers`")
	for _, program := range []string{"java", filepath.Join(bin, "spark-submit")} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	t.Setenv("SPARK_HOME", "") // as it was, after the test
	os.Unsetenv("SPARK_HOME")
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	conf := t.TempDir()
	if err := os.WriteFile(filepath.Join(conf, "spark-defaults.conf"), []byte(few), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SPARK_CONF_DIR", conf)
}
