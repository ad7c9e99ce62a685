package process

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func TestVersionHex(t *testing.T) {
	for hex, want := range map[uint32]string{
		0x030b07f0: "3.11.7", 0x030d00c2: "3.13.0rc2", 0x030e00a1: "3.14.0a1", 0x030c00b4: "3.12.0b4", 0x030a0df0: "3.10.13",
	} {
		if got := formatVersion(hex); got != want {
			t.Errorf("%#x is %q, want %q", hex, got, want)
		}
	}
}

func TestVersionStringIsTheOneThatPyGetVersionUses(t *testing.T) {
	contents := []byte("\x00/opt/3.10.13\x003.10.2\x00x86-3.9.1\x0013.10.5\x001.3.10.6\x003.10.7.1\x00")
	for _, c := range []struct {
		claim    string
		contents string
		minor    string
		referred uint64
		want     string
		from     string
	}{
		{"the one referred to, a tail", string(contents), "3.10", 0x1006, "3.10.13", "string"},
		{"the one referred to, whole", string(contents), "3.10", 0x100e, "3.10.2", "string"},
		{"several and no reference", string(contents), "3.10", 1, "3.10", "name"},
		{"several, no reference, no name", string(contents), "", 1, "", ""},
		{"the only one", "\x003.8.18\x00x\x003.8.18\x00", "3.8", 1, "3.8.18", "string"},
		{"none", "nothing", "3.8", 1, "3.8", "name"},
	} {
		version, from := versionFromStrings(versionStrings([]byte(c.contents), 0x1000, c.minor), c.minor,
			func(a uint64) bool { return a == c.referred })
		if version != c.want || from != c.from {
			t.Errorf("%s: %q from %q, want %q from %q", c.claim, version, from, c.want, c.from)
		}
	}
	code := []byte{0x48, 0x8d, 0x0d, 0xf9, 0x0f, 0, 0, 0xbf, 0x78, 0x56, 0x34, 0x12, 0xc3} // lea 0xff9(%rip); mov $0x12345678
	if !refersTo(code, 0x1000, 0x2000) || !refersTo(code, 0x1000, 0x12345678) || refersTo(code, 0x1000, 0x2001) {
		t.Error("operands are misread")
	}
}

func TestVersionAssignments(t *testing.T) {
	for source, want := range map[string]string{
		"from typing import Optional\n__version__ = '2.15.0+cu132'\ndebug = False\n": "2.15.0+cu132",
		"__version__ = \"0.4.30\"\n":     "0.4.30",
		"_version = '0.4.30'\n":          "0.4.30",
		"__version__: str = '1.2'\n":     "1.2",
		"    __version__ = 'indented'\n": "",
		"__version__ = _get_version()\n": "",
		"cuda: Optional[str] = '13.2'\n": "",
		"":                               "",
	} {
		if got := quotedVersion([]byte(source)); got != want {
			t.Errorf("%q: %q, want %q", source, got, want)
		}
	}
}

func TestPackageDirectories(t *testing.T) {
	for _, c := range [][4]string{
		{"/s/torch/lib/libc10.so", "torch", "lib/", "/s/torch"},
		{"/s/torch/_C.cpython-311.so", "torch", "_C.", "/s/torch"},
		{"/s/torchvision/_C.so", "torch", "_C.", ""},
		{"/s/jaxlib/_jax.so", "jaxlib", "", "/s/jaxlib"},
		{"/torch/lib/x/torch/lib/y.so", "torch", "lib/", "/torch/lib/x/torch"},
		{"/usr/lib/libtorch_cpu.so", "torch", "lib/", ""},
	} {
		if got := packageDirectory(c[0], c[1], c[2]); got != c[3] {
			t.Errorf("packageDirectory(%q, %q, %q) = %q, want %q", c[0], c[1], c[2], got, c[3])
		}
	}
}

func TestJAXIsItsPackagesVersion(t *testing.T) {
	r := newRecording(t)
	r.process(7, func(string) {
		r.file("7/maps", twoLibraries+"7f1000000000-7f1000010000 r-xp 00000000 fe:00 77 /site/jaxlib/_jax.so\n")
		r.file("7/root/site/jax-0.7.1.dist-info/METADATA", "Version: 0.7.1\n")
		r.file("7/root/site/jaxlib-0.7.0.dist-info/METADATA", "Version: 0.7.0\n")
	})
	p, err := r.fs().Open(7)
	if err != nil {
		t.Fatal(err)
	}
	libraries, err := p.Libraries()
	if err != nil {
		t.Fatal(err)
	}
	want := Framework{"jax", "0.7.1", "/site/jax-0.7.1.dist-info"}
	if got := p.Frameworks(libraries); len(got) != 1 || got[0] != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestLibtorchWithoutPythonTellsByItsName(t *testing.T) {
	for line, want := range map[string]string{
		"/usr/lib/libtorch_cpu.so.1.13.0":   "1.13.0",
		"/opt/libtorch/lib/libtorch_cpu.so": "2.6.0+cpu",
		"/opt/other/libtorch_cpu.so":        "",
	} {
		r := newRecording(t)
		r.process(7, func(string) {
			r.file("7/maps", twoLibraries+"7f1000000000-7f1000010000 r-xp 00000000 fe:00 77 "+line+"\n")
			r.file("7/root/opt/libtorch/build-version", "2.6.0+cpu\n")
			r.file("7/root/opt/build-version", "not this\n")
		})
		p, err := r.fs().Open(7)
		if err != nil {
			t.Fatal(err)
		}
		libraries, err := p.Libraries()
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Frameworks(libraries); len(got) != 1 || got[0].Version != want {
			t.Errorf("%s: %+v, want %q", line, got, want)
		}
	}
}

func TestAVersionIsReadFromTheEndOfAConstant(t *testing.T) {
	for text, want := range map[string]string{
		"3.10.13": "3.10.13", "/opt/python/3.10.13": "3.10.13", "3.13.0rc2": "3.13.0rc2", "3.12.1+": "3.12.1+", "x3.9.0b1": "3.9.0b1",
		"": "", "+": "", "3.10": "", "3.10.131": "", "4.10.13": "", "3.100.1": "", "3..1": "", "rc2": "", ".1.2": "", "3.1.x2": "", "1.2": "",
		"a1": "",
	} {
		got := ""
		if at := versionAtEnd([]byte(text)); at >= 0 {
			got = text[at:]
		}
		if got != want {
			t.Errorf("of %q %q was read, not %q", text, got, want)
		}
	}
}

// A process may map thousands of files that are called like an interpreter's, and lists
// a directory of its own choice beside each of its libraries.
func TestWhatTellsVersionsIsReadOnce(t *testing.T) {
	var libraries []*Library
	for i := range 1000 {
		libraries = append(libraries, &Library{Path: fmt.Sprintf("/job/%d/python3.%d", i, i), Inode: uint64(i)})
	}
	if candidates := interpreterCandidates("/job/exe", libraries); len(candidates) > maxCandidates {
		t.Errorf("%d of %d files are searched", len(candidates), len(libraries))
	}
	site := t.TempDir()
	if err := os.Mkdir(filepath.Join(site, "torch-2.6.0.dist-info"), 0o700); err != nil {
		t.Fatal(err)
	}
	opened := watchOpens(t, site)
	p := &Process{PID: os.Getpid(), packages: &packages{}}
	for i := range 3 {
		if version, _ := p.distribution(site, "torch"); version != "2.6.0" {
			t.Fatalf("version %q", version)
		}
		if opened.any() != (i == 0) {
			t.Errorf("at look %d the directory was listed, or the first did not", i)
		}
	}
}
