package recorder

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

func TestAllThreadsSleepLoosely(t *testing.T) {
	before, err := os.ReadFile("/proc/self/timerslack_ns")
	if err != nil {
		t.Skipf("this kernel does not say: %v", err)
	}
	t.Cleanup(func() { setSlack(strings.TrimSpace(string(before))) })
	sleepLoosely()
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, thread := range threads {
		slack, err := os.ReadFile("/proc/" + thread.Name() + "/timerslack_ns")
		if err == nil && strings.TrimSpace(string(slack)) != strconv.Itoa(int(looseSleep)) {
			t.Errorf("thread %s: %s ns", thread.Name(), slack)
		}
	}
}
