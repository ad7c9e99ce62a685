package counter

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/ebpfprof/ebpfprof/tracer/procfile"
)

// Files is the directory that stands for /: "" for the live machine, a recorded
// tree in tests.
type Files string

func (f Files) path(parts ...string) string {
	return filepath.Join(append([]string{string(f), "/"}, parts...)...)
}

// read reads a whole file of /proc or /sys and stamps the round with it.
func (r *round) read(path string) (text string, err error) {
	err = r.during(func() error {
		b, err := procfile.Read(path, 0)
		text = string(b)
		return err
	})
	return text, err
}

// number reads a file that holds one number.
func (r *round) number(path string) (float64, error) {
	text, err := r.read(path)
	if err != nil {
		return 0, err
	}
	v, ok := parseNumber(strings.TrimSpace(text))
	if strings.HasPrefix(text, "N/A") { // of a port without that counter
		return 0, fs.ErrNotExist
	}
	if !ok {
		return 0, fmt.Errorf("%s holds %.40q, which is no number", path, text)
	}
	return v, nil
}

// parseNumber reads a decimal number that is finite and not negative. Integers
// beyond 2^53 lose their last digits.
func parseNumber(s string) (float64, bool) {
	if n, err := strconv.ParseUint(s, 10, 64); err == nil {
		return float64(n), true
	}
	return 0, false
}

// missing says whether an error means that a file is not there or that the
// driver has no value for it: not every device has every counter.
func missing(err error) bool {
	for _, e := range []error{fs.ErrNotExist, syscall.ENODEV, syscall.ENXIO, syscall.EOPNOTSUPP, syscall.EINVAL, syscall.ESRCH, syscall.EISDIR,
		syscall.ENOTDIR} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// firstOf keeps the first error that is not a missing value.
func firstOf(kept *error, err error) {
	if err != nil && *kept == nil && !missing(err) {
		*kept = err
	}
}

// list returns the names in a directory that begin with prefix and go on with
// digits only, in the order of those.
func list(dir, prefix string) []string {
	entries, _ := os.ReadDir(dir)
	var names []string
	for _, e := range entries {
		if index(e.Name(), prefix) >= 0 {
			names = append(names, e.Name())
		}
	}
	slices.SortFunc(names, func(a, b string) int { return index(a, prefix) - index(b, prefix) })
	return names
}

// index is the number behind prefix in a name, -1 if there is none.
func index(name, prefix string) int {
	digits, ok := strings.CutPrefix(name, prefix)
	if !ok || digits == "" || strings.TrimLeft(digits, "0123456789") != "" {
		return -1
	}
	n, err := strconv.Atoi(digits)
	if err != nil {
		return -1
	}
	return n
}

// metric is a value in a file: how it is called there, and what it becomes.
type metric struct {
	file   string // name of the file, or of the key in it
	name   string
	unit   string
	factor float64
	grows  bool // a total, of which the growth is recorded
}

func (m metric) add(r *round, at place, value float64) {
	if m.grows {
		r.total(at, m.name, m.unit, value*m.factor)
	} else {
		r.gauge(at, m.name, m.unit, value*m.factor)
	}
}

// addFiles reads the metrics that are files of their own in dir.
func (r *round) addFiles(at place, dir string, metrics []metric) error {
	var failed error
	for _, m := range metrics {
		value, err := r.number(filepath.Join(dir, m.file))
		if err != nil {
			firstOf(&failed, err)
			continue
		}
		m.add(r, at, value)
	}
	return failed
}

// addKeyed adds those metrics whose keys a parsed file has.
func (r *round) addKeyed(at place, values map[string]float64, metrics []metric) {
	for _, m := range metrics {
		if v, ok := values[m.file]; ok {
			m.add(r, at, v)
		}
	}
}

// totals are the values of one device in a table of many, by column.
type totals struct {
	device string
	values map[string]float64
	used   bool // since the machine started: one of them is not 0
}

// addUsed is addKeyed for a device that was ever used: machines have many that
// were not. Its first use counts.
func (r *round) addUsed(at place, t totals, metrics []metric) {
	if t.used {
		r.addKeyed(at, t.values, metrics)
		return
	}
	for _, m := range metrics {
		r.rest(at, m.name, t.values[m.file])
	}
}

// columns are the names of the first columns of such a table.
var columns = [...]string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10"}

// parseTotals reads the columns of a device; false if one is no number.
func parseTotals(device string, fields []string) (t totals, ok bool) {
	if len(fields) < len(columns) {
		return t, false
	}
	t = totals{device: device, values: map[string]float64{}}
	for i, column := range columns {
		v, ok := parseNumber(fields[i])
		if !ok {
			return t, false
		}
		t.values[column], t.used = v, t.used || v > 0
	}
	return t, true
}

// parseKeyed reads lines of a key and a number, as in memory.stat, cpu.stat and
// /proc/meminfo, where the key ends in a colon and a unit follows.
func parseKeyed(text string) map[string]float64 {
	values := map[string]float64{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		if v, ok := parseNumber(fields[1]); ok {
			values[strings.TrimSuffix(fields[0], ":")] = v
		}
	}
	return values
}
