// Package manifest says which files of a store count while many small files become few
// large ones.
//
// The files of a table, a job and a day are a partition, v1/<table>/job=…/date=…. Each time
// small files of it were merged, a manifest is put under the next number,
// v1/manifest/<table>/job=…/date=…/<generation>.json, by whoever finds that number free. The
// manifest with the highest number counts:
//
//   - a merged file counts if the manifest has its name, and
//   - a file that an uploader put counts unless the manifest has its hash.
//
// So that the manifest's put is the one moment at which the small files are out and the
// large one is in; the small ones may be removed at any time after it. Hashes stay in the
// manifest: a file that is sent again, a month late, does not count twice.
//
// A merged file has the generation in its name that it was made for. One with a generation
// that is there, and that the manifest does not have, can never count again.
package manifest

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Table is the directory of manifests, below the store's version.
const Table = "manifest"

// KeyTime is how names write the time of the first row of a file; a merged file's is that
// of the newest file in it.
const KeyTime = "20060102T150405.000000000Z"

// ErrDamaged is returned for what is no manifest.
var ErrDamaged = errors.New("damaged manifest")

// Manifest is what counts in a partition.
type Manifest struct {
	Generation int64   `json:"generation"`
	Files      []File  `json:"files"`
	Merged     []Batch `json:"merged"`
	hashes     []hash  // of all batches, one after the other, each in order
}

// File is a merged file.
type File struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
	Rows  int64  `json:"rows"`
}

// Batch is what became part of other files at some time.
type Batch struct {
	At    int64    `json:"at_ns"`
	Count int      `json:"count"`           // of the files of uploaders: their hashes lie behind the JSON
	Names []string `json:"names,omitempty"` // of merged files
}

type hash [8]byte

func compareHashes(a, b hash) int { return bytes.Compare(a[:], b[:]) }

// Bounds of what is read: who may write into the store must not fill a reader's memory.
const (
	mostHeader = 16 << 20
	mostHashes = 16 << 20
)

var (
	mergedName   = regexp.MustCompile(`^\d{8}T\d{6}\.\d{9}Z-g(\d{8})-[0-9a-f]{16}\.parquet$`)
	uploadedName = regexp.MustCompile(`^\d{8}T\d{6}\.\d{9}Z-([0-9a-f]{16})\.parquet$`)
	manifestName = regexp.MustCompile(`^(\d{8})\.json$`)
)

// MergedName is the name of a file that is made for a generation.
func MergedName(newest time.Time, generation int64, random [8]byte) string {
	return fmt.Sprintf("%s-g%08d-%x.parquet", newest.UTC().Format(KeyTime), generation, random)
}

// GenerationOf is the generation that a merged file was made for; false of any other name.
func GenerationOf(name string) (int64, bool) {
	found := mergedName.FindStringSubmatch(name)
	if found == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(found[1], 10, 64)
	return n, err == nil
}

// hashOf is the hash in an uploader's name.
func hashOf(name string) (h hash, ok bool) {
	found := uploadedName.FindStringSubmatch(name)
	if found == nil {
		return h, false
	}
	n, err := strconv.ParseUint(found[1], 16, 64)
	binary.BigEndian.PutUint64(h[:], n)
	return h, err == nil
}

// Uploaded reports whether a name is one that uploaders give.
func Uploaded(name string) bool { return uploadedName.MatchString(name) }

// Key is where the manifest of a generation lies, below the store's version.
func Key(partition string, generation int64) string {
	return path.Join(Table, partition, fmt.Sprintf("%08d.json", generation))
}

// Partition is that of a file below the store's version: its table, job and day.
func Partition(name string) (partition string, ok bool) {
	parts := strings.SplitN(name, "/", 4)
	if len(parts) < 4 || !strings.HasPrefix(parts[1], "job=") || !strings.HasPrefix(parts[2], "date=") {
		return "", false
	}
	return path.Join(parts[:3]...), true
}

// Generations are those of the names in a partition's directory of manifests, in order.
func Generations(names []string) (all []int64) {
	for _, name := range names {
		if found := manifestName.FindStringSubmatch(path.Base(name)); found != nil {
			if n, err := strconv.ParseInt(found[1], 10, 64); err == nil {
				all = append(all, n)
			}
		}
	}
	slices.Sort(all)
	return all
}

// Counts reports whether a file of the partition counts, by its name alone. Without any
// manifest, nil, uploaders' files do.
func (m *Manifest) Counts(name string) bool {
	if _, merged := GenerationOf(name); merged {
		return m != nil && slices.ContainsFunc(m.Files, func(f File) bool { return f.Name == name })
	}
	_, merged := m.MergedAt(name)
	return !merged
}

// MergedAt is when a file became part of another; false if it did not.
func (m *Manifest) MergedAt(name string) (at int64, merged bool) {
	if m == nil {
		return 0, false
	}
	h, uploaded := hashOf(name)
	rest := m.hashes
	for _, b := range m.Merged {
		if slices.Contains(b.Names, name) {
			return b.At, true
		}
		if _, found := slices.BinarySearchFunc(rest[:b.Count], h, compareHashes); uploaded && found {
			return b.At, true
		}
		rest = rest[b.Count:]
	}
	return 0, false
}

// Next is the manifest after m, which may be nil: these files became these.
func (m *Manifest) Next(at int64, of []string, became []File) *Manifest {
	next := &Manifest{Generation: 1}
	if m != nil {
		next.Generation = m.Generation + 1
		for _, f := range m.Files {
			if !slices.Contains(of, f.Name) {
				next.Files = append(next.Files, f)
			}
		}
		next.Merged, next.hashes = slices.Clone(m.Merged), slices.Clone(m.hashes)
	}
	next.Files = append(next.Files, became...)
	batch := Batch{At: at}
	var hashes []hash
	for _, name := range of {
		if h, uploaded := hashOf(name); uploaded {
			hashes = append(hashes, h)
		} else {
			batch.Names = append(batch.Names, name)
		}
	}
	slices.SortFunc(hashes, compareHashes)
	batch.Count = len(hashes)
	next.Merged, next.hashes = append(next.Merged, batch), append(next.hashes, hashes...)
	return next
}

// Encode is a line of JSON, and the hashes behind it.
func (m *Manifest) Encode() ([]byte, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	text = append(text, '\n')
	for _, h := range m.hashes {
		text = append(text, h[:]...)
	}
	return text, nil
}

// Decode reads a manifest.
func Decode(from io.Reader) (*Manifest, error) { return decode(from, true) }

// decode reads the whole of a manifest, or only the part that lists the merged files that count.
func decode(from io.Reader, whole bool) (*Manifest, error) {
	r := bufio.NewReader(io.LimitReader(from, mostHeader+8*mostHashes+1))
	line, err := r.ReadBytes('\n')
	if err != nil || len(line) > mostHeader {
		return nil, fmt.Errorf("%w: it has no first line", ErrDamaged)
	}
	m := &Manifest{}
	if err := json.Unmarshal(line, m); err != nil {
		return nil, fmt.Errorf("%w: %v", ErrDamaged, err)
	}
	total := 0
	for _, b := range m.Merged {
		if b.Count < 0 || b.Count > mostHashes-total {
			return nil, fmt.Errorf("%w: a batch of %d files", ErrDamaged, b.Count)
		}
		total += b.Count
	}
	if !whole {
		return m, nil
	}
	rest, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	if len(rest) != 8*total {
		return nil, fmt.Errorf("%w: %d bytes of hashes instead of %d", ErrDamaged, len(rest), 8*total)
	}
	m.hashes = make([]hash, total)
	for i := range m.hashes {
		copy(m.hashes[i][:], rest[8*i:])
	}
	return m, nil
}
