package peaks

import (
	"os"
	"path/filepath"
	"testing"
)

func TestDriversNameTheirDevices(t *testing.T) {
	root := t.TempDir()
	if got := Accelerators(root); got != "" {
		t.Errorf("a machine without: %q", got)
	}
	for file, text := range map[string]string{
		"proc/driver/nvidia/gpus/0000:0a:00.0/information": "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 31\n",
		"proc/driver/nvidia/gpus/0000:0b:00.0/information": "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 32\n",
		"sys/class/drm/card0/device/product_name":          "\n",
	} {
		path := filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := Accelerators(root); got != "NVIDIA H100 80GB HBM3" {
		t.Errorf("two of one model: %q", got)
	}
	amd := filepath.Join(root, "sys/class/drm/card0/device/product_name")
	if err := os.WriteFile(amd, []byte("AMD Instinct MI300X\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := Accelerators(root); got != "AMD Instinct MI300X, NVIDIA H100 80GB HBM3" {
		t.Errorf("of two makers: %q", got)
	}
}
