package iceberg

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

var errTaken = errors.New("taken")

// memory is a store; before is called before each Create.
type memory struct {
	all    map[string]string
	before func()
}

func (m *memory) Get(_ context.Context, key string) (io.ReadCloser, error) {
	content, ok := m.all[key]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(strings.NewReader(content)), nil
}

func (m *memory) Put(_ context.Context, key string, content []byte) error {
	m.all[key] = string(content)
	return nil
}

func (m *memory) Replace(ctx context.Context, key string, content []byte) error {
	return m.Put(ctx, key, content)
}

func (m *memory) Create(ctx context.Context, key string, content []byte) error {
	if before := m.before; before != nil {
		m.before = nil
		before()
	}
	if _, ok := m.all[key]; ok {
		return errTaken
	}
	return m.Put(ctx, key, content)
}

func (m *memory) Remove(_ context.Context, key string) error {
	delete(m.all, key)
	return nil
}

func (m *memory) List(_ context.Context, prefix string) (keys []string, err error) {
	for key := range m.all {
		if strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys, nil
}

func kept(m *memory) *Table {
	return &Table{Store: m, Key: "iceberg/t", Location: "file:///s/iceberg/t", Taken: errTaken, Now: time.Now,
		Columns: []Column{{Name: "job", Type: "string"}, {Name: "begin_ns", Type: "long"}}}
}

func footer(path string, column func(string) int) (Entry, error) {
	if strings.Contains(path, "bad") {
		return Entry{}, ErrLeaveOut
	}
	id := column("begin_ns")
	return Entry{Bytes: 100, Rows: 7, Lower: map[int][]byte{id: []byte("12345678")}, Upper: map[int][]byte{id: []byte("abcdefgh"),
		id + 1: nil}}, nil
}

func paths(t *testing.T, table *Table) (all []string) {
	t.Helper()
	files, err := table.Files(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		all = append(all, f.Path)
	}
	slices.Sort(all)
	return all
}

func TestATableHasTheFilesThatItIsToHave(t *testing.T) {
	m := &memory{all: map[string]string{}}
	table := kept(m)
	for n, c := range []struct {
		files   []string
		changed bool
	}{{nil, true}, {[]string{"a", "bad", "b"}, true}, {[]string{"b", "a", "bad"}, false}, {[]string{"b", "c"}, true}, {[]string{"c"}, true},
		{nil, true}, {nil, false},
		{[]string{"x"}, true}, {[]string{"y"}, true}, {[]string{"z"}, true}, {[]string{"é"}, true}} {
		changed, err := table.Keep(t.Context(), c.files, footer)
		if err != nil || changed != c.changed {
			t.Errorf("%d: changed %v, %v", n, changed, err)
		}
		want := slices.DeleteFunc(slices.Clone(c.files), func(f string) bool { return f == "bad" })
		slices.Sort(want)
		if got := paths(t, table); !slices.Equal(got, want) {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
	files, err := table.Files(t.Context())
	if err != nil || len(files) != 1 || files[0].Rows != 7 || files[0].Bytes != 100 || string(files[0].Lower[2]) != "12345678" ||
		len(files[0].Upper) != 2 {
		t.Errorf("%+v, %v", files, err)
	}
	// Nine versions were made: what the last five have is there, and no more.
	keys, _ := m.List(t.Context(), "")
	versions := 0
	for _, key := range keys {
		if strings.HasSuffix(key, ".json") {
			versions++
		}
	}
	if m.all["iceberg/t/metadata/version-hint.text"] != "9" || versions != keptVersions+keptSnapshots ||
		m.all["iceberg/t/metadata/v9.metadata.json"] == "" {
		t.Errorf("%q", keys)
	}
}

// Columns of a later version have new numbers, and those that there were keep theirs.
func TestColumnsKeepTheirNumbers(t *testing.T) {
	m := &memory{all: map[string]string{}}
	table := kept(m)
	if _, err := table.Keep(t.Context(), []string{"a"}, footer); err != nil {
		t.Fatal(err)
	}
	table.Columns = []Column{{Name: "new", Type: "int"}, {Name: "begin_ns", Type: "long"}, {Name: "job", Type: "string"}}
	if _, err := table.Keep(t.Context(), []string{"a", "b"}, footer); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Current int      `json:"current-schema-id"`
		Last    int      `json:"last-column-id"`
		Schemas []schema `json:"schemas"`
	}
	if err := json.Unmarshal([]byte(m.all["iceberg/t/metadata/v2.metadata.json"]), &got); err != nil {
		t.Fatal(err)
	}
	want := []Column{{1, "job", false, "string"}, {2, "begin_ns", false, "long"}, {3, "new", false, "int"}}
	if got.Current != 1 || got.Last != 3 || len(got.Schemas) != 2 || !reflect.DeepEqual(got.Schemas[1].Fields, want) {
		t.Errorf("%+v", got)
	}
}

// Of two who commit at once one begins again; what it had written is gone.
func TestTwoWhoCommitAtOnce(t *testing.T) {
	m := &memory{all: map[string]string{}}
	for n := range 12 {
		other := fmt.Sprint("other ", n)
		m.before = func() {
			for k := range n { // so many versions, more than are kept
				if _, err := kept(m).Keep(t.Context(), []string{other, fmt.Sprint(k)}, footer); err != nil {
					t.Error(err)
				}
			}
		}
		mine := []string{fmt.Sprint("mine ", n)}
		if _, err := kept(m).Keep(t.Context(), mine, footer); err != nil {
			t.Fatal(err)
		}
		if got := paths(t, kept(m)); !slices.Equal(got, mine) {
			t.Errorf("%d: %q", n, got)
		}
	}
	keys, _ := m.List(t.Context(), "")
	if len(keys) > 1+(keptVersions+keptSnapshots)*4 {
		t.Errorf("%d files: %q", len(keys), keys)
	}
}

func TestATableOfAnotherProgramIsLeft(t *testing.T) {
	for name, change := range map[string]func(m *memory){
		"other manifests": func(m *memory) {
			for key, content := range m.all {
				m.all[key] = strings.ReplaceAll(content, `"name":"manifest_entry"`, `"name":"manifest_entrx"`)
			}
		},
		"another list": func(m *memory) {
			const key = "iceberg/t/metadata/v1.metadata.json"
			m.all[key] = strings.ReplaceAll(m.all[key], "/v1-", "/snap-")
		},
		"moved": func(m *memory) {
			const key = "iceberg/t/metadata/v1.metadata.json"
			m.all[key] = strings.ReplaceAll(m.all[key], "file:///s", "file:///u")
		},
	} {
		m := &memory{all: map[string]string{}}
		if _, err := kept(m).Keep(t.Context(), []string{"a"}, footer); err != nil {
			t.Fatal(err)
		}
		change(m)
		before := len(m.all)
		if _, err := kept(m).Keep(t.Context(), []string{"b"}, footer); !errors.Is(err, errForeign) || len(m.all) != before {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDamagedManifestsAreErrors(t *testing.T) {
	m := newTable("x")
	content, err := m.manifest([]Entry{{Path: "p", Bytes: 1, Rows: 2, Lower: map[int][]byte{1: []byte("x")}}})
	if err != nil {
		t.Fatal(err)
	}
	if all, err := readManifest(content); err != nil || len(all) != 1 || all[0].Path != "p" {
		t.Fatalf("%+v, %v", all, err)
	}
	const sync = 16 // the last bytes, which are not read
	for n := range 20 {
		if _, err := readManifest(content[:len(content)-sync-1-n]); !errors.Is(err, errAvro) {
			t.Errorf("without the last %d bytes: %v", sync+1+n, err)
		}
	}
}
