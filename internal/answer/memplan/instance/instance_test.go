package instance

import (
	"errors"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/solve"
)

// TestReadTakesWhatPeopleWrite: order of columns, case, CRLF, byte order marks,
// spaces, columns of other tools, and no newline at the end.
func TestReadTakesWhatPeopleWrite(t *testing.T) {
	for _, text := range []string{
		"id,lower,upper,size\n7,0,3,100\n8,3,5,50\n",
		"size,upper,lower,id\r\n100,3,0,7\r\n50,5,3,8\r\n",
		"\xef\xbb\xbfID, Lower ,Upper,Size,hint\n7, 0,3 ,100,x\n8,3,5,50,",
		"id,lower,upper,size\n\"7\",0,3,100\n\n8,3,5,50",
	} {
		in, err := Read(strings.NewReader(text))
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if len(in.Blocks) != 2 || in.IDs[0] != "7" || in.Blocks[0] != (solve.Block{Lower: 0, Upper: 3, Size: 100}) ||
			in.Blocks[1] != (solve.Block{Lower: 3, Upper: 5, Size: 50}) {
			t.Errorf("%q: %+v", text, in)
		}
	}
	in, err := Read(strings.NewReader("id,lower,upper,size\na,4,4,9\n"))
	if err != nil || in.Empty != 1 {
		t.Errorf("an empty lifetime: %v, %+v", err, in)
	}
}

// TestReadNamesTheLine of each mistake, and what it is.
func TestReadNamesTheLine(t *testing.T) {
	const header = "id,lower,upper,size\n"
	for text, want := range map[string]string{
		"":                            "line 1: the file is empty",
		"id,lower,size\n":             "line 1: the header has no column upper",
		"a,b\n":                       "no column id and no lower and no upper and no size",
		"id,lower,upper,size,size\n":  "two columns named size",
		header + "0,0,1,1\n0,2,3,1\n": `line 3: id "0" is used before, in line 2`,
		header + "0,5,3,1\n":          "line 2: the lifetime [5, 3) ends before it begins",
		header + "0,-5,3,1\n":         "line 2: lower is -5",
		header + "0,0,3,-1\n":         "line 2: size is -1: it is negative",
		header + "0,0,x,1\n":          `line 2: upper is "x": give a whole number`,
		header + "0,0,1.5,1\n":        `line 2: upper is "1.5"`,
		header + "0,0,,1\n":           "line 2: upper is missing",
		header + "0,0,1\n":            "line 2: it has not as many fields as the header",
		header + "0,0,1,1,1\n":        "line 2: it has not as many fields as the header",
		header + "0,0,1,\"1\n":        "line 2",
		header + "\r\n0,0,9223372036854775808,1\r\n":        "line 3: upper is 9223372036854775808, which does not fit into 64 bits",
		header + "0,0,1," + strings.Repeat("9", 500) + "\n": "line 2: size is 9999999999999999999999999999999999999..., which does not fit",
		header + "0,0,1,2305843009213693951\n1,0,1,1\n":     "line 3: the sizes add up to more than 2 EiB",
	} {
		_, err := Read(strings.NewReader(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
	}
	if _, err := Read(strings.NewReader(header)); !errors.Is(err, ErrNoBlocks) {
		t.Errorf("no blocks: %v", err)
	}
}

// TestReadFixed takes ids that exist, once each.
func TestReadFixed(t *testing.T) {
	in, err := Read(strings.NewReader("id,lower,upper,size\na,0,3,100\nb,3,5,50\n"))
	if err != nil {
		t.Fatal(err)
	}
	fixed, err := in.ReadFixed(strings.NewReader("offset,id\n64,b\n"))
	if err != nil || len(fixed) != 1 || fixed[1] != 64 {
		t.Errorf("%v, %v", fixed, err)
	}
	for text, want := range map[string]string{
		"id,offset\nc,0\n":                   `line 2: there is no block with id "c"`,
		"id,offset\na,0\na,0\n":              `line 3: id "a" is fixed twice`,
		"id,offset\na,-1\n":                  "line 2: offset is -1",
		"id,offset\na,9223372036854775807\n": "line 2: offset 9223372036854775807 is above 2 EiB",
	} {
		if _, err := in.ReadFixed(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// FuzzRead: whatever is read can be planned.
func FuzzRead(f *testing.F) {
	f.Add("id,lower,upper,size\n7,0,3,100\n8,3,5,50\n")
	f.Fuzz(func(t *testing.T, text string) {
		in, err := Read(strings.NewReader(text))
		if err != nil {
			return
		}
		if len(in.IDs) != len(in.Blocks) {
			t.Fatal("ids and blocks differ in number")
		}
		if total := solve.Total(in.Blocks); total < 0 || total > solve.MaxTotal {
			t.Fatalf("a total of %d", total)
		}
	})
}
