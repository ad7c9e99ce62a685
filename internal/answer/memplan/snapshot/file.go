package snapshot

import (
	"archive/zip"
	"bufio"
	"compress/gzip"
	"fmt"
	"os"
	"path"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/exchange/pickle"
	"github.com/ebpfprof/ebpfprof/internal/exchange/unpacking"
)

// headBytes are enough to recognise a snapshot.
const headBytes = 4096

// mostLayers of gzip are unpacked.
const mostLayers = 4

// mostUnpacked bytes are read of a file whatever it was packed to.
const mostUnpacked = 8 << 20

// Is reports whether a file looks like a snapshot: a pickle, JSON that begins like one, either of them in gzip,
// or what torch.save writes.
func Is(file string) bool {
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	in, err := unpacked(bufio.NewReaderSize(f, 1<<16))
	if err != nil {
		return false
	}
	head, _ := in.Peek(headBytes)
	if isPickle(head) {
		return true
	}
	if isZip(head) {
		data, err := saved(f, info.Size())
		return err == nil && data != nil
	}
	text := strings.TrimLeft(string(head), "\ufeff \t\r\n")
	return strings.HasPrefix(text, "{") && !isTrace(text) &&
		(strings.Contains(text, `"segments"`) || strings.Contains(text, `"device_traces"`) || strings.Contains(text, `"allocator_settings"`))
}

// isPickle: protocols from 2 on begin with their number, 0 and 1 with an empty list or dictionary.
func isPickle(head []byte) bool {
	for _, begin := range []string{"\x80", "(d", "(l", "}q", "}(", "]q", "]("} {
		if strings.HasPrefix(string(head), begin) {
			return true
		}
	}
	return false
}

func isZip(head []byte) bool { return strings.HasPrefix(string(head), "PK\x03\x04") }

func isTrace(text string) bool {
	return strings.Contains(text, `"traceEvents"`) || strings.Contains(text, `"schemaVersion"`)
}

// ReadFile reads a snapshot. Nothing in a pickle is imported or called. Errors do not name the file.
func ReadFile(file string) (*Snapshot, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head := make([]byte, 4)
	n, _ := f.ReadAt(head, 0)
	if !isZip(head[:n]) {
		return Read(f)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	data, err := saved(f, info.Size())
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	case data == nil:
		return nil, fmt.Errorf("%w: the zip archive has no data.pkl, which torch.save writes", ErrFormat)
	}
	in, err := data.Open()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	defer in.Close()
	return Read(unpacking.Bound(in, unpacking.Size(info.Size()), mostUnpacked, pickle.ErrTooLarge))
}

// saved is the pickle in an archive that torch.save wrote, nil if there is none.
func saved(f *os.File, size int64) (*zip.File, error) {
	archive, err := zip.NewReader(f, size)
	if err != nil {
		return nil, fmt.Errorf("the zip archive is damaged or was cut off: copy it again: %w", err)
	}
	for _, member := range archive.File {
		if path.Base(member.Name) == "data.pkl" {
			return member, nil
		}
	}
	return nil, nil
}

// unpacked takes gzip off.
func unpacked(in *bufio.Reader) (*bufio.Reader, error) {
	for range mostLayers {
		if head, _ := in.Peek(2); len(head) < 2 || head[0] != 0x1f || head[1] != 0x8b {
			break
		}
		packed := unpacking.Count(in)
		z, err := gzip.NewReader(packed)
		if err != nil {
			return nil, fmt.Errorf("its gzip header is damaged: %w", err)
		}
		in = bufio.NewReaderSize(unpacking.Bound(z, packed, mostUnpacked, pickle.ErrTooLarge), 1<<20)
	}
	return in, nil
}

// otherFile says what a file is that is no snapshot, "" if it may be one.
func otherFile(head string) string {
	text := strings.TrimLeft(head, "\ufeff \t\r\n")
	switch {
	case strings.HasPrefix(text, "version https://git-lfs"):
		return "it is a pointer of Git LFS and not the file itself: fetch that with git lfs pull"
	case strings.HasPrefix(text, "SQLite format 3\x00"), strings.HasPrefix(text, "{") && isTrace(text):
		return "it is a trace: read it with ebpfprof import FILE"
	case strings.HasPrefix(text, "[") && !strings.Contains(text, `"total_size"`):
		return "it is a list, such as a memory timeline, which has no call stacks: write a snapshot with torch.cuda.memory._dump_snapshot"
	case strings.HasPrefix(text, "<"):
		return "it is a web page: take the pickle that torch.cuda.memory._dump_snapshot writes"
	case isPickle([]byte(head)), strings.HasPrefix(text, "{"), strings.HasPrefix(text, "["):
		return ""
	}
	return "it is neither a pickle nor JSON: write one with torch.cuda.memory._dump_snapshot"
}
