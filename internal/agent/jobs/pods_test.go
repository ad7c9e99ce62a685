package jobs

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/testfile"
)

func TestAContainerIsNamedByItsPod(t *testing.T) {
	id, other := strings.Repeat("0123456789abcdef", 4), strings.Repeat("f", 64)
	logs := t.TempDir()
	for _, link := range []string{"train-0_ml_trainer-" + id + ".log", "web-7c9-x2k_shop_web-" + other + ".log", "notes.txt"} {
		testfile.Write(t, filepath.Join(logs, link), "")
	}
	for _, c := range []struct{ logs, container, cgroup, want string }{
		{logs, id, "/kubepods/burstable/pod1f2e/" + id, "ml/train-0/trainer"},
		{logs, other, "/../kubepods-pod1f2e.slice/cri-containerd-" + other + ".scope", "shop/web-7c9-x2k/web"},
		{logs, id[:63] + "0", "/kubepods/burstable/pod1f2e/" + id[:63] + "0", ""},
		{logs, id[1:], "/lxc/" + id[1:], ""},
		{logs, "", "/", ""},
		// A user's own control group, called like the pod's container.
		{logs, id, "/user.slice/user-1000.slice/user@1000.service/" + id, ""},
		{filepath.Join(logs, "none"), id, "/kubepods/burstable/pod1f2e/" + id, ""},
	} {
		d := New(nil, nil)
		d.podLogs = c.logs
		if name := d.podOf(c.container, c.cgroup); name != c.want {
			t.Errorf("container %q of %s is %q, not %q", c.container, c.cgroup, name, c.want)
		}
	}
}
