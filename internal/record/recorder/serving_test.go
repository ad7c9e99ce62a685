package recorder

import (
	"os"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/record/user"
	"github.com/ebpfprof/ebpfprof/output"
)

// The page never runs as root, and a reader without the right to read the dataset is refused before the recording begins.
func TestWhomThePageRunsAs(t *testing.T) {
	if os.Geteuid() != 0 {
		if as, err := viewer(output.PrivateAccess()); as != nil || err != nil {
			t.Errorf("%+v, %v", as, err)
		}
		t.Skip("this user is not root")
	}
	t.Setenv("SUDO_UID", "")
	nobody, err := user.Nobody()
	if err != nil {
		t.Skip(err)
	}
	group, name := nobody.Group()
	for _, c := range []struct {
		access output.Access
		may    bool
	}{
		{output.Access{Mode: 0o600, GID: -1}, false}, {output.Access{Mode: 0o640, GID: -1}, false}, {output.Access{Mode: 0o640, GID: group}, true},
		{output.Access{Mode: 0o644, GID: -1}, true},
	} {
		as, err := viewer(c.access)
		if !c.may && (cli.ExitCode(err) != cli.ExitUsage || !strings.Contains(err.Error(), "0640:"+name)) || c.may && (err != nil || as == nil) {
			t.Errorf("%+v: %+v, %v", c.access, as, err)
		}
	}
	t.Setenv("SUDO_UID", "1")
	t.Setenv("SUDO_GID", "1")
	if as, err := viewer(output.PrivateAccess()); err != nil || as.Name() == nobody.Name() {
		t.Errorf("%+v, %v", as, err)
	}
}

func TestAProgramThatOnlyRecordsHasNoPage(t *testing.T) {
	if err := (&recorder{}).serveIf(true, false); cli.ExitCode(err) != cli.ExitUsage {
		t.Error(err)
	}
}
