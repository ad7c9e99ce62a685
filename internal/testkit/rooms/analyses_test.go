package rooms

import (
	"os"
	"strings"
	"testing"
)

// The example that docs/analyses.md shows is the one that is compiled.
func TestTheDocumentedAnalysisIsTheExample(t *testing.T) {
	page, err := os.ReadFile("../../../docs/analyses.md")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("../../../analysis/example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, found := strings.Cut(string(page), "```go\n")
	shown, _, closed := strings.Cut(shown, "```\n")
	if begin := strings.Index(string(example), "// softmax is"); !found || !closed || begin < 0 || shown != string(example)[begin:] {
		t.Errorf("docs/analyses.md shows another program than analysis/example_test.go has")
	}
}
