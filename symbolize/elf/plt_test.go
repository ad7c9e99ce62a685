package elf

import (
	"encoding/binary"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/testelf"
)

func TestStubsOfTheTinyLibraryNameTheirImports(t *testing.T) {
	e := parse(t, testelf.Tiny(t, "tiny.so"))
	for address, want := range map[uint64]string{0x350: "__stack_chk_fail", 0x360: "exported", 0x370: "imported", 0x340: "", 0x380: "",
		0x351: "", 0x1668: ""} {
		if got, _ := e.PLTTarget(address); got != want {
			t.Errorf("PLTTarget(%#x) = %q, want %q", address, got, want)
		}
		if got := e.NoReturn(address); got != (want == "__stack_chk_fail") {
			t.Errorf("NoReturn(%#x) = %v: %q", address, got, want)
		}
	}
}

// TestStubsAreThoseOfObjdump compares with the "<name@plt>:" that objdump
// makes up for each stub, on executables and libraries of several linkers.
func TestStubsAreThoseOfObjdump(t *testing.T) {
	paths := append(testelf.SystemLibraries(t), testelf.Globs("/usr/bin/ls", "/usr/bin/gdb")...)
	for _, path := range paths {
		e := open(t, path)
		compared := 0
		for _, section := range []string{".plt", ".plt.sec", ".plt.got"} {
			if _, _, ok := e.Section(section); !ok {
				continue
			}
			output(t, func(line string) {
				hex, rest, ok := strings.Cut(line, " <")
				name, ok2 := strings.CutSuffix(rest, "@plt>:")
				if !ok || !ok2 || strings.HasPrefix(name, "*ABS*") {
					return // no stub, or one of an indirect function, which has no name
				}
				name, _, _ = strings.Cut(name, "@")
				address, err := strconv.ParseUint(hex, 16, 64)
				if err != nil {
					t.Fatal(err)
				}
				got, ok := e.PLTTarget(address)
				if !ok && section == ".plt" {
					if _, _, split := e.Section(".plt.sec"); split {
						return // the lazy half of a split table: nothing calls it
					}
				}
				if compared++; got != name {
					t.Errorf("%s: %s stub at %#x is %q, objdump says %q", path, section, address, got, name)
				}
			}, "objdump", "-d", "--no-show-raw-insn", "-j", section, path)
		}
		t.Logf("%s: %d stubs", filepath.Base(path), compared)
	}
}

func TestStubFormsOfX86Linkers(t *testing.T) {
	for _, c := range []struct {
		linker string
		code   []byte
		want   uint64
	}{
		{"ld", []byte{0xff, 0x25, 0x10, 0, 0, 0}, 0x1016},
		{"ld, backwards", []byte{0xff, 0x25, 0xfa, 0xff, 0xff, 0xff}, 0x1000},
		{"ld -z ibtplt", []byte{0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 0x10, 0, 0, 0}, 0x101a},
		{"ld, bnd", []byte{0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0x10, 0, 0, 0}, 0x101b},
		{"lld -z retpolineplt", []byte{0x4c, 0x8b, 0x1d, 0x10, 0, 0, 0, 0xe8, 0, 0, 0, 0}, 0x1017},
		{"a load, not a stub", []byte{0x4c, 0x8b, 0x1d, 0x10, 0, 0, 0, 0xc3}, 0},
		{"a call", []byte{0xff, 0x15, 0x10, 0, 0, 0}, 0},
		{"cut short", []byte{0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0x10, 0, 0}, 0},
		{"nothing", nil, 0},
	} {
		if got, ok := decodeStubX86(0x1000, c.code); got != c.want || ok != (c.want != 0) {
			t.Errorf("%s: slot %#x, %v, want %#x", c.linker, got, ok, c.want)
		}
	}
}

func TestStubFormsOfARM64Linkers(t *testing.T) {
	code := func(words ...uint32) (b []byte) {
		for _, w := range words {
			b = binary.LittleEndian.AppendUint32(b, w)
		}
		return b
	}
	// adrp x16, 0x1f000 (from 0x10000); ldr x17, [x16, #0xfb8]; add x16, x16, #0xfb8; br x17
	const adrp, ldr, add, br, bti = 0xf0000070, 0xf947de11, 0x913ee210, 0xd61f0220, 0xd503245f
	for _, c := range []struct {
		linker string
		code   []byte
		want   uint64
	}{
		{"ld, lld", code(adrp, ldr, add, br), 0x1ffb8},
		{"with bti", code(bti, adrp, ldr, add, br), 0x1ffb8},
		{"without the add", code(adrp, ldr, br), 0x1ffb8},
		{"a page below", code(0xf0fffff0, ldr, add, br), 0xffb8},
		{"another register", code(adrp+1, ldr, add, br), 0},
		{"no branch", code(adrp, ldr, add, add), 0},
		{"cut short", code(adrp, ldr, add), 0},
	} {
		if got, ok := decodeStubARM64(0x10000, c.code); got != c.want || ok != (c.want != 0) {
			t.Errorf("%s: slot %#x, %v, want %#x", c.linker, got, ok, c.want)
		}
	}
}

func TestNoReturnNames(t *testing.T) {
	for name, want := range map[string]bool{
		"__stack_chk_fail": true, "abort": true, "__cxa_throw": true, "_Unwind_Resume": true,
		"_ZSt9terminatev": true, "_ZSt20__throw_length_errorPKc": true,
		"_ZSt28__throw_bad_array_new_lengthv":                    true,
		"_ZSt24__throw_out_of_range_fmtPKcz":                     true,
		"_ZNSt3__120__throw_system_errorEiPKc":                   true,
		"_ZN3c106detail14torchCheckFailEPKcS2_jRKSs":             true,
		"_ZN3c106detail23torchInternalAssertFailEPKcS2_jS2_RKSs": true,
		"_ZSt19__throw_with_nestedI3FooEvOT_":                    false,
		"_Unwind_Resume_or_Rethrow":                              false,
		"_ZSt4moveIRiEvOT_":                                      false,
		"_ZN3c104warnERKNS_7WarningE":                            false,
		"__cxa_begin_catch":                                      false,
		"malloc":                                                 false,
		"aborted":                                                false,
		"":                                                       false,
		"_ZSt":                                                   false,
	} {
		if got := IsNoReturn(name); got != want {
			t.Errorf("IsNoReturn(%q) = %v", name, got)
		}
	}
}

func TestDefinitionsThatNeverReturnAreKnown(t *testing.T) {
	for _, path := range testelf.Globs("/usr/lib/*-linux-gnu/libstdc++.so.6") {
		e := open(t, path)
		for _, name := range []string{"__cxa_throw", "_ZSt9terminatev", "_ZSt20__throw_length_errorPKc"} {
			if s, ok := e.Lookup(name); !ok || !e.NoReturn(s.Address) {
				t.Errorf("%s: %s (%v) returns", path, name, ok)
			}
		}
		if s, ok := e.Lookup("__cxa_begin_catch"); !ok || e.NoReturn(s.Address) {
			t.Errorf("%s: __cxa_begin_catch (%v) never returns", path, ok)
		}
	}
}

func TestPyTorchFunctionsThatNeverReturnHaveNoReturnInstruction(t *testing.T) {
	checked := 0
	for _, libtorch := range testelf.Libtorchs(t) {
		paths := append(testelf.Globs(filepath.Join(filepath.Dir(libtorch), "libc10.so"), filepath.Join(filepath.Dir(libtorch),
			"libc10.so.1.13.0")), libtorch)
		for _, path := range paths {
			for _, s := range open(t, path).ExportedFunctions(noReturnPrefixes) {
				output(t, func(line string) {
					_, instruction, _ := strings.Cut(line, "\t")
					if strings.HasPrefix(instruction, "ret") || strings.HasPrefix(instruction, "bnd ret") {
						t.Errorf("%s: %s returns: %s", path, s.Name, line)
					}
				}, "objdump", "-d", "--no-show-raw-insn", "--start-address="+strconv.FormatUint(s.Address, 10),
					"--stop-address="+strconv.FormatUint(s.Address+s.Size, 10), path)
				checked++
			}
		}
	}
	if checked < 10 {
		t.Errorf("%d functions checked", checked)
	}
	t.Logf("%d functions checked", checked)
}
