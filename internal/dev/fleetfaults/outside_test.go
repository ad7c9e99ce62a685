package main

import (
	"errors"
	"os"
	"testing"
)

// A directory that is no control group holds nobody back, though one can write into it.
func TestAQuotaInAPlainDirectoryIsNoQuota(t *testing.T) {
	root := t.TempDir()
	_, err := quotaIn([]hierarchy{{root, "cpu.max", "20000 100000"}}, os.Getpid())
	if !errors.Is(err, errNotHere) {
		t.Errorf("%v", err)
	}
	if left, err := os.ReadDir(root); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
}
