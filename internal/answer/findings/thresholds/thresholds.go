// Package thresholds is what the rules of findings compare with.
package thresholds

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Set are what the rules compare with. The defaults, each with its
// reason, are thresholds.yaml; a user's file overrides those that it names.
type Set struct {
	HotspotPercent        float64 `yaml:"hotspot_percent"`
	LoaderPercent         float64 `yaml:"loader_percent"`
	SyncPercent           float64 `yaml:"sync_percent"`
	SyncFetches           int     `yaml:"sync_fetches"`
	LayoutPercent         float64 `yaml:"layout_percent"`
	GILPercent            float64 `yaml:"gil_percent"`
	ContentionPercent     float64 `yaml:"contention_percent"`
	BlockedPercent        float64 `yaml:"blocked_percent"`
	BackwardRatio         float64 `yaml:"backward_ratio"`
	BackwardPercent       float64 `yaml:"backward_percent"`
	BackwardExpected      float64 `yaml:"backward_expected"`
	FusionCalls           int     `yaml:"fusion_calls"`
	FusionRun             int     `yaml:"fusion_run"`
	FusionKernelMicros    float64 `yaml:"fusion_kernel_microseconds"`
	FirstStepRatio        float64 `yaml:"first_step_ratio"`
	CompilePercent        float64 `yaml:"compile_percent"`
	AllocationPercent     float64 `yaml:"allocation_percent"`
	SmallCopies           int     `yaml:"small_copies"`
	SmallCopyBytes        float64 `yaml:"small_copy_bytes"`
	CollectiveRatio       float64 `yaml:"collective_ratio"`
	CollectiveCalls       int     `yaml:"collective_calls"`
	ImbalancePercent      float64 `yaml:"imbalance_percent"`
	ThrottlingPercent     float64 `yaml:"throttling_percent"`
	HostRatio             float64 `yaml:"host_ratio"`
	HostPercent           float64 `yaml:"host_percent"`
	HostIdlePercent       float64 `yaml:"host_idle_percent"`
	BackwardLowRatio      float64 `yaml:"backward_low_ratio"`
	BackwardLowPercent    float64 `yaml:"backward_low_percent"`
	HighSeverityPercent   float64 `yaml:"high_severity_percent"`
	MediumSeverityPercent float64 `yaml:"medium_severity_percent"`
	// LibraryPaths are regular expressions of files that are no code of the user's, beside those
	// that usercode knows.
	LibraryPaths []string `yaml:"library_paths"`
}

//go:embed thresholds.yaml
var defaults []byte

// ErrBad is returned for a file of thresholds that says what there is not.
var ErrBad = errors.New("bad thresholds")

// Default are those of thresholds.yaml.
func Default() Set {
	var t Set
	if err := t.decode(defaults); err != nil {
		panic(err) // the embedded file is read by every test
	}
	return t
}

// Read reads a user's file over the defaults. An unknown name is an
// error, with its line.
func Read(path string) (Set, error) {
	t := Default()
	text, err := os.ReadFile(path)
	if err != nil {
		return t, fmt.Errorf("reading thresholds: %w", err)
	}
	if err := t.decode(text); err != nil {
		// The library puts each mistake on a line of its own.
		sentence := strings.Join(strings.Fields(err.Error()), " ")
		return t, fmt.Errorf("reading thresholds %s: %w: %s", path, ErrBad, sentence)
	}
	return t, nil
}

func (t *Set) decode(text []byte) error {
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(t); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}
