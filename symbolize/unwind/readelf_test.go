package unwind

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
)

// The oracle is binutils: the rows that readelf prints, made into rules by the
// few lines below, must be the rows of our tables, one by one.

// oracleFiles are what a job maps: PyTorch, libc, an interpreter, hand-written
// assembler, and CUDA libraries from PyPI.
func oracleFiles(t testing.TB) []string {
	home, _ := os.UserHomeDir()
	cache := cmp.Or(os.Getenv("EBPFPROF_CACHE"), filepath.Join(home, ".cache", "ebpfprof"))
	site := filepath.Join(cache, "torch-venv/lib/python3.*/site-packages")
	patterns := []string{"/lib/*-linux-gnu/libc.so.6", "/usr/bin/python3.[0-9]*[0-9]", site + "/nvidia/cu*/lib/libcudart.so.*"}
	if !testing.Short() {
		patterns = append(patterns, "/usr/lib/*-linux-gnu/libcrypto.so.3", "/usr/lib/*-linux-gnu/libtorch_cpu.so.1.13.0",
			filepath.Join(home, ".pyenv/versions/*/lib/libpython3.[0-9]*.so.1.0"),
			site+"/nvidia/nccl/lib/libnccl.so.2", site+"/torch/lib/libc10.so")
	}
	var found []string
	for _, p := range patterns {
		matches, _ := filepath.Glob(p)
		if len(matches) == 0 {
			t.Logf("not here: %s", p)
		}
		found = append(found, matches...)
	}
	if len(found) < 2 {
		t.Skip("neither libc nor an interpreter here")
	}
	return found
}

func TestRowsAreThoseOfReadelf(t *testing.T) {
	for _, path := range oracleFiles(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			e, err := elf.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			table, err := Compile(e, nil)
			if err != nil {
				t.Fatal(err)
			}
			want := oracleRows(t, path)
			got := rowsOf(table)
			different := 0
			for i := range max(len(got), len(want)) {
				if i < len(got) && i < len(want) && got[i] == want[i] {
					continue
				}
				if different++; different < 5 {
					t.Errorf("row %d: %v, readelf has %v", i, at(got, i), at(want, i))
				}
			}
			if different > 0 {
				t.Errorf("%d of %d rows differ from readelf", different, len(want))
			}
			if table.Skipped > 0 {
				t.Errorf("%d descriptions were not understood", table.Skipped)
			}
			t.Logf("%d rows as readelf's, %d rules, %.2f bytes a row in pages of %d", len(want), len(table.Rules),
				float64(len(table.Leaves))/float64(table.Rows), 1<<table.PageBits)
		})
	}
}

func at(rows []oracleRow, i int) string {
	if i >= len(rows) {
		return "none"
	}
	return rows[i].String()
}

type oracleRow struct {
	address uint64
	rule    Rule
}

func (r oracleRow) String() string { return fmt.Sprintf("%#x %+v", r.address, r.rule) }

// rowsOf lists a table's rows from its image, without those that only repeat
// the rule at the start of a page.
func rowsOf(t *Table) []oracleRow {
	var rows []oracleRow
	add := func(address uint64, rule Rule) {
		if n := len(rows); n == 0 && rule.Kind != None || n > 0 && rows[n-1].rule != rule {
			rows = append(rows, oracleRow{address, rule})
		}
	}
	shift := pcShift(t.Machine)
	for number := range t.Pages {
		page := t.Leaves[number*8:]
		leaf, first, count := int(le.Uint32(page)), int(le.Uint16(page[4:])), int(le.Uint16(page[6:]))
		start := t.Base + uint64(number)<<t.PageBits
		end := start + 1<<t.PageBits
		for i := range count {
			r := t.Leaves[leaf*LeafBytes+(first+i)*4:]
			address := start - rowReach + uint64(le.Uint16(r))<<shift
			code := le.Uint16(r[2:])
			if code&oneRule != 0 {
				add(address, t.Rules[code&^oneRule])
				continue
			}
			cells := t.sequence(code)
			for c := 0; c < sequenceCells && le.Uint16(cells[c*4:]) != unusedCell; c++ {
				// Those before the page are the page's before, those behind it the next one's.
				if at := address + uint64(le.Uint16(cells[c*4:]))<<shift; at >= start && at < end {
					add(at, t.Rules[le.Uint16(cells[c*4+2:])])
				}
			}
		}
	}
	return rows
}

// oracleBlock is one CIE or FDE as readelf prints it.
type oracleBlock struct {
	start, end  uint64
	signal      bool
	expressions []oracleExpression
	rows        []oracleLine
	commons     string
}

// oracleExpression is the CFA's from an address on.
type oracleExpression struct {
	address uint64
	text    string
}

type oracleLine struct {
	address uint64
	column  map[string]string
}

var headerLine = regexp.MustCompile(
	`^([0-9a-f]+) [0-9a-f]+ [0-9a-f]+ (CIE|FDE)(?: "(\S*)")?(?:.* cie=([0-9a-f]+) pc=([0-9a-f]+)\.\.([0-9a-f]+))?`)

// oracleRows makes rows of what readelf prints.
func oracleRows(t *testing.T, path string) []oracleRow {
	commons, descriptions := map[string]*oracleBlock{}, []*oracleBlock{}
	byOffset := map[string]*oracleBlock{}
	var block *oracleBlock
	var columns []string
	readelf(t, "--debug-dump=frames-interp", path, func(line string) {
		if m := headerLine.FindStringSubmatch(line); m != nil {
			block, columns = &oracleBlock{commons: m[4]}, nil
			byOffset[m[1]] = block
			if m[2] == "CIE" {
				block.signal = strings.Contains(m[3], "S")
				commons[m[1]] = block
				return
			}
			block.start, _ = strconv.ParseUint(m[5], 16, 64)
			block.end, _ = strconv.ParseUint(m[6], 16, 64)
			descriptions = append(descriptions, block)
			return
		}
		fields := strings.Fields(strings.ReplaceAll(line, " (", "(")) // r9 (r9)
		if len(fields) > 1 && fields[0] == "LOC" {
			columns = fields
		} else if columns != nil && len(fields) == len(columns) {
			l := oracleLine{column: map[string]string{}}
			l.address, _ = strconv.ParseUint(fields[0], 16, 64)
			for i := 1; i < len(fields); i++ {
				l.column[columns[i]] = fields[i]
			}
			block.rows = append(block.rows, l)
		}
	})
	readExpressions(t, path, byOffset)
	return joinOracle(t, descriptions, commons)
}

// readExpressions takes from the raw instructions what the rows call "exp".
func readExpressions(t *testing.T, path string, byOffset map[string]*oracleBlock) {
	var block *oracleBlock
	var now oracleExpression
	var saved []string
	set := func(text string) {
		now.text = text
		block.expressions = append(block.expressions, now)
	}
	readelf(t, "--debug-dump=frames", path, func(line string) {
		if m := headerLine.FindStringSubmatch(line); m != nil {
			block, saved = byOffset[m[1]], nil
			now = oracleExpression{address: block.start}
			return
		}
		line = strings.TrimSpace(line)
		if text, ok := strings.CutPrefix(line, "DW_CFA_def_cfa_expression ("); ok {
			set(strings.TrimSuffix(text, ")"))
		} else if strings.HasPrefix(line, "DW_CFA_advance_loc") {
			now.address, _ = strconv.ParseUint(line[strings.LastIndex(line, " ")+1:], 16, 64)
		} else if strings.HasPrefix(line, "DW_CFA_remember_state") {
			saved = append(saved, now.text)
		} else if strings.HasPrefix(line, "DW_CFA_restore_state") {
			set(saved[len(saved)-1])
			saved = saved[:len(saved)-1]
		}
	})
}

func joinOracle(t *testing.T, descriptions []*oracleBlock, commons map[string]*oracleBlock) []oracleRow {
	slices.SortStableFunc(descriptions, func(a, b *oracleBlock) int { return cmp.Compare(a.start, b.start) })
	var rows []oracleRow
	add := func(r oracleRow) {
		if n := len(rows); n == 0 || rows[n-1].rule != r.rule {
			rows = append(rows, r)
		}
	}
	for i, d := range descriptions {
		common := commons[d.commons]
		if common == nil {
			t.Fatalf("no CIE %q", d.commons)
		}
		if d.end == d.start {
			continue
		}
		lines := d.rows
		if len(lines) == 0 {
			lines = []oracleLine{{d.start, common.rows[0].column}}
		}
		limit := d.end
		if i+1 < len(descriptions) {
			limit = min(limit, descriptions[i+1].start)
		}
		for _, l := range lines {
			if l.address < limit {
				add(oracleRow{l.address, oracleRule(t, l, common.signal, d.expressions)})
			}
		}
		if i+1 == len(descriptions) || descriptions[i+1].start-limit >= paddingBytes {
			add(oracleRow{address: limit})
		}
	}
	return rows
}

var (
	registerOffset  = regexp.MustCompile(`^([a-z0-9]+)([+-]\d+)$`)
	derefExpression = regexp.MustCompile(`^DW_OP_breg\d+ \((\w+)\): (-?\d+); DW_OP_deref(?:; DW_OP_plus_uconst: (\d+))?$`)
	pltExpression   = regexp.MustCompile(
		`^DW_OP_breg7 \(rsp\): 8; DW_OP_breg16 \(rip\): 0; DW_OP_lit15; DW_OP_and; DW_OP_lit(\d+); DW_OP_ge; DW_OP_lit3; DW_OP_shl; DW_OP_plus$`)
	oracleBase = map[string]Base{"rsp": SP, "rbp": FP, "r10": R10, "r13": R13}
)

func number(s string) int32 {
	n, _ := strconv.ParseInt(s, 10, 32)
	return int32(n)
}

// oracleRule is what a line of readelf's says to a walk on x86-64.
func oracleRule(t *testing.T, line oracleLine, signal bool, expressions []oracleExpression) Rule {
	r, column := Rule{}, line.column
	if signal {
		return Rule{Kind: Signal}
	}
	cfa := column["CFA"]
	if cfa == "exp" {
		r = expressionRule(t, line.address, expressions)
	} else if m := registerOffset.FindStringSubmatch(cfa); m != nil {
		base, followed := oracleBase[m[1]]
		if !followed {
			return Rule{Kind: Register}
		}
		r = Rule{Kind: Offset, Register: base, CFA: number(m[2])}
	} else {
		t.Fatalf("a CFA of readelf's: %q", cfa)
	}
	if r.Kind == Expression {
		return r
	}
	switch column["ra"] {
	case "u":
		r.ReturnAddress = End
	case "c-8":
	case "r5(rdi)":
		r.ReturnAddress = Link
	default:
		return Rule{Kind: Expression}
	}
	switch fp := column["rbp"]; {
	case fp == "" || fp == "u" || fp == "s":
	case strings.HasPrefix(fp, "c"):
		r.FramePointer, r.FPOffset = AtCFA, number(fp[1:])
	case fp == "exp": // in every file so far (rbp + 0); the dump of the raw instructions says so
		r.FramePointer = AtFP
	default:
		r.FramePointer = Lost
	}
	return r
}

func expressionRule(t *testing.T, address uint64, expressions []oracleExpression) Rule {
	text := ""
	for _, e := range expressions {
		if e.address <= address {
			text = e.text
		}
	}
	if text == "" {
		t.Fatalf("readelf says exp at %#x, but the raw dump has no expression", address)
	}
	if m := pltExpression.FindStringSubmatch(text); m != nil {
		return Rule{Kind: PLT, Aux: number(m[1])}
	}
	if m := derefExpression.FindStringSubmatch(text); m != nil {
		if base, ok := oracleBase[m[1]]; ok {
			return Rule{Kind: Deref, Register: base, Aux: number(m[2]), CFA: number(m[3])}
		}
	}
	return Rule{Kind: Expression}
}

func readelf(t *testing.T, option, path string, yield func(string)) {
	t.Helper()
	command := exec.Command("readelf", "--wide", option, path)
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Skipf("readelf: %v: install binutils", err)
	}
	defer command.Process.Kill()
	inFrames := false
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(line, "Contents of the ") {
			inFrames = strings.Contains(line, ".eh_frame section")
		} else if inFrames {
			yield(strings.TrimRight(line, "\n"))
		}
	}
	// It fails for want of separate debug information; of no rows at all ours would differ.
	_ = command.Wait()
}
