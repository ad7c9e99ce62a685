package peaks

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestAUsersPeaksComeBeforeTheKnown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "peaks.json")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`[{"device": "h100", "flops": {"bf16": 5e14}, "bytes": 3e12}]`)
	own, err := ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if p, ok := FindAmong(own, "NVIDIA H100 80GB HBM3"); !ok || p.FLOPs["bf16"] != 5e14 || p.Note != "of "+path {
		t.Errorf("%+v, %t", p, ok)
	}
	if p, ok := FindAmong(own, "NVIDIA L4"); !ok || p.Device != "NVIDIA L4" {
		t.Errorf("%+v, %t", p, ok)
	}
	if p, ok := FindAmong(own, ""); ok {
		t.Errorf("no device is %+v", p)
	}
	// What the command lists can be read.
	known, err := json.Marshal(Devices())
	if err != nil {
		t.Fatal(err)
	}
	write(string(known))
	if own, err := ReadFile(path); err != nil || len(own) != len(devices) {
		t.Errorf("%d devices, %v", len(own), err)
	}
	for _, bad := range []string{
		"", "{}", `[{"device": "x"}]`,
		`[{"device": "x", "flops": {"bf16": 1}, "bytes": 0}]`, `[{"device": "x", "flops": {"bf61": 1}, "bytes": 1}]`,
		`[{"device": "x", "flops": {"bf16": -1}, "bytes": 1}]`,
		`[{"device": "x", "flops": {"bf16": 1}, "bytes": 1, "more": 2}]`, `[{"flops": {"bf16": 1}, "bytes": 1}]`,
	} {
		write(bad)
		if _, err := ReadFile(path); !errors.Is(err, ErrFile) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
