package peaks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// ErrFile is wrapped by errors about a user's file of peaks.
var ErrFile = errors.New("no file of peaks")

// mostFile bounds a user's file.
const mostFile = 1 << 20

// Kinds are the element types of Peak.FLOPs.
var kinds = []string{"bf16", "tf32", "fp32", "fp64", "fp8"}

// ReadFile reads a user's peaks: a JSON list of devices as `ebpfprof peaks --devices --json` writes it.
func ReadFile(path string) ([]Peak, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading peaks: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, mostFile))
	if err != nil {
		return nil, fmt.Errorf("reading peaks: %w", err)
	}
	var all []Peak
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&all); err != nil {
		return nil, fmt.Errorf("%s is %w: %w (a list such as "+
			"[{\"device\": \"NAME\", \"flops\": {\"bf16\": 1e15}, \"bytes\": 3e12}])", path, ErrFile, err)
	}
	for i := range all {
		p := &all[i]
		if err := p.check(); err != nil {
			return nil, fmt.Errorf("%s is %w: device %d: %w", path, ErrFile, i+1, err)
		}
		if p.Note == "" {
			p.Note = "of " + path
		}
	}
	return all, nil
}

func (p *Peak) check() error {
	switch {
	case p.Device == "":
		return errors.New("it has no name (device)")
	case p.Bytes <= 0:
		return errors.New("its memory has no bytes a second (bytes)")
	case len(p.FLOPs) == 0:
		return errors.New("it has no operations a second (flops)")
	}
	for kind, n := range p.FLOPs {
		if !slices.Contains(kinds, kind) {
			return fmt.Errorf("%q is none of bf16 (fp16 too), tf32, fp32, fp64, fp8", kind)
		}
		if n <= 0 {
			return fmt.Errorf("%s: %g operations a second", kind, n)
		}
	}
	return nil
}
