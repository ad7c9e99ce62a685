package process

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	containerA = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	containerB = "0123456789ab0000000000000000000000000000000000000000000000000000"
)

// recorded makes a proc filesystem of processes: pid, parent, program, control group and command line.
func recorded(t *testing.T, processes ...string) FS {
	t.Helper()
	root := t.TempDir()
	for _, line := range processes {
		fields := strings.SplitN(line, " ", 5)
		directory := filepath.Join(root, fields[0])
		stat := fmt.Sprintf("%s (a) b) S %s 1 1 0 -1 4194304%s\n", fields[0], fields[1], strings.Repeat(" 7", 20))
		files := map[string]string{
			"stat": stat, "cgroup": "0::" + fields[3] + "\n", "cmdline": strings.ReplaceAll(fields[4], " ", "\x00") + "\x00",
		}
		if err := os.Mkdir(directory, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, content := range files {
			if err := os.WriteFile(filepath.Join(directory, name), []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink(fields[2], filepath.Join(directory, "exe")); err != nil {
			t.Fatal(err)
		}
	}
	return FS{Root: root}
}

func TestFindSeesJobsAndNotWhatLooksForThem(t *testing.T) {
	proc := recorded(t,
		"1 0 /sbin/init / init",
		"10 1 /bin/bash / bash job.sh train.py",
		"11 10 /usr/bin/python3 /docker/"+containerA+" python3 train.py --epochs 3",
		"12 11 /usr/bin/python3 /docker/"+containerA+"/worker python3 train.py --epochs 3",
		"13 1 /usr/bin/python3 /system.slice/docker-"+containerB+".scope python3 serve.py",
		"14 1 /usr/bin/python3 /user.slice/docker-"+containerB+".scope python3 serve.py",
		"15 1 /usr/bin/python3 /lxc.payload.box/x python3 serve.py",
		"20 1 /bin/sudo / sudo ebpfprof attach --command train.py --wait",
		"21 20 /usr/bin/ebpfprof / ebpfprof attach --command train.py --wait",
		"30 1 /bin/bash / bash -c ebpfprof attach --command train.py; true",
		"31 30 /usr/bin/ebpfprof / ebpfprof attach --command train.py",
	)
	for _, test := range []struct {
		command, container string
		want               []int
	}{
		{"train.py", "", []int{10}}, // with its children, which match too
		{"^python3 train", "", []int{11}},
		{"serve", "", []int{13, 14, 15}},
		{"nobody", "", nil},
		{"", containerA, []int{11}},
		{"", "0123456789abcdef", []int{11}},
		{"", "0123", []int{11, 13, 14}},
		{"serve", "0123", []int{13, 14}},
		{"", "box", []int{15}},
		{"", "bo", nil}, // a name is not abbreviated
		{"serve", containerA, nil},
	} {
		wanted := Wanted{Container: test.container}
		if test.command != "" {
			wanted.Command = regexp.MustCompile(test.command)
		}
		found, err := proc.Find(wanted, 31)
		if err != nil {
			t.Fatal(err)
		}
		var pids []int
		for _, f := range found {
			pids = append(pids, f.PID)
		}
		if !slices.Equal(pids, test.want) {
			t.Errorf("--command %q --container %q finds %v, want %v", test.command, test.container, pids, test.want)
		}
	}
}

func TestAContainerIsNamedByItsControlGroup(t *testing.T) {
	below := containerIn([]byte("0::/system.slice/docker-" + containerA + ".scope/init/worker\n"))
	if want := (Container{containerA, "/system.slice/docker-" + containerA + ".scope"}); below != want {
		t.Errorf("%+v, want %+v", below, want)
	}
	if none := containerIn([]byte("0::/user.slice\n1:name=systemd:/\nodd\n")); none != (Container{}) {
		t.Errorf("%+v outside of containers", none)
	}
}
