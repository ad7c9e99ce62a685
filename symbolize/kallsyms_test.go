package symbolize

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

const someKernel = `0000000000001000 A cpu_debug_store
ffffffff81000000 T _text
ffffffff81000000 T _stext
ffffffff81000100 T __x64_sys_read
ffffffff81000100 T ksys_read_alias_name
ffffffff81000200 t do_thing.constprop.0
ffffffff81000300 T _etext
ffffffff81800000 D jiffies
ffffffff82000000 B _end
ffffffffc0a00040 t nv_open	[nvidia]
ffffffffc0a00000 T nv_init	[nvidia]
ffffffffc0a01000 d nv_data	[nvidia]
ffffffffc0c00000 t bpf_prog_0123456789abcdef_call_entry	[bpf]
`

func kernelOf(t *testing.T, kallsyms, modules string) *KernelNames {
	t.Helper()
	dir := t.TempDir()
	write := func(name, content string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("kallsyms", kallsyms)
	write("modules", modules)
	write("sys/kernel/notes", "\x04\x00\x00\x00\x02\x00\x00\x00\x03\x00\x00\x00GNU\x00\xab\xcd\x00\x00")
	return newKernelNames(dir, filepath.Join(dir, "sys"))
}

func TestKernelFramesCountFromTheirModule(t *testing.T) {
	k := kernelOf(t, someKernel, "nvidia 8192 0 - Live 0xffffffffc0a00000 (POE)\n")
	if err := k.Err(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		address uint64
		returns bool
		want    Frame
	}{
		{0xffffffff81000150, false, kernelFrame("ksys_read_alias_name", "[kernel]", "abcd", 0x150)},
		{0xffffffff81000200, true, kernelFrame("ksys_read_alias_name", "[kernel]", "abcd", 0x1ff)},
		{0xffffffff81000210, false, kernelFrame("do_thing.constprop.0", "[kernel]", "abcd", 0x210)},
		{0xffffffff81000300, false, kernelFrame("", "[kernel]", "", 0x7fffffff81000300)},
		{0xffffffff83000000, false, kernelFrame("", "[kernel]", "", 0x7fffffff83000000)},
		{0xffffffffc0a00050, false, kernelFrame("nv_open", "nvidia", "", 0x50)},
		{0xffffffffc0a01001, false, kernelFrame("", "[kernel]", "", 0x7fffffffc0a01001)},
		{0xffffffffc0c00010, false, kernelFrame("bpf_prog_0123456789abcdef_call_entry", "bpf", "", 0x10)},
		{0xffffffffd0000000, false, kernelFrame("", "[kernel]", "", 0x7fffffffd0000000)},
		{0, true, kernelFrame("", "[kernel]", "", 0x7fffffffffffffff)},
	} {
		if got := k.Frame(c.address, c.returns); got != c.want {
			t.Errorf("%#x: %+v, want %+v", c.address, got, c.want)
		}
	}
}

func TestAHiddenKernelSaysSo(t *testing.T) {
	k := kernelOf(t, "0000000000000000 T _text\n0000000000000000 T __x64_sys_read\n", "")
	if !errors.Is(k.Err(), ErrKernelHidden) {
		t.Errorf("Err = %v", k.Err())
	}
	if f := k.Frame(0xffffffff81000150, false); f != kernelFrame("", "[kernel]", "", 0x7fffffff81000150) {
		t.Errorf("%+v", f)
	}
}

func TestAModuleThatIsLoadedLaterGetsItsNames(t *testing.T) {
	k := kernelOf(t, someKernel, "")
	address := uint64(0xffffffffc0f00008)
	if f := k.Frame(address, false); f.Function != "" {
		t.Fatalf("%+v", f)
	}
	late := someKernel + "ffffffffc0f00000 t late_init	[late]\n"
	for name, content := range map[string]string{"kallsyms": late, "modules": "late 4096 0 - Live 0xffffffffc0f00000\n"} {
		if err := os.WriteFile(filepath.Join(k.proc, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	k.checked = time.Time{}
	if f := k.Frame(address+1, false); f.Function != "late_init" || f.Module != "late" {
		t.Errorf("%+v", f)
	}
}

func TestThisKernelIsNamed(t *testing.T) {
	k := NewKernelNames()
	if err := k.Err(); err != nil {
		t.Skip(err)
	}
	wrong := 0
	for _, s := range k.table.symbols {
		if !s.end && k.table.name(s) == "" {
			wrong++
		}
	}
	if n := len(k.table.symbols); n < 10_000 || wrong > 0 {
		t.Errorf("%d functions, %d without a name", n, wrong)
	}
	if k.table.modules[0].buildID == "" {
		t.Log("this kernel has no build id in /sys/kernel/notes")
	}
}

func FuzzKallsyms(f *testing.F) {
	f.Add([]byte(someKernel), []byte("nvidia 8192 0 - Live 0xffffffffc0a00000 (POE)\n"), uint64(0xffffffffc0a00050))
	f.Fuzz(func(t *testing.T, text, modules []byte, address uint64) {
		table, err := parseKallsyms(bytes.NewReader(text))
		if err != nil {
			return
		}
		table.boundModules(modules)
		if frame, ok := table.frame(address); ok && (frame.Function == "" || frame.Offset < 0) {
			t.Fatalf("%+v", frame)
		}
	})
}

func kernelFrame(function, module, buildID string, offset int64) Frame {
	return Frame{Kind: Kernel, Function: function, Module: module, BuildID: buildID, Offset: offset}
}
