package pickle

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"reflect"
	"strings"
	"testing"
)

func python(t *testing.T, program string, input []byte) []byte {
	t.Helper()
	interpreter, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 here to compare with")
	}
	command := exec.Command(interpreter, "-c", program)
	command.Stdin = bytes.NewReader(input)
	var complaints bytes.Buffer
	command.Stderr = &complaints
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, complaints.String())
	}
	return out
}

// TestReadsWhatPythonWrites: the same values by every protocol.
func TestReadsWhatPythonWrites(t *testing.T) {
	want := &Dict{
		Keys: []any{"numbers", "texts", "others", "shared"},
		Values: []any{
			&List{[]any{int64(0), int64(255), int64(256), int64(65536), int64(-1), int64(-70000), int64(139637976727552), int64(-1 << 62), 2.5}},
			&List{[]any{"", "ä", strings.Repeat("x", 300)}},
			Tuple{nil, true, false, Tuple(nil), Tuple{int64(1)}, Tuple{int64(1), int64(2), int64(3), int64(4)}, &Dict{}},
			&List{[]any{&List{[]any{int64(7)}}, &List{[]any{int64(7)}}}},
		},
	}
	const program = `import pickle,sys
shared=[7]
v={"numbers":[0,255,256,65536,-1,-70000,139637976727552,-1<<62,2.5],"texts":["","ä","x"*300],
"others":(None,True,False,(),(1,),(1,2,3,4),{}),"shared":[shared,shared]}
sys.stdout.buffer.write(pickle.dumps(v,protocol=PROTOCOL))`
	for _, protocol := range []string{"0", "1", "2", "3", "4", "5"} {
		if protocol == "0" {
			continue // escapes texts in a way of its own; nothing writes it today
		}
		got, err := Read(bytes.NewReader(python(t, strings.Replace(program, "PROTOCOL", protocol, 1), nil)), DefaultLimits)
		if err != nil {
			t.Errorf("protocol %s: %v", protocol, err)
			continue
		}
		if !reflect.DeepEqual(normal(got), normal(want)) {
			t.Errorf("protocol %s: %#v", protocol, got)
		}
	}
}

// normal makes nil and empty slices equal.
func normal(v any) any {
	switch v := v.(type) {
	case *List:
		items := []any{}
		for _, i := range v.Items {
			items = append(items, normal(i))
		}
		return items
	case Tuple:
		items := Tuple{}
		for _, i := range v {
			items = append(items, normal(i))
		}
		return items
	case *Dict:
		items := map[any]any{}
		for i := range v.Keys {
			items[v.Keys[i]] = normal(v.Values[i])
		}
		return items
	}
	return v
}

// TestPythonReadsWhatIsWritten: numbers of every width, texts, nothing lost.
func TestPythonReadsWhatIsWritten(t *testing.T) {
	var b bytes.Buffer
	w := NewWriter(&b)
	w.Dict()
	w.Text("n")
	w.List()
	for _, n := range []int64{0, 255, 256, 65535, 65536, -1, -1 << 31, 1 << 31, 139637976727552, -1 << 63} {
		w.Int(n)
	}
	w.EndList()
	w.Text("l")
	w.List()
	w.Text("n")
	w.Text(strings.Repeat("y", 300))
	w.None()
	w.EndList()
	first := w.Memoize()
	w.Text("again")
	w.Again(first)
	for i := range 300 {
		w.Text(strings.Repeat("z", i+1))
		w.Int(int64(i))
	}
	w.EndDict()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	out := python(t, `import pickle,sys
v=pickle.loads(sys.stdin.buffer.read())
assert v["n"]==[0,255,256,65535,65536,-1,-1<<31,1<<31,139637976727552,-1<<63], v["n"]
assert v["l"]==["n","y"*300,None] and v["again"]==v["l"], v["l"]
assert all(v["z"*(i+1)]==i for i in range(300))
print("ok")`, b.Bytes())
	if string(out) != "ok\n" {
		t.Errorf("%s", out)
	}
}

// TestLongListsAreAppendedInPieces: the viewer makes an argument of each item between
// a mark and an append, and JavaScript takes some ten thousands.
func TestLongListsAreAppendedInPieces(t *testing.T) {
	const items = 3*mostItems + 7
	var b bytes.Buffer
	w := NewWriter(&b)
	w.List()
	for range items {
		w.List()
		w.None()
		w.EndList()
	}
	w.EndList()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(b.Bytes(), []byte{opAppends}) - items; n != 4 {
		t.Errorf("%d items are appended in %d pieces", items, n)
	}
	out := python(t, `import pickle,sys
v=pickle.loads(sys.stdin.buffer.read())
print(len(v), all(i==[None] for i in v))`, b.Bytes())
	if string(out) != fmt.Sprintf("%d True\n", items) {
		t.Errorf("%s", out)
	}
}

// TestProgramsAreRefused: nothing of a pickle is ever imported or called, and
// damage is told.
func TestProgramsAreRefused(t *testing.T) {
	for text, want := range map[string]error{
		"cos\nsystem\n(S'true'\ntR.":            ErrNotData,
		"\x80\x04\x8c\x02os\x8c\x06system\x93.": ErrNotData,
		"\x80\x04}\x81.":                        ErrNotData,
		"":                                      ErrDamaged,
		"\x80\x04":                              ErrDamaged,
		"\x80\x04.":                             ErrDamaged,
		"\x80\x04(.":                            ErrDamaged,
		"\x80\x04]]K\x01.":                      ErrDamaged,
		"\x80\x04K\x01a.":                       ErrDamaged,
		"\x80\x04}K\x01K\x02K\x03u.":            ErrDamaged,
		"\x80\x04h\x09.":                        ErrDamaged,
		"\x80\x04X\xff\xff\xff\x7fabc.":         ErrDamaged,
		"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7fa.": ErrTooLarge,
		"\x80\x04\x8a\xff" + strings.Repeat("a", 300):    ErrDamaged,
		"\x80\x04\xff.": ErrDamaged,
	} {
		v, err := Read(strings.NewReader(text), DefaultLimits)
		if !errors.Is(err, want) {
			t.Errorf("%q: %v, %v, want %v", text, v, err, want)
		}
	}
	bomb := "\x80\x04" + strings.Repeat("N0", 1000) + "N."
	if _, err := Read(strings.NewReader(bomb), Limits{Objects: 500, Bytes: 1 << 20}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("too many objects: %v", err)
	}
}

// FuzzRead: no pickle makes the reader panic or run away.
func FuzzRead(f *testing.F) {
	f.Add([]byte("\x80\x04}\x94(\x8c\x01a\x94]\x94(K\x01M\x00\x01eu."))
	f.Fuzz(func(_ *testing.T, data []byte) {
		_, _ = Read(bytes.NewReader(data), Limits{Objects: 1 << 16, Bytes: 1 << 20})
	})
}
