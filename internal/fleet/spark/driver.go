package spark

import (
	"bufio"
	"bytes"
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// question and answer are lines between the two programs: driver.py says which follows which.
type question struct {
	Tables map[string][]string `json:"tables,omitempty"`
	SQL    string              `json:"sql,omitempty"`
	Args   []driver.Value      `json:"args"`
}

type answer struct {
	Columns []string `json:"columns"`
	Rows    [][]any  `json:"rows"`
	Error   string   `json:"error"`
}

// end is what closes an answer.
func (a *answer) end() bool { return a.Columns == nil && a.Rows == nil }

// errAsked is returned for what Spark does not answer.
var errAsked = errors.New("Spark")

// connection is the only one of a session. A query is read to its end before the next.
type connection struct {
	socket net.Conn
	lines  *bufio.Reader
	broken bool
}

func newConnection(socket net.Conn) *connection {
	return &connection{socket: socket, lines: bufio.NewReaderSize(socket, 1<<20)}
}

func (c *connection) ask(ctx context.Context, q question) error {
	text, err := json.Marshal(q)
	if err != nil {
		return err
	}
	if _, err := c.socket.Write(append(text, '\n')); err != nil {
		c.broken = true
		return fmt.Errorf("asking Spark: %w", err)
	}
	return ctx.Err()
}

func (c *connection) answer() (*answer, error) {
	line, err := c.lines.ReadBytes('\n')
	if err != nil {
		c.broken = true
		return nil, fmt.Errorf("reading from Spark, which ended or was stopped: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.UseNumber()
	a := &answer{}
	if err := decoder.Decode(a); err != nil {
		c.broken = true
		return nil, fmt.Errorf("reading Spark's answer: %w", err)
	}
	if a.Error != "" {
		first, _, _ := strings.Cut(strings.TrimSpace(a.Error), "\n")
		return nil, fmt.Errorf("%w: %s", errAsked, first)
	}
	return a, nil
}

// QueryContext implements driver.QueryerContext. A context that is done ends the session's
// connection: Spark has no half of a query.
func (c *connection) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	q := question{SQL: query, Args: []driver.Value{}}
	for _, a := range args {
		q.Args = append(q.Args, a.Value)
	}
	stop := context.AfterFunc(ctx, func() { _ = c.socket.SetDeadline(time.Unix(1, 0)) })
	if err := c.ask(ctx, q); err != nil {
		stop()
		return nil, err
	}
	a, err := c.answer()
	if err != nil {
		stop()
		return nil, errors.Join(ctx.Err(), err)
	}
	return &result{c: c, columns: a.Columns, stop: stop}, nil
}

// result are the rows of a query.
type result struct {
	c       *connection
	columns []string
	rows    [][]any
	ended   bool
	stop    func() bool
}

func (r *result) Columns() []string { return r.columns }

// Next implements driver.Rows.
func (r *result) Next(to []driver.Value) error {
	for len(r.rows) == 0 {
		if r.ended {
			return io.EOF
		}
		a, err := r.c.answer()
		if err != nil {
			r.ended = true
			return err
		}
		r.rows, r.ended = a.Rows, a.end()
	}
	row := r.rows[0]
	r.rows = r.rows[1:]
	if len(row) != len(to) {
		return fmt.Errorf("a row of %d values instead of %d", len(row), len(to))
	}
	for i := range row {
		value, err := plain(row[i])
		if err != nil {
			return err
		}
		to[i] = value
	}
	return nil
}

// plain is a value as database/sql has it.
func plain(value any) (driver.Value, error) {
	switch v := value.(type) {
	case json.Number:
		return v.Int64()
	case map[string]any:
		if text, ok := v["float"].(string); ok {
			return strconv.ParseFloat(text, 64)
		}
	case nil, string, bool:
		return v, nil
	}
	return nil, fmt.Errorf("a value of type %T from Spark", value)
}

// Close reads what is left, so that the next query's answer is the next line.
func (r *result) Close() error {
	defer r.stop()
	r.rows = nil
	for !r.ended && !r.c.broken {
		a, err := r.c.answer()
		if err != nil {
			break
		}
		r.ended = a.end()
	}
	return nil
}

// What database/sql asks of a driver else.

type connector struct{ c *connection }

func (c connector) Connect(context.Context) (driver.Conn, error) {
	if c.c.broken {
		return nil, errors.New("the Spark session is over")
	}
	return c.c, nil
}

func (c connector) Driver() driver.Driver { return nil }

func (c *connection) Prepare(string) (driver.Stmt, error) { return nil, driver.ErrSkip }
func (c *connection) Begin() (driver.Tx, error)           { return nil, driver.ErrSkip }
func (c *connection) Close() error                        { return nil }
func (c *connection) IsValid() bool                       { return !c.broken }
