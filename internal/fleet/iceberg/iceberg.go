// Package iceberg keeps an Apache Iceberg table (version 2 of its specification) of files
// that are there already: it writes the table's metadata, and no data.
//
// A table is a directory of metadata: v<N>.metadata.json, manifests and their lists,
// version-hint.text. To commit is to put the next v<N>.metadata.json under a key that must
// be free: of two who commit at once one begins again.
package iceberg

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Store is where the metadata lies. Create returns an error of Taken for a key that is
// there already; Replace puts what may be there.
type Store interface {
	Get(ctx context.Context, key string) (io.ReadCloser, error)
	Put(ctx context.Context, key string, content []byte) error
	Create(ctx context.Context, key string, content []byte) error
	Replace(ctx context.Context, key string, content []byte) error
	Remove(ctx context.Context, key string) error
	List(ctx context.Context, prefix string) ([]string, error)
}

// ErrLeaveOut is what footer returns for a file that cannot be read.
var ErrLeaveOut = errors.New("left out")

// Table is one to keep.
type Table struct {
	Store Store
	// Key is its directory in the store, Location the same for readers of the table.
	Key, Location string
	Columns       []Column // Name and Type
	Taken         error
	Now           func() time.Time
}

// Exists reports whether the table was begun.
func (t *Table) Exists(ctx context.Context) (bool, error) {
	version, _, err := t.versions(ctx)
	return version > 0, err
}

// Files are those of the table as it is now.
func (t *Table) Files(ctx context.Context) ([]Entry, error) {
	version, _, err := t.versions(ctx)
	if err != nil {
		return nil, err
	}
	_, entries, err := t.load(ctx, version)
	return entries, err
}

// Keep makes the table one of these files: footer is asked for what is to be known of each
// that is new. It changes nothing where they are the table's already.
func (t *Table) Keep(ctx context.Context, paths []string, footer func(path string, column func(name string) int) (Entry,
	error)) (changed bool, err error) {
	for range mostTries {
		version, _, err := t.versions(ctx)
		if err != nil {
			return false, err
		}
		done, changed, err := t.commit(ctx, version, paths, footer)
		if err != nil || done {
			return changed, errors.Join(err, t.tidy(ctx))
		}
	}
	return false, fmt.Errorf("others change the table %s all the time: try again", t.Key)
}

const mostTries = 10

var (
	versionName = regexp.MustCompile(`^v(\d{1,12})\.metadata\.json$`)
	fileName    = regexp.MustCompile(`^v(\d{1,12})-[0-9a-f]+-(m0|m1|list)\.avro$`)
)

// versions are that of the metadata that counts, and all files of metadata.
func (t *Table) versions(ctx context.Context) (latest int64, names []string, err error) {
	keys, err := t.Store.List(ctx, t.Key+"/metadata/")
	for _, key := range keys {
		names = append(names, path.Base(key))
		latest = max(latest, versionOf(versionName, path.Base(key)))
	}
	return latest, names, err
}

func versionOf(pattern *regexp.Regexp, name string) int64 {
	found := pattern.FindStringSubmatch(name)
	if found == nil {
		return 0
	}
	n, _ := strconv.ParseInt(found[1], 10, 64)
	return n
}

func metadataName(version int64) string { return fmt.Sprintf("v%d.metadata.json", version) }

func (t *Table) key(name string) string { return t.Key + "/metadata/" + name }

func (t *Table) path(name string) string { return t.Location + "/metadata/" + name }

func (t *Table) read(ctx context.Context, name string) ([]byte, error) {
	r, err := t.Store.Get(ctx, t.key(name))
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(r)
	return content, errors.Join(err, r.Close())
}

// load reads the metadata of a version, and the files of its snapshot.
func (t *Table) load(ctx context.Context, version int64) (*table, []Entry, error) {
	if version == 0 {
		return newTable(t.Location), nil, nil
	}
	content, err := t.read(ctx, metadataName(version))
	if err != nil {
		return nil, nil, err
	}
	m := newTable(t.Location)
	if err := json.Unmarshal(content, m); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", metadataName(version), err)
	}
	if m.FormatVersion != 2 || m.Location != t.Location {
		return nil, nil, fmt.Errorf("%w: it is of version %d, at %s", errForeign, m.FormatVersion, m.Location)
	}
	if m.CurrentSnapshot == nil {
		return m, nil, nil
	}
	i := slices.IndexFunc(m.Snapshots, func(s snapshot) bool { return s.ID == *m.CurrentSnapshot })
	if i < 0 {
		return nil, nil, fmt.Errorf("%s has no snapshot %d", metadataName(version), *m.CurrentSnapshot)
	}
	list := path.Base(m.Snapshots[i].Manifests)
	if versionOf(fileName, list) == 0 {
		return nil, nil, errForeign
	}
	if content, err = t.read(ctx, strings.TrimSuffix(list, "list.avro")+"m0.avro"); err != nil {
		return nil, nil, err
	}
	entries, err := readManifest(content)
	return m, entries, err
}

// commit makes one version after another; done is false if another came first.
func (t *Table) commit(ctx context.Context, version int64, paths []string, footer func(string, func(string) int) (Entry, error)) (done,
	changed bool, err error) {
	m, before, err := t.load(ctx, version)
	if errors.Is(err, fs.ErrNotExist) {
		return false, false, nil // others have gone on
	} else if err != nil {
		return false, false, err
	}
	if err := m.add(t.Columns); err != nil {
		return false, false, err
	}
	wanted := map[string]bool{}
	for _, p := range paths {
		wanted[p] = true
	}
	var count, gone []Entry
	for _, e := range before {
		e.status = existing
		if !wanted[e.Path] {
			e.status = deleted
			gone = append(gone, e)
			continue
		}
		delete(wanted, e.Path)
		count = append(count, e)
	}
	s := m.next(t.Now().UnixMilli())
	for i := range gone { // who removed them
		gone[i].snapshot = s.ID
	}
	kept := len(count)
	for _, p := range paths {
		if !wanted[p] {
			continue
		}
		delete(wanted, p)
		e, err := footer(p, m.current().column)
		if errors.Is(err, ErrLeaveOut) {
			continue
		} else if err != nil {
			return false, false, err
		}
		e.Path, e.status, e.snapshot, e.sequence = p, added, s.ID, s.Sequence
		count = append(count, e)
	}
	if version > 0 && len(gone) == 0 && len(count) == kept {
		return true, false, nil
	}
	names, err := t.put(ctx, m, &s, version+1, count, gone, len(count)-kept)
	if err != nil {
		return false, false, err
	}
	content, err := json.Marshal(m)
	if err != nil {
		return false, false, err
	}
	name := metadataName(version + 1)
	if err = t.Store.Create(ctx, t.key(name), content); errors.Is(err, t.Taken) {
		// It may be ours: the answer to a first attempt can be lost.
		there, err := t.read(ctx, name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, false, err
		}
		if string(there) != string(content) {
			for _, name := range names {
				if err := t.Store.Remove(ctx, t.key(name)); err != nil {
					return false, false, err
				}
			}
			return false, false, nil
		}
	} else if err != nil {
		return false, false, err
	}
	latest, _, err := t.versions(ctx)
	return latest == version+1, true, err
}

// put puts a snapshot's manifests and their list, and takes the snapshot.
func (t *Table) put(ctx context.Context, m *table, s *snapshot, version int64, count, gone []Entry, new int) (names []string, err error) {
	base := fmt.Sprintf("v%d-%016x-", version, s.ID)
	var manifests []listed
	for i, entries := range [][]Entry{count, gone} {
		if i > 0 && len(entries) == 0 {
			continue
		}
		content, err := m.manifest(entries)
		if err != nil {
			return nil, err
		}
		name := fmt.Sprintf("%sm%d.avro", base, i)
		if err := t.Store.Put(ctx, t.key(name), content); err != nil {
			return nil, err
		}
		names = append(names, name)
		manifests = append(manifests, listed{t.path(name), len(content), entries})
	}
	s.Manifests = t.path(base + "list.avro")
	s.Summary = map[string]string{"operation": "overwrite", "added-data-files": fmt.Sprint(new), "deleted-data-files": fmt.Sprint(len(gone)),
		"total-data-files": fmt.Sprint(len(count))}
	if len(gone) == 0 {
		s.Summary["operation"] = "append"
	}
	var rows int64
	for _, e := range count {
		rows += e.Rows
	}
	s.Summary["total-records"] = fmt.Sprint(rows)
	if err := t.Store.Put(ctx, t.key(base+"list.avro"), manifestList(*s, manifests)); err != nil {
		return nil, err
	}
	return append(names, base+"list.avro"), m.take(*s)
}

// keptVersions of metadata: for readers that have begun.
const keptVersions = 5

// tidy names the latest version, and removes what no version that is kept has.
func (t *Table) tidy(ctx context.Context) error {
	latest, names, err := t.versions(ctx)
	if err != nil || latest == 0 {
		return err
	}
	const hint = "version-hint.text"
	if said, err := t.read(ctx, hint); err != nil || string(said) != fmt.Sprint(latest) {
		if err := t.Store.Replace(ctx, t.key(hint), []byte(fmt.Sprint(latest))); err != nil {
			return err
		}
	}
	for _, name := range names {
		version := max(versionOf(versionName, name), versionOf(fileName, name))
		// A version has its own snapshot, and the one before.
		if version == 0 || version > latest-keptVersions-keptSnapshots {
			continue
		}
		if err := t.Store.Remove(ctx, t.key(name)); err != nil {
			return err
		}
	}
	return nil
}
