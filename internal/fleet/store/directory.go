package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Directory is a store in a directory, which may be a shared file system's. Whoever may
// write into it can put links there: nothing is read or written through one that leads
// out of it (os.Root).
type Directory struct {
	name string
	root *os.Root
}

// NewDirectory makes the directory if it does not exist.
func NewDirectory(name string) (*Directory, error) {
	if err := os.MkdirAll(name, 0o755); err != nil {
		return nil, fmt.Errorf("making the store: %w", err)
	}
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, fmt.Errorf("opening the store: %w", err)
	}
	return &Directory{name, root}, nil
}

// OpenDirectory opens a store for reading; ErrNoStore where there is none.
func OpenDirectory(name string) (*Directory, error) {
	root, err := os.OpenRoot(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no store %s: %w", name, fs.ErrNotExist)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the store: %w", err)
	}
	if info, err := root.Stat(Version); err != nil || !info.IsDir() {
		return nil, errors.Join(fmt.Errorf("%s is %w: it has no directory %s", name, ErrNoStore, Version), root.Close())
	}
	return &Directory{name, root}, nil
}

// String is the directory.
func (d *Directory) String() string { return d.name }

// Put implements Store: the file is there whole, or not at all.
func (d *Directory) Put(_ context.Context, key string, content []byte) (err error) {
	if _, err := d.root.Lstat(key); err == nil {
		return nil
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("writing to the store: %w", err)
		}
	}()
	if err := d.root.MkdirAll(path.Dir(key), 0o755); err != nil {
		return err
	}
	var random [8]byte
	rand.Read(random[:])
	part := path.Join(path.Dir(key), ".part-"+hex.EncodeToString(random[:]))
	f, err := d.root.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = d.root.Rename(part, key)
	}
	if err != nil {
		return errors.Join(err, d.root.Remove(part))
	}
	return nil
}

// Get implements Store. What is no regular file is not read: the open of a FIFO would
// never return.
func (d *Directory) Get(_ context.Context, key string) (io.ReadCloser, error) {
	f, err := d.root.OpenFile(key, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", key)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// List implements Store. Files that are being written have names with a dot in front.
func (d *Directory) List(_ context.Context, prefix string) (keys []string, err error) {
	entries, err := d.Entries(prefix)
	for _, e := range entries {
		keys = append(keys, e.Key)
	}
	return keys, err
}

// Entries are the files below a prefix, in order of their keys.
func (d *Directory) Entries(prefix string) (all []Entry, err error) {
	err = fs.WalkDir(d.root.FS(), strings.TrimSuffix(prefix, "/"), func(name string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case !entry.Type().IsRegular() || strings.HasPrefix(entry.Name(), "."):
			return nil
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			all = append(all, Entry{Key: filepath.ToSlash(name), Bytes: info.Size()})
		}
		return err
	})
	slices.SortFunc(all, func(a, b Entry) int { return cmp.Compare(a.Key, b.Key) })
	return all, err
}

// Remove takes a file out, and the directories that are empty without it.
func (d *Directory) Remove(key string) error {
	if err := d.root.Remove(key); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing from the store: %w", err)
	}
	for at := path.Dir(key); at != "." && d.root.Remove(at) == nil; at = path.Dir(at) {
	}
	return nil
}
