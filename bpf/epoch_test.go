package bpf

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// stackEpoch is how long the frames of a stack are not sent again, in
// nanoseconds (STACK_EPOCH_BITS).
const stackEpoch = uint64(1) << 33

// seenStack is a sample of a stack at a time of the machine's clock.
type seenStack struct{ id, at uint64 }

// epochs compiles bpf/stack_epoch.h for user space, with the clock of the test.
func epochs(t *testing.T) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "epochs")
	gcc := exec.Command("gcc", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-fsanitize=undefined", "-fno-sanitize-recover=all",
		"-o", program, "../testdata/native/epochs.c")
	if out, err := gcc.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return program
}

// sentFrames tells of each sample whether the stack's frames are sent with it.
func sentFrames(t *testing.T, program string, samples []seenStack) (sent []bool) {
	t.Helper()
	var input strings.Builder
	for _, s := range samples {
		fmt.Fprintf(&input, "%x %d\n", s.id, s.at)
	}
	c := exec.Command(program)
	c.Stdin = strings.NewReader(input.String())
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range strings.Fields(string(out)) {
		sent = append(sent, word == "sent")
	}
	if len(sent) != len(samples) {
		t.Fatalf("%d answers for %d samples", len(sent), len(samples))
	}
	return sent
}

var stackIDs = []uint64{0x9e3779b97f4a7c15, 0x0000000000000001, 0xffffffffffffffff, 0x0123456789abcdef, 0xfedcba9876540000}

// A stack that was not seen for days or years is sent again, whatever the lowest
// bits of the epoch's number were then: 2^16 epochs are 6.5 days, 2^28 73 years.
func TestAStackThatComesBackAfterYearsIsSentAgain(t *testing.T) {
	const first, most = 5 * stackEpoch, 1 << 28
	var samples []seenStack
	for _, id := range stackIDs {
		for bits := range 28 {
			for _, epochs := range []uint64{1 << bits, 3 << min(bits, 26), 1<<bits + 1<<(bits/2), most - 1<<bits} {
				samples = append(samples, seenStack{id, first}, seenStack{id, first + epochs*stackEpoch})
			}
		}
	}
	for i, sent := range sentFrames(t, epochs(t), samples) {
		if !sent {
			t.Errorf("stack %x passes for sent, %d epochs after it was sent", samples[i].id, (max(samples[i].at, samples[i-1].at)-first)/stackEpoch)
		}
	}
}

func TestAStackThatIsSeenAllTheTimeIsSentOnceAnEpoch(t *testing.T) {
	const length, samplesPerEpoch = 300, 7
	program := epochs(t)
	for _, begin := range []uint64{0, (1<<16 - 3) * stackEpoch, (1<<28 - 3) * stackEpoch, (1<<30 - 3) * stackEpoch} {
		for _, id := range stackIDs {
			var samples []seenStack
			for i := uint64(0); i < length*samplesPerEpoch; i++ {
				samples = append(samples, seenStack{id, begin + i*(stackEpoch/samplesPerEpoch)})
			}
			n, last := 0, 0
			for i, sent := range sentFrames(t, program, samples) {
				if sent {
					n, last = n+1, i
				} else if i-last > samplesPerEpoch {
					t.Fatalf("stack %x from %d on: not sent for longer than an epoch", id, begin)
				}
			}
			// Its phase begins one more.
			if n < length-1 || n > length+1 {
				t.Errorf("stack %x from %d on: sent %d times in %d epochs", id, begin, n, length)
			}
		}
	}
}

// Of two stacks with one place in the table each is sent when the other was the
// last one there, and neither passes for the other.
func TestStacksWithOnePlaceAreTwoStacks(t *testing.T) {
	program := epochs(t)
	for bit := 28; bit < 64; bit++ {
		a, b := stackIDs[0], stackIDs[0]^1<<bit
		var samples []seenStack
		for range 3 {
			samples = append(samples, seenStack{a, 7}, seenStack{b, 7})
		}
		for i, sent := range sentFrames(t, program, samples) {
			if !sent {
				t.Errorf("ids that differ in bit %d: sample %d passes for the other stack's", bit, i)
			}
		}
	}
	if sent := sentFrames(t, program, []seenStack{{stackIDs[0], 7}, {stackIDs[0], 8}, {stackIDs[3], 9},
		{stackIDs[0], 10}}); fmt.Sprint(sent) != "[true false true false]" {
		t.Errorf("stacks with places of their own: sent %v", sent)
	}
}
