package accel

import "testing"

func TestDriverLibrariesAreToldFromTheToolkits(t *testing.T) {
	for name, want := range map[string]bool{
		"libcuda.so": true, "libcuda.so.1": true, "libcuda.so.550.163.01": true, "libcuda-wrapped.so": true, "libcuda_hook.so.1": true,
		"libcudart.so.12": false, "libcudadevrt.so": false, "libcudnn.so.9": false, "libcuda": false, "libcuda.txt": false,
	} {
		if got := IsDriver(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
