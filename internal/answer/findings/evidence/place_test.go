package evidence

import (
	"regexp"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings/thresholds"
)

// What is no code of the user's is known to usercode; the thresholds only add to it.
func TestThresholdsAddToWhatIsNotTheUsers(t *testing.T) {
	if listed := thresholds.Default().LibraryPaths; len(listed) > 0 {
		t.Errorf("the defaults list %q beside usercode", listed)
	}
	r := Recording{}
	for file, users := range map[string]bool{"/job/train.py": true, "/job/vendored/x.py": true,
		"/usr/lib/python3.11/site-packages/x.py": false, "": false} {
		if r.IsUsers(file) != users {
			t.Errorf("%q is the user's: %v", file, !users)
		}
	}
	r.libraries = append(r.libraries, regexp.MustCompile("/vendored/"))
	if r.IsUsers("/job/vendored/x.py") || !r.IsUsers("/job/train.py") {
		t.Error("library_paths is not heeded, or by all files")
	}
}
