package e2e

import (
	"os"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }
