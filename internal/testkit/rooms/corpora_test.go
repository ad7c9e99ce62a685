package rooms

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every fuzz target has inputs that go test runs: what it found, or what led it far.
func TestEveryFuzzTargetHasACorpus(t *testing.T) {
	target := regexp.MustCompile(`(?m)^func (Fuzz\w+)\(`)
	found := 0
	err := filepath.WalkDir("../../..", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && entry.Name() != ".." {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(name, "_test.go") {
			return nil
		}
		source, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for _, m := range target.FindAllSubmatch(source, -1) {
			found++
			corpus := filepath.Join(filepath.Dir(name), "testdata", "fuzz", string(m[1]))
			if inputs, err := os.ReadDir(corpus); err != nil || len(inputs) == 0 {
				t.Errorf("%s has no inputs in %s", m[1], corpus)
			}
		}
		return nil
	})
	if err != nil || found == 0 {
		t.Errorf("%d fuzz targets: %v", found, err)
	}
}
