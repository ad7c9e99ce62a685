package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// report is docs/gpu-check.json.
type report struct {
	Tool    string    `json:"tool"`
	Date    string    `json:"date"`
	Machine *machine  `json:"machine"`
	Agrees  bool      `json:"agrees"` // every check that ran, and at least one did
	Checks  []*result `json:"checks"`
}

func newReport(m *machine) *report {
	return &report{Tool: "ebpfprof gpucheck " + Version, Date: time.Now().UTC().Format(time.DateOnly), Machine: m}
}

// write settles whether all agrees and writes the report, to standard output
// where there is no file for it.
func (r *report) write(path string) error {
	ran := 0
	r.Agrees = true
	for _, c := range r.Checks {
		if c.Skipped != "" {
			continue
		}
		ran++
		r.Agrees = r.Agrees && c.Agrees
	}
	r.Agrees = r.Agrees && ran > 0
	out, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	out = append(out, '\n')
	if path == "" {
		_, err = os.Stdout.Write(out)
	} else {
		err = os.WriteFile(path, out, 0o644)
	}
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}
