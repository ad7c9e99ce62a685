package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/scripted"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// trained is a trace of twelve steps of a job with a device: operators with shapes,
// launches, copies, a collective on a stream of its own, and a wait a step.
func trained(t *testing.T) string {
	t.Helper()
	var events []map[string]any
	correlation := 0
	add := func(category, name string, at, took float64, args map[string]any) {
		pid, tid := 9, 9
		if _, device := args["stream"]; device {
			pid, tid = 0, args["stream"].(int)
		}
		events = append(events, map[string]any{"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": at, "dur": took,
			"args": args})
	}
	work := func(category, name string, at, starts, took float64, stream int, more map[string]any) {
		correlation++
		call := "cudaLaunchKernel"
		if category == "gpu_memcpy" {
			call = "cudaMemcpyAsync"
		}
		add("cuda_runtime", call, at, 5, map[string]any{"correlation": correlation})
		args := map[string]any{"correlation": correlation, "stream": stream, "device": 0}
		for k, v := range more {
			args[k] = v
		}
		add(category, name, starts, took, args)
	}
	for step := range 12 {
		at := 1000 + 1000*float64(step)
		add("user_annotation", fmt.Sprintf("ProfilerStep#%d", step), at, 1000, map[string]any{})
		add("cpu_op", "aten::addmm", at+10, 50, map[string]any{"Input Dims": [][]int{{64}, {128, 256}, {256, 64}}, "Input type": []string{"float",
			"float", "float"}})
		work("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", at+2, at+8, 10, 7, map[string]any{"bytes": 4096})
		work("kernel", "ampere_sgemm_128x64_tn", at+20, at+40, 300, 7, nil)
		work("kernel", "flash_fwd_kernel", at+70, at+345, 200, 7, nil)
		work("kernel", "ncclDevKernel_AllReduce_Sum_f32", at+80, at+500, 150, 9, nil)
		correlation++
		add("cuda_runtime", "cudaDeviceSynchronize", at+600, 300, map[string]any{"correlation": correlation})
	}
	text, err := json.Marshal(map[string]any{"traceEvents": events})
	if err != nil {
		t.Fatal(err)
	}
	path, dir := filepath.Join(t.TempDir(), "trace.json"), filepath.Join(t.TempDir(), "trained")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, complaint, code := said(t, "import", path, "-o", dir); code != 0 {
		t.Fatal(complaint)
	}
	return dir
}

// generating is a dataset of a loop that generates: 20 steps of 1 ms, a prefill of 7 positions first, batch 2.
func generating(t *testing.T) string {
	t.Helper()
	const us = int64(1000)
	j := scripted.New()
	op := func(name string, took int64, dims string) {
		j.Op(name, took).Detail = &event.Detail{Shape: &event.Shape{Dims: dims, Source: "imported"}}
	}
	for step := range 20 {
		positions := 1
		if step == 0 {
			positions = 7
		}
		op("aten::embedding", 100*us, fmt.Sprintf("[[256, 64], [2, %d]]", positions))
		op("aten::cat", 50*us, fmt.Sprintf("[[2, 4, %d, 16]]", positions))
		op("aten::scaled_dot_product_attention", 600*us, fmt.Sprintf("[[2, 4, %d, 16], [2, 4, %d, 16]]", positions, 7+step))
		op("aten::multinomial", 150*us, "[[2, 256]]")
		j.Wait(100 * us)
	}
	return scripted.Write(t, j)
}

// TestQuestionsOfInferenceHaveTheirValues, on a loop that the test knows.
func TestQuestionsOfInferenceHaveTheirValues(t *testing.T) {
	out, complaint, code := said(t, "report", generating(t), "--format", "json")
	var report struct {
		Steps struct {
			Count      int
			Unit       string
			Confidence float64
		}
		Inference struct {
			Tokens        float64 `json:"tokens"`
			PerSecond     float64 `json:"tokens_per_s"`
			Requests      float64 `json:"requests"`
			TokenMS       float64 `json:"time_per_output_token_ms"`
			Costs         float64 `json:"millisecond_costs_per_s"`
			Prefill       int     `json:"prefill_steps"`
			Decode        int     `json:"decode_steps"`
			Batch         struct{ Mean float64 }
			PromptsTokens float64 `json:"prompt_tokens"`
		}
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != 0 {
		t.Fatal(err, complaint)
	}
	i := report.Inference
	if report.Steps.Count != 20 || report.Steps.Unit != "decoding step" || report.Steps.Confidence < 0.95 || i.Tokens != 40 ||
		i.Requests != 2 ||
		i.Prefill != 1 || i.Decode != 19 || i.Batch.Mean != 2 || i.PromptsTokens != 14 || i.TokenMS != 1 {
		t.Errorf("%+v", report)
	}
	// 20 ms without the last pause: 40 tokens in 19.9 ms, and in 39.9 ms if each step took 1 ms longer.
	if want := 40 / 0.0199; i.PerSecond < want-1 || i.PerSecond > want+1 || i.Costs < want-40/0.0399-1 || i.Costs > want-40/0.0399+1 {
		t.Errorf("%f tokens/s, a millisecond costs %f", i.PerSecond, i.Costs)
	}
	text, _, _ := said(t, "report", generating(t))
	for _, want := range []string{"tokens/s: 40 tokens", "time per output token 1.00 ms", "prefill", "decode", "sampling"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if strings.Contains(text, "training") {
		t.Errorf("a training thread in a job that does not train:\n%s", text)
	}
}

var quoted = regexp.MustCompile("`([^`]+)`")

// asked are the command lines of an answer in docs/questions.md, with a place for the
// dataset, and the other words in it that are in letters of a machine.
func asked(answer string, commands []string) (lines [][]string, words []string) {
	last := ""
	for _, m := range quoted.FindAllStringSubmatch(answer, -1) {
		text := strings.TrimPrefix(strings.ReplaceAll(m[1], `\|`, "|"), "ebpfprof ")
		first, rest, _ := strings.Cut(text, " ")
		switch {
		case first == "peaks": // measures this machine, for seconds
		case slices.Contains(commands, first) && first == "query" && !strings.HasPrefix(rest, "--"):
			lines = append(lines, []string{"query", "DATASET", sqlOf(rest)})
		case slices.Contains(commands, first):
			line := strings.Fields(text)
			if !slices.ContainsFunc(line, func(w string) bool { return w == "DATASET" || w == "BEFORE" || w == "AFTER" }) {
				line = slices.Insert(line, 1, "DATASET")
			}
			if line[0] == "diff" && len(line) == 2 {
				line = append(line, "DATASET")
			}
			if line[len(line)-1] == "--example" {
				line[len(line)-1] = "--list-examples"
			}
			last = first
			lines = append(lines, line)
		case first == "SELECT":
			lines = append(lines, []string{"query", "DATASET", text})
		case strings.HasPrefix(text, "--") && last != "":
			lines = append(lines, append([]string{last, "DATASET"}, strings.Fields(text)...))
		default:
			words = append(words, text)
		}
	}
	return lines, words
}

// sqlOf is what stands between the quotes of a shell.
func sqlOf(shell string) string {
	shell = strings.TrimSpace(strings.TrimPrefix(shell, "…"))
	if inner, ok := strings.CutPrefix(shell, "'"); ok {
		return strings.ReplaceAll(strings.TrimSuffix(inner, "'"), "''", "'")
	}
	return strings.Trim(shell, `"`)
}

// TestEachQuestionIsAnsweredByItsCommand: what docs/questions.md says runs, on a recording
// or on a trace with a device, and says something; and the names that it gives exist.
func TestEachQuestionIsAnsweredByItsCommand(t *testing.T) {
	allocating := scripted.New()
	for range 3 {
		allocating.Op("aten::empty", 1000, func() { allocating.Allocate("allocator", 4096) })
	}
	datasets := []string{scripted.Copying(t), trained(t), scripted.Write(t, allocating), generating(t)}
	var commands []string
	for _, c := range answers() {
		commands = append(commands, c.Name)
	}
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	named := read("findings.md") + read("json.md") + read("schema.md")
	counters, err := filepath.Glob(filepath.Join("..", "..", "tracer", "counter", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range counters {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		named += string(text)
	}
	elsewhere := []string{"nvidia-smi topo -m", "triton_", "attention"} // of other programs, or part of a name
	questions := 0
	for line := range strings.Lines(read("questions.md")) {
		cells := strings.SplitN(strings.Trim(strings.TrimSpace(line), "|"), "|", 2)
		if len(cells) < 2 || !strings.Contains(cells[0], "?") {
			continue
		}
		questions++
		lines, words := asked(cells[1], commands)
		for _, line := range lines {
			done := ""
			for _, dir := range datasets {
				filled := slices.Clone(line)
				for i, w := range filled {
					if w == "DATASET" || w == "BEFORE" || w == "AFTER" {
						filled[i] = dir
					}
				}
				out, complaint, code := said(t, filled...)
				if code == 0 && strings.Count(strings.TrimSpace(out), "\n") > 0 || code == 0 && line[0] == "search" {
					done = "answered"
					break
				}
				done = fmt.Sprintf("exit %d, %s", code, complaint)
			}
			if done != "answered" {
				t.Errorf("%s %v: %s", strings.TrimSpace(cells[0]), line, done)
			}
		}
		for _, w := range words {
			parts := strings.FieldsFunc(strings.TrimSuffix(w, "*"), func(r rune) bool { return strings.ContainsRune(".[]", r) })
			if slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(named, p) }) && !slices.Contains(elsewhere, w) {
				t.Errorf("%s `%s` is no name of a column, a rule or a member", strings.TrimSpace(cells[0]), w)
			}
		}
		if len(lines) == 0 && !strings.Contains(cells[1], "cannot") && !strings.Contains(cells[1], "nobody") && !strings.Contains(cells[1],
			"the same") &&
			!strings.Contains(cells[1], "each finding") && !strings.Contains(cells[1], "Each finding") && !strings.Contains(cells[1],
			"sizes are in") {
			t.Errorf("%s has no command, and is not said to be unanswerable", strings.TrimSpace(cells[0]))
		}
	}
	if questions < 55 {
		t.Errorf("%d questions were found", questions)
	}
}
