package page_test

import (
	"encoding/json"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/cli/commands/fleet"
	"github.com/ebpfprof/ebpfprof/internal/page"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// hung are three ranks: two wait in collective 7, the third has asked for number 4 last, and stands still in its loader.
func hung() *event.Batch {
	framework, ranks, group := "torch", int32(3), int64(77)
	work := &event.Call{Layer: "collective", Category: "work", Name: "allreduce"}
	b := &event.Batch{Stacks: []event.Stack{{ID: 1, Folded: "main;read_sample", Status: event.StackComplete, Frames: []event.Frame{
		{Kind: "python", Function: "read_sample", File: "/job/data.py", Line: 9, Offset: -1},
		{Kind: "python", Function: "main", File: "/job/train.py", Line: 30, Offset: -1}}}}}
	open := event.OpenCalls{SeenNS: epoch + 9e9}
	for rank := range ranks {
		pid, number := 100+rank, int64(7)
		if rank == 2 {
			number = 4
			open.Threads = []event.StillThread{{SeenNS: epoch + 9e9, SinceNS: new(int64(epoch + 1e9)), PID: pid, TID: pid, Syscall: "read",
				StackID: new(int64(1))}}
		}
		b.Processes = append(b.Processes, event.Process{ID: int64(pid), PID: pid, Rank: &rank, Framework: &framework, StartedNS: epoch})
		open.Communicators = append(open.Communicators, event.Communicator{PID: pid, ID: &group, Name: "0", Description: "default_pg", Rank: &rank,
			Ranks: &ranks, IssuedNumber: &number, IssuedName: work.Name, IssuedNS: new(int64(epoch))})
		if rank != 2 {
			open.Calls = append(open.Calls, event.OpenCall{StartNS: epoch + 2e9, PID: pid, TID: pid, Call: work, Communicator: int(rank), Number: &number})
		}
	}
	b.OpenCalls = []event.OpenCalls{open}
	return b
}

// The rank that is missing, how far each has come and where the missing one is: as the command line has it.
func TestTheHangView(t *testing.T) {
	dir := write(t, hung())
	c := serve(t, dir, page.Options{})
	var hang struct {
		Groups []struct {
			Missing []struct {
				Rank       int
				LastNumber int64 `json:"last_number"`
			}
		}
	}
	text := c.get("/api/hang")
	if err := json.Unmarshal([]byte(text), &hang); err != nil {
		t.Fatal(err)
	}
	if len(hang.Groups) != 1 || len(hang.Groups[0].Missing) != 1 || hang.Groups[0].Missing[0].Rank != 2 || hang.Groups[0].Missing[0].LastNumber != 4 {
		t.Fatalf("%s", text)
	}
	command := fleet.Command()
	for _, sub := range command.Subcommands {
		if sub.Name == "hang" {
			if want := printed(t, sub, dir, "--json"); text != want {
				t.Errorf("the page has %s, the command line %s", text, want)
			}
		}
	}
	b := browse(t, dir)
	b.open("hang")
	b.until(`document.querySelector(".first").textContent.includes("rank 2 is missing")`)
	b.until(`document.querySelectorAll(".ranks .waits").length === 2`)
	// Of rank 2, which has come to number 4, the numbers 5 to 7 are open.
	b.until(`document.querySelectorAll(".ranks .absent").length === 3`)
	b.until(`document.querySelector("pre").textContent.includes("read_sample  /job/data.py:9")`)
	b.until(`document.querySelector("td.place a").getAttribute("href") === "#source?place=" + encodeURIComponent("/job/data.py:9")`)
	b.clean()
}

// Without a hang the view says so.
func TestTheHangViewOfAJobThatGoesOn(t *testing.T) {
	b := browse(t, write(t, loop()))
	b.open("hang")
	b.until(`document.querySelector(".first").textContent.startsWith("No rank waited")`)
	b.clean()
}
