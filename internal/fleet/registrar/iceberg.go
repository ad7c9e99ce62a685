package registrar

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/ebpfprof/ebpfprof/internal/fleet/iceberg"
	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
)

// icebergKey is where tables of Iceberg lie in a store, beside its files.
const icebergKey = "iceberg"

// icebergTables are all that the store has rows of.
func icebergTables() map[string]merging {
	all := map[string]merging{store.FeedbackTable: rowsOf[store.FeedbackRow]()}
	for table, of := range tables {
		all[table] = of()
	}
	return all
}

// address is the store's for who reads its tables.
func (p *pass) address() (string, error) {
	if store.IsBucket(p.s.String()) {
		return p.s.String(), nil
	}
	directory, err := filepath.Abs(p.s.String())
	return "file://" + directory, err
}

// reconcile has the tables of Iceberg have the files that count.
func (p *pass) reconcile(days []day) error {
	if p.DryRun {
		return nil
	}
	address, err := p.address()
	if err != nil {
		return err
	}
	for name, of := range icebergTables() {
		t := &iceberg.Table{Store: p.s, Key: path.Join(icebergKey, name), Location: address + "/" + path.Join(icebergKey, name),
			Columns: of.columns(), Taken: store.ErrTaken, Now: p.Now}
		there, err := t.Exists(p.ctx)
		if err == nil && (there || p.Iceberg) {
			err = p.keep(t, name, address, days)
		}
		if err != nil {
			return fmt.Errorf("the table %s of Iceberg: %w", name, err)
		}
	}
	return nil
}

// keep has a table have the files that count.
func (p *pass) keep(t *iceberg.Table, name, address string, days []day) error {
	var gone error
	for range 3 {
		var paths []string
		for _, d := range days {
			if d.table() != name || p.expired(d) {
				continue
			}
			keys, err := p.counting(d)
			if err != nil {
				return err
			}
			for _, key := range keys {
				paths = append(paths, address+"/"+key)
			}
		}
		if there, err := t.Exists(p.ctx); err != nil || !there && len(paths) == 0 {
			return err
		}
		changed, err := t.Keep(p.ctx, paths, func(path string, column func(string) int) (iceberg.Entry, error) {
			return p.footer(strings.TrimPrefix(path, address+"/"), column)
		})
		if changed {
			p.Tables++
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		gone = err // another registrar has merged and removed a file since it was listed
	}
	return gone
}

// counting are the keys of a day's files that count.
func (p *pass) counting(d day) (keys []string, err error) {
	for range 3 {
		if keys, err = p.s.List(p.ctx, d.prefix()); err != nil {
			return nil, err
		}
		m, err := p.latest(d)
		if err != nil {
			return nil, err
		}
		there := map[string]bool{}
		counting := keys[:0]
		for _, key := range keys {
			if path.Ext(key) == ".parquet" && m.Counts(path.Base(key)) {
				counting, there[path.Base(key)] = append(counting, key), true
			}
		}
		if keys = counting; m == nil {
			return keys, nil
		}
		missing := false
		for _, f := range m.Files {
			missing = missing || !there[f.Name]
		}
		if !missing {
			return keys, nil
		}
		// The manifest is newer than the listing.
	}
	return keys, nil
}

// mostFile bounds what is read of a file.
const mostFile = 1 << 30

// bounded are the columns that a reader may leave files out by: the rows' times.
var bounded = []string{"begin_ns", "end_ns", "ts_ns"}

// footer is what Parquet's says of a file.
func (p *pass) footer(key string, column func(string) int) (e iceberg.Entry, err error) {
	content, err := p.read(key, mostFile)
	if err != nil && !errors.Is(err, errTooLarge) {
		return e, err
	}
	defer func() {
		if what := recover(); what != nil { // parquet-go's, of a damaged file
			err = fmt.Errorf("it is damaged: %v", what)
		}
		if err != nil {
			p.Notes = append(p.Notes, fmt.Sprintf("not in Iceberg's table: %s: %v", key, err))
			err = iceberg.ErrLeaveOut
		}
	}()
	if err != nil {
		return e, err
	}
	if err := intact(path.Base(key), content); err != nil {
		return e, err
	}
	file, err := parquet.OpenFile(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		return e, err
	}
	e = iceberg.Entry{Bytes: int64(len(content)), Rows: file.NumRows(), Lower: map[int][]byte{}, Upper: map[int][]byte{}}
	for _, name := range bounded {
		if least, most, ok := bounds(file, name); ok && column(name) > 0 {
			e.Lower[column(name)], e.Upper[column(name)] = least, most
		}
	}
	return e, nil
}

// bounds are the least and the largest value of a column of 64-bit numbers, which Iceberg
// writes as Parquet does.
func bounds(file *parquet.File, name string) (least, most []byte, ok bool) {
	of := func(v []byte) int64 { return int64(binary.LittleEndian.Uint64(v)) }
	for _, group := range file.Metadata().RowGroups {
		for _, c := range group.Columns {
			if len(c.MetaData.PathInSchema) != 1 || c.MetaData.PathInSchema[0] != name {
				continue
			}
			low, high := c.MetaData.Statistics.MinValue, c.MetaData.Statistics.MaxValue
			if len(low) != 8 || len(high) != 8 {
				return nil, nil, false
			}
			if !ok || cmp.Less(of(low), of(least)) {
				least = bytes.Clone(low)
			}
			if !ok || cmp.Less(of(most), of(high)) {
				most = bytes.Clone(high)
			}
			ok = true
		}
	}
	return least, most, ok
}

// columns implements merging.
func (r *rows[T]) columns() (all []iceberg.Column) {
	for _, f := range r.schema.Fields() {
		kinds := map[parquet.Kind]string{parquet.ByteArray: "string", parquet.Int32: "int", parquet.Int64: "long", parquet.Double: "double",
			parquet.Boolean: "boolean"}
		all = append(all, iceberg.Column{Name: f.Name(), Type: kinds[f.Type().Kind()]})
	}
	return all
}
