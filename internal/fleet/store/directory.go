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
	"time"
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
		if isEmpty(root) {
			return nil, errors.Join(fmt.Errorf("%s is %w", name, ErrNothingYet), root.Close())
		}
		return nil, errors.Join(fmt.Errorf("%s is %w: it has no directory %s", name, ErrNoStore, Version), root.Close())
	}
	return &Directory{name, root}, nil
}

// isEmpty says whether nothing is in a directory but what comes with a file system.
func isEmpty(root *os.Root) bool {
	entries, err := fs.ReadDir(root.FS(), ".")
	return err == nil && !slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return e.Name() != "lost+found" && !strings.HasPrefix(e.Name(), ".")
	})
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
	return d.write(key, content, d.root.Rename)
}

// Create is Put of a key that is free: ErrTaken if it is not. The file system needs hard
// links for it.
func (d *Directory) Create(_ context.Context, key string, content []byte) error {
	err := d.write(key, content, func(part, key string) error {
		if err := d.root.Link(part, key); err != nil {
			return err
		}
		return d.root.Remove(part)
	})
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s is %w", key, ErrTaken)
	}
	if err != nil {
		return fmt.Errorf("writing to the store: %w", err)
	}
	return nil
}

// Replace is Put of a key that may be there: then it has the new content.
func (d *Directory) Replace(_ context.Context, key string, content []byte) error {
	if err := d.write(key, content, d.root.Rename); err != nil {
		return fmt.Errorf("writing to the store: %w", err)
	}
	return nil
}

// unfinished begins the name of a file that is being written.
const unfinished = ".part-"

// Unfinished are the files below a prefix that were being written and have not been
// touched since a time: who wrote them was killed.
func (d *Directory) Unfinished(prefix string, since time.Time) (keys []string, err error) {
	err = fs.WalkDir(d.root.FS(), strings.TrimSuffix(prefix, "/"), func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() && strings.HasPrefix(entry.Name(), unfinished) {
			info, infoErr := entry.Info()
			if err = infoErr; err == nil && info.ModTime().Before(since) {
				keys = append(keys, name)
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listing the store: %w", err)
	}
	return keys, nil
}

// write writes a file under another name beside the key, and has it named by the key.
func (d *Directory) write(key string, content []byte, name func(part, key string) error) error {
	if err := d.root.MkdirAll(path.Dir(key), 0o755); err != nil {
		return err
	}
	var random [8]byte
	rand.Read(random[:])
	part := path.Join(path.Dir(key), unfinished+hex.EncodeToString(random[:]))
	f, err := d.root.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = name(part, key)
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
func (d *Directory) List(ctx context.Context, prefix string) (keys []string, err error) {
	entries, err := d.entries(ctx, prefix)
	for _, e := range entries {
		keys = append(keys, e.Key)
	}
	return keys, err
}

// Entries are the files below a prefix, in order of their keys.
func (d *Directory) Entries(prefix string) ([]Entry, error) {
	return d.entries(context.Background(), prefix)
}

// entries ends with the context: anybody may have put any number of files there.
func (d *Directory) entries(ctx context.Context, prefix string) (all []Entry, err error) {
	err = fs.WalkDir(d.root.FS(), strings.TrimSuffix(prefix, "/"), func(name string, entry fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
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
func (d *Directory) Remove(_ context.Context, key string) error {
	if err := d.root.Remove(key); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing from the store: %w", err)
	}
	for at := path.Dir(key); at != "." && d.root.Remove(at) == nil; at = path.Dir(at) {
	}
	return nil
}

// Partitions are the names of the directories one level below a prefix, in order.
func (d *Directory) Partitions(_ context.Context, prefix string) (names []string, err error) {
	entries, err := fs.ReadDir(d.root.FS(), strings.TrimSuffix(prefix, "/"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listing the store: %w", err)
	}
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names, nil
}
