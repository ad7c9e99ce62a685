package manifest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
)

// Reader says which files below a directory of tables count. It knows the manifests that
// were there when it was made: list the files after that, and make another one when they
// are listed. If the two are the same, so was what counts.
type Reader struct {
	root   fs.FS
	latest map[string]int64 // by partition
	loaded map[string]*loaded
}

type loaded struct {
	manifest *Manifest
	whole    bool
	err      error
}

// NewReader looks which manifests there are: none, in what is no store.
func NewReader(root fs.FS) (*Reader, error) {
	r := &Reader{root: root, latest: map[string]int64{}, loaded: map[string]*loaded{}}
	if _, err := fs.Stat(root, Table); errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	err := fs.WalkDir(root, Table, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case entry.IsDir():
			return nil
		}
		if partition, ok := Partition(strings.TrimPrefix(name, Table+"/")); ok {
			for _, g := range Generations([]string{name}) {
				r.latest[partition] = max(r.latest[partition], g)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing manifests: %w", err)
	}
	return r, nil
}

// Same reports whether two readers know the same manifests.
func (r *Reader) Same(other *Reader) bool {
	if len(r.latest) != len(other.latest) {
		return false
	}
	for partition, generation := range r.latest {
		if other.latest[partition] != generation {
			return false
		}
	}
	return true
}

// Counts reports whether a file counts, by its path below the tables' directory. Where the
// manifest cannot be read, it says so, and what an uploader put counts.
func (r *Reader) Counts(name string) (bool, error) {
	base := path.Base(name)
	_, merged := GenerationOf(base)
	partition, ok := Partition(name)
	if !ok || !merged && (r.latest[partition] == 0 || !Uploaded(base)) {
		return !merged, nil
	}
	m, err := r.manifest(partition, !merged)
	return m.Counts(base), err
}

// manifest is a partition's, nil without one; whole with the hashes of what was merged.
func (r *Reader) manifest(partition string, whole bool) (*Manifest, error) {
	generation := r.latest[partition]
	if generation == 0 {
		return nil, nil
	}
	if l := r.loaded[partition]; l != nil && (l.whole || !whole) {
		return l.manifest, l.err
	}
	l := &loaded{whole: whole}
	r.loaded[partition] = l
	l.manifest, l.err = r.load(Key(partition, generation), whole)
	return l.manifest, l.err
}

func (r *Reader) load(name string, whole bool) (m *Manifest, err error) {
	f, err := r.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, fmt.Errorf("%s: %w: it is no file", name, ErrDamaged))
	}
	if m, err = decode(io.Reader(f), whole); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return m, nil
}
