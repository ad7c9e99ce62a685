package symbolize

import "testing"

func TestLabelsSayWhatAndWhere(t *testing.T) {
	for _, c := range []struct {
		frame Frame
		want  string
	}{
		{Frame{Kind: Python, Function: "Linear.forward", File: "/usr/lib/python3/dist-packages/torch/nn/modules/linear.py", Line: 114},
			"Linear.forward (torch/nn/modules/linear.py)"},
		{Frame{Kind: Python, Function: "<module>", File: "/home/me/train.py", Line: 3}, "<module> (train.py)"},
		{Frame{Kind: Python, Function: "run"}, "run"},
		{Frame{Kind: Native, Function: "at::native::addmm", Module: "libtorch_cpu.so", Offset: 7}, "at::native::addmm (libtorch_cpu.so)"},
		{Frame{Kind: Native, Function: "libcuda.so.1+0x1a2b30 (fn)", Module: "libcuda.so.1", Offset: 0x1a2b44}, "libcuda.so.1+0x1a2b30 (fn)"},
		{Frame{Kind: Native, Module: "libx.so", Offset: 0x40}, "libx.so+0x40"},
		{Frame{Kind: Native, Module: "[anon]", Offset: -1}, "[anon]"},
		{Frame{Kind: Native, Offset: -1}, "[unknown]"},
		{Frame{Kind: Kernel, Function: "do_syscall_64", Module: "[kernel]", Offset: 1}, "do_syscall_64_[k]"},
		{Frame{Kind: Kernel, Module: "[kernel]", Offset: 16}, "[kernel]+0x10_[k]"},
		{Frame{Kind: Op, Function: "aten::addmm", Offset: -1}, "aten::addmm"},
	} {
		if got := c.frame.Label(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.frame, got, c.want)
		}
	}
}

func TestFoldedStacksAreOneLineRootFirst(t *testing.T) {
	got := Fold([]Frame{{Kind: Native, Function: "f;g\n", Offset: -1}, {Kind: Python, Function: "main"}})
	if got != "main;f:g " || Fold(nil) != "" {
		t.Errorf("%q", got)
	}
}

func TestShortPathsKeepThePackage(t *testing.T) {
	for path, want := range map[string]string{
		"/usr/lib/python3.11/json/decoder.py":                       "json/decoder.py",
		"/root/venv/lib/python3.13/site-packages/torch/_ops.py":     "torch/_ops.py",
		"/opt/lib/python3.13t/threading.py":                         "threading.py",
		"/home/me/lib/pythonic/x.py":                                "x.py",
		"<frozen importlib._bootstrap>":                             "<frozen importlib._bootstrap>",
		"train.py":                                                  "train.py",
		"/usr/lib/python3/dist-packages/torch/nn/modules/linear.py": "torch/nn/modules/linear.py",
		"": "",
	} {
		if got := ShortPath(path); got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
}
