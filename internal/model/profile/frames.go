package profile

import "github.com/ebpfprof/ebpfprof/symbolize"

// Frame is a frame that many stacks have.
type Frame struct {
	symbolize.Frame
	function *function
}

// Label is the frame's label, the same for all frames of one function.
func (f *Frame) Label() string { return f.function.label }

// function is what frames are added up by: one for all frames with its label.
type function struct {
	kind  symbolize.Kind
	label string
}

// Frames keeps each distinct frame once, and each function's label: a profile
// has millions of frames and thousands of functions.
type Frames struct {
	frames    map[symbolize.Frame]*Frame
	functions map[function]*function
}

// NewFrames returns an empty Frames.
func NewFrames() *Frames {
	return &Frames{frames: map[symbolize.Frame]*Frame{}, functions: map[function]*function{}}
}

// Of returns the frame as it is kept.
func (s *Frames) Of(f symbolize.Frame) *Frame {
	if known := s.frames[f]; known != nil {
		return known
	}
	key := function{f.Kind, f.Label()}
	of := s.functions[key]
	if of == nil {
		of = &key
		s.functions[key] = of
	}
	kept := &Frame{f, of}
	s.frames[f] = kept
	return kept
}
