package e2e

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
)

// TestAgents has agents beside each other, each with a job of its own, all of one PyTorch: as
// on a host of many jobs. They wait for most of their time. Nothing else runs meanwhile that
// would count the calls of that PyTorch from their first on.
func TestAgents(t *testing.T) {
	harness.PyPI.Need(t)
	for name, test := range map[string]func(*testing.T){
		"TellWhatFailed":                agentsTellWhatFailed,
		"NameTheRankThatBlocks":         agentsNameTheRankThatBlocks,
		"NameTheSlowRankOfAJobInSlices": agentsNameTheSlowRankOfAJobInSlices,
	} {
		t.Run(name, func(t *testing.T) {
			harness.Together(t)
			test(t)
		})
	}
}
