package testspark

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// clusterPatience is how long a master and its worker may take to come up.
const clusterPatience = time.Minute

// Cluster starts a cluster of Spark's own kind, a master and one worker on this machine, and
// returns the master's URL. Both end with the test. Use comes before it.
func Cluster(t *testing.T) (master string) {
	t.Helper()
	t.Setenv("SPARK_LOCAL_IP", "127.0.0.1")
	class := sparkClass(t)
	const of = "org.apache.spark.deploy."
	said := start(t, class, of+"master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
	master = "spark://" + until(t, said, "Starting Spark master at spark://")
	until(t, said, "New state: ALIVE")
	said = start(t, class, of+"worker.Worker", "--cores", "1", "--memory", "1g", "--host", "127.0.0.1", "--webui-port", "0", "--work-dir",
		t.TempDir(), master)
	until(t, said, "Successfully registered with master")
	return master
}

// sparkClass is the program that runs Spark's parts: it lies beside the package that the
// spark-submit in PATH is of.
func sparkClass(t *testing.T) string {
	t.Helper()
	submit, err := exec.LookPath("spark-submit")
	if err != nil {
		t.Fatal(err)
	}
	found, _ := filepath.Glob(filepath.Join(filepath.Dir(submit), "..", "lib", "python3*", "site-packages", "pyspark", "bin", "spark-class"))
	if len(found) == 0 {
		t.Skipf("%s is not PySpark's: no spark-class beside it", submit)
	}
	return found[0]
}

// start runs a part of Spark until the test ends; what it says comes line by line.
func start(t *testing.T, program string, arguments ...string) (said <-chan string) {
	t.Helper()
	c := exec.Command(program, arguments...)
	read, write := io.Pipe()
	c.Stdout, c.Stderr, c.Dir = write, write, t.TempDir()
	c.Env = append(os.Environ(), "SPARK_NO_DAEMONIZE=1")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 1024)
	go func() {
		defer close(lines)
		for scanner := bufio.NewScanner(read); scanner.Scan(); {
			select {
			case lines <- scanner.Text():
			default: // nobody waits for a line any more
			}
		}
		_, _ = io.Copy(io.Discard, read) // a line that was too long
	}()
	t.Cleanup(func() {
		_ = c.Process.Kill() // spark-class becomes Java by exec
		_ = c.Wait()
		write.Close()
	})
	return lines
}

// until waits for a line with a text, and returns what is behind that.
func until(t *testing.T, said <-chan string, text string) string {
	t.Helper()
	for deadline := time.After(clusterPatience); ; {
		select {
		case line, ok := <-said:
			if _, behind, found := strings.Cut(line, text); found {
				return strings.TrimSpace(behind)
			}
			if !ok {
				t.Fatalf("Spark ended before it said %q", text)
			}
		case <-deadline:
			t.Fatalf("Spark has not said %q for %s", text, clusterPatience)
		}
	}
}
