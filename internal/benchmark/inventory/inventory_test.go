package inventory

import (
	"context"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/testkit/scripted"
)

// tree is a machine's /proc and /sys.
func tree(files map[string]string) fstest.MapFS {
	all := fstest.MapFS{}
	for name, text := range files {
		all[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return all
}

func TestMachinesAreReadFromTheirFiles(t *testing.T) {
	for _, c := range []struct {
		what  string
		files map[string]string
		want  Inventory
	}{
		{"two GPUs of NVIDIA", map[string]string{
			"proc/cpuinfo":              "processor\t: 0\nmodel name\t: AMD EPYC 7742\nprocessor\t: 1\nmodel name\t: AMD EPYC 7742\n",
			"proc/meminfo":              "MemTotal:       527904812 kB\nMemFree: 1 kB\n",
			"proc/sys/kernel/osrelease": "6.6.1\n",
			"proc/driver/nvidia/gpus/0000:01:00.0/information":     "Model: \t\t NVIDIA H100\nIRQ: 3\n",
			"proc/driver/nvidia/gpus/0000:02:00.0/information":     "Model: \t\t NVIDIA H100\n",
			"sys/module/nvidia/version":                            "550.54\n",
			"sys/class/net/eth0/device/vendor":                     "x",
			"sys/class/net/eth0/speed":                             "25000\n",
			"sys/class/net/lo/speed":                               "1\n",
			"sys/class/infiniband/mlx5_0/ports/1/rate":             "400 Gb/sec (4X NDR)\n",
			"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
		}, Inventory{{"host", "n1"}, {"cpu", "AMD EPYC 7742"}, {"cpus", "64"}, {"memory", "503 GiB"}, {"kernel", "6.6.1"},
			{"governor", "performance"},
			{"gpu", "2 × NVIDIA H100"}, {"gpu driver", "nvidia 550.54"}, {"network", "eth0 25000 Mbit/s"},
			{"infiniband", "mlx5_0:1 400 Gb/sec (4X NDR)"}}},
		{"Arm with AMD's", map[string]string{
			"proc/cpuinfo": "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\n",
			"sys/class/drm/card0/device/product_name": "Instinct MI210\n", "sys/module/amdgpu/version": "6.7\n",
			"sys/class/net/eth0/device/x": "", "sys/class/net/eth0/speed": "-1\n",
		}, Inventory{{"host", "n1"}, {"cpu", "Arm implementer 0x41 part 0xd40"}, {"cpus", "64"}, {"gpu", "1 × Instinct MI210"},
			{"gpu driver", "amdgpu 6.7"}, {"network", "eth0"}}},
		{"nothing is readable", nil, Inventory{{"host", "n1"}, {"cpus", "64"}}},
	} {
		if got := Machine(tree(c.files), "n1", 64); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}

func TestFileSystemsOfTheDataAreRecorded(t *testing.T) {
	j := scripted.New()
	j.World = 2
	j.Op("aten::mm", 1000)
	j.ReadFile(1, 1, 0)
	db, err := dataset.Open(scripted.Write(t, j))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	v, err := Recorded(context.Background(), db)
	if err != nil || v.Get("file systems") != "ext4 at /data" || v.Get("ranks") != "2" {
		t.Errorf("%q, %v", v, err)
	}
}

func TestOnlyWhatDiffersIsNamed(t *testing.T) {
	a, b, c := Inventory{{"cpu", "x"}, {"kernel", "1"}}, Inventory{{"cpu", "x"}, {"kernel", "2"}}, Inventory{{"cpu", "x"}, {"gpu", "g"},
		{"kernel", "1"}}
	if d := Differences([]Inventory{a}, []Inventory{a, a}); len(d) != 0 {
		t.Errorf("%q", d)
	}
	want := []Difference{{"gpu", "", "g"}, {"kernel", "1, 2", "1"}}
	if d := Differences([]Inventory{a, b}, []Inventory{c}); !slices.Equal(d, want) {
		t.Errorf("%q, want %q", d, want)
	}
}
