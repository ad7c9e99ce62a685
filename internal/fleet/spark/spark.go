// Package spark asks Apache Spark in SQL, as database/sql does: a program for spark-submit
// runs the queries, on this machine or on a cluster, and sends the rows.
package spark

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

//go:embed driver.py
var driverProgram []byte

// ErrMissing is returned by Open where there is no Spark.
var ErrMissing = errors.New("no Apache Spark here: put its spark-submit into PATH, or set SPARK_HOME")

// Local is the master of a Spark that is this machine alone.
const Local = "local[*]"

// Session is a Spark that has tables.
type Session struct {
	pool      *sql.DB
	tables    map[string][]string
	directory string // of the program and its socket
	socket    *net.UnixConn
	command   *exec.Cmd
	ended     chan struct{} // closed when spark-submit has
	said      *tail
}

// Open starts Spark at a master (as spark-submit's --master takes it) and gives it tables,
// each of Parquet files that all of its workers reach by the same paths.
func Open(ctx context.Context, master string, tables map[string][]string) (*Session, error) {
	submit, err := find()
	if err != nil {
		return nil, err
	}
	s := &Session{tables: map[string][]string{}, ended: make(chan struct{}), said: &tail{}}
	for name, files := range tables {
		if len(files) > 0 {
			s.tables[name] = files
		}
	}
	if s.directory, err = os.MkdirTemp("", "ebpfprof-spark-"); err != nil {
		return nil, fmt.Errorf("starting Spark: %w", err)
	}
	if err := s.start(ctx, submit, master); err != nil {
		return nil, errors.Join(fmt.Errorf("starting Spark: %w", err), s.Close())
	}
	c := newConnection(s.socket)
	s.pool = sql.OpenDB(connector{c})
	s.pool.SetMaxOpenConns(1)
	if err = c.ask(ctx, question{Tables: s.tables}); err == nil {
		_, err = c.answer()
	}
	if err != nil {
		return nil, s.refused(err)
	}
	return s, nil
}

// refused says why Spark did not take the tables: a master that is away, or of another version,
// is tried for a minute, and Spark ends with an exception.
func (s *Session) refused(err error) error {
	select {
	case <-s.ended:
		err = errors.Join(err, fmt.Errorf("it said: %s", s.said.last()))
	case <-time.After(time.Second):
	}
	return errors.Join(fmt.Errorf("giving Spark the store's files: %w", err), s.Close())
}

// start runs spark-submit and waits until its program has come to the socket.
func (s *Session) start(ctx context.Context, submit, master string) error {
	program, address := filepath.Join(s.directory, "driver.py"), filepath.Join(s.directory, "socket")
	if err := os.WriteFile(program, driverProgram, 0o600); err != nil {
		return err
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: address, Net: "unix"})
	if err != nil {
		return err
	}
	defer listener.Close()
	command := exec.Command(submit, append(settings(master), program, address)...)
	command.Stdout, command.Stderr = s.said, s.said
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Java, and Python below it
	if err := command.Start(); err != nil {
		return err
	}
	s.command = command
	go func() {
		_ = command.Wait()
		close(s.ended)
		listener.Close() // nobody will come
	}()
	stop := context.AfterFunc(ctx, func() { listener.Close() })
	defer stop()
	if s.socket, err = listener.AcceptUnix(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return errors.New(s.said.last())
	}
	return nil
}

func find() (string, error) {
	if home := os.Getenv("SPARK_HOME"); home != "" {
		return filepath.Join(home, "bin", "spark-submit"), nil
	}
	submit, err := exec.LookPath("spark-submit")
	if err != nil {
		return "", ErrMissing
	}
	return submit, nil
}

// OnThisMachine reports whether a master is no cluster: what does the work reads what this
// machine has.
func OnThisMachine(master string) bool { return strings.HasPrefix(master, "local") }

// settings are spark-submit's. All else is Spark's own configuration's.
func settings(master string) []string {
	all := []string{"--master", master, "--name", "ebpfprof", "--deploy-mode", "client",
		"--conf", "spark.ui.enabled=false", "--conf", "spark.sql.session.timeZone=UTC"}
	if OnThisMachine(master) {
		// Nobody else is to reach it, whatever this machine's name resolves to.
		all = append(all, "--conf", "spark.driver.host=localhost", "--conf", "spark.driver.bindAddress=127.0.0.1")
	}
	return all
}

// Query is database/sql's.
func (s *Session) Query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return s.pool.QueryContext(ctx, query, args...)
}

// Row reads the only row of a query.
func (s *Session) Row(ctx context.Context, query string, args []any, targets ...any) error {
	return s.pool.QueryRowContext(ctx, query, args...).Scan(targets...)
}

// Files are those of a table.
func (s *Session) Files(table string) []string { return s.tables[table] }

// patience is how long Spark may take to end by itself.
const patience = 10 * time.Second

// Close ends Spark.
func (s *Session) Close() (err error) {
	if s.pool != nil {
		err = s.pool.Close()
	}
	if s.socket != nil {
		err = errors.Join(err, s.socket.Close())
	}
	if s.command != nil {
		group := s.command.Process.Pid
		if s.socket == nil {
			_ = syscall.Kill(-group, syscall.SIGTERM)
		}
		select {
		case <-s.ended:
		case <-time.After(patience):
			_ = syscall.Kill(-group, syscall.SIGKILL)
			<-s.ended
		}
	}
	return errors.Join(err, os.RemoveAll(s.directory))
}

// tail keeps the last of what Spark says, for an error.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailBytes = 8 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if len(t.text) > tailBytes {
		t.text = append([]byte(nil), t.text[len(t.text)-tailBytes:]...)
	}
	return len(p), nil
}

// last is the last line that says what went wrong.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(string(t.text)), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if l := lines[i]; strings.Contains(l, "rror") || strings.Contains(l, "xception") {
			return strings.TrimSpace(l)
		}
	}
	return strings.TrimSpace(lines[len(lines)-1])
}
