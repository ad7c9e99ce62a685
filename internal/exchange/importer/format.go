package importer

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// open recognises the format by the file's first bytes, not by its name.
func open(path string) (source, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("there is no file %s: %w", path, os.ErrNotExist)
	case err != nil:
		return nil, fmt.Errorf("importing %s: %w", path, err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s %w: it is not a regular file", path, ErrFormat)
	case info.Size() == 0:
		return nil, fmt.Errorf("%s %w: it is empty", path, ErrFormat)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("importing %s: %w", path, err)
	}
	defer file.Close()
	head := make([]byte, headBytes)
	n, err := io.ReadFull(file, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fmt.Errorf("importing %s: %w", path, err)
	}
	head = head[:n]
	text := plainText(head)
	switch {
	case strings.HasPrefix(text, "SQLite format 3\x00"):
		return openSQLite(path)
	case strings.HasPrefix(text, "{") && strings.Contains(text, `"`+rocprofTool+`"`):
		return &rocprofJSON{path: path, size: info.Size(), calls: calls{}, kinds: kernels{}}, nil
	case isGzip(head), isPerfetto(head), strings.HasPrefix(text, "{"), strings.HasPrefix(text, "["):
		return &kineto{path: path, size: info.Size()}, nil
	case strings.HasSuffix(path, ".nsys-rep"):
		return nil, fmt.Errorf("%s %w: export it first: nsys export --type sqlite %s", path, ErrFormat, path)
	}
	return nil, fmt.Errorf("%s %w: %s", path, ErrFormat, otherFormat(text))
}

// headBytes are enough to recognise a format.
const headBytes = 512

func plainText(head []byte) string { return strings.TrimLeft(string(head), "\ufeff \t\r\n") }

func isGzip(head []byte) bool { return len(head) > 1 && head[0] == 0x1f && head[1] == 0x8b }

// otherFormats are what people have in place of a trace, by its first bytes.
var otherFormats = []struct{ begin, what string }{
	{"version https://git-lfs", "it is a pointer of Git LFS and not the file itself: fetch that with git lfs pull"},
	{"NSYSREP", "it is a report of Nsight Systems: export it first with nsys export --type sqlite"},
	{"SQLite format 3\x00", "it is a database in gzip: unpack it with gunzip and import the result"},
	{"\x80", "it is a pickle: a memory snapshot of PyTorch is read by ebpfprof memory FILE"},
	{"PK\x03\x04", "it is a zip archive: unpack it and import the trace in it; ebpfprof memory FILE reads a snapshot of torch.save"},
	{"\x28\xb5\x2f\xfd", "it is compressed with zstd: unpack it with zstd -d and import the result"},
	{"\xfd7zXZ\x00", "it is compressed with xz: unpack it with xz -d and import the result"},
	{"BZh", "it is compressed with bzip2: unpack it with bunzip2 and import the result"},
	{"\xff\xfe", "its text is UTF-16: convert it to UTF-8, for example with iconv -f UTF-16 -t UTF-8"},
	{"\xfe\xff", "its text is UTF-16: convert it to UTF-8, for example with iconv -f UTF-16 -t UTF-8"},
	{"<", "it is a web page: import the JSON that the profiler wrote, not a page that shows it"},
	{"PAR1", "it is a Parquet file: a dataset of ebpfprof is a directory of them and needs no import"},
	{"\x00", "it begins with zero bytes: was the disk full when it was written?"},
}

// otherFormat says in a sentence what a file is that is no trace.
func otherFormat(text string) string {
	for _, f := range otherFormats {
		if strings.HasPrefix(text, f.begin) {
			return f.what
		}
	}
	return "it is neither a trace in Chrome's JSON (torch.profiler, JAX; also .gz) nor an export of Nsight Systems (.sqlite) nor a trace of " +
		"rocprofv3 (.db, .json) or Perfetto (.pftrace)"
}
