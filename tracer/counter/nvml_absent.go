//go:build !cgo

package counter

import "errors"

func openNVML(string) (source, error) {
	return nil, errors.New("this binary was built without cgo, which NVML needs: bin/ebpfprof has it")
}
