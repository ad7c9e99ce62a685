package e2e

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/answer/inference"
	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
)

// inferring are jobs of testdata/jobs/inference.py, with what their steps are called.
var inferring = map[string]struct {
	packages, requests, unit string
	tokens, served           bool
}{
	"decode":   {"torch", "20", "decoding step", true, true},
	"generate": {"torch, transformers", "15", "decoding step", true, true},
	"diffuse":  {"torch, diffusers", "8", "denoising step", false, false},
	"serve":    {"torch, fastapi, uvicorn, httpx", "400", "request in serve.<locals>.predict (inference.py)", false, true},
}

// TestLoopsOfInferenceAreCountedAsTheirJobsCount: a job of plain torch, and what users run: steps, tokens and requests are
// within 2 % of the job's own counts, and the rates are those counts by the time that they took.
func TestLoopsOfInferenceAreCountedAsTheirJobsCount(t *testing.T) {
	harness.PyPI.Beside(t)
	for kind, want := range inferring {
		t.Run(kind, func(t *testing.T) {
			job := harness.StartJob(t, inferenceJob(t, kind, want.packages, want.requests)...)
			tracing := harness.Attach(t, harness.Unbudgeted, job.Process.Pid)
			tracing.Ready(t)
			job.GoOn(t)
			told := job.FinishJob(t)
			r := tracing.Finish(t)
			var report struct {
				Steps struct {
					Count  int
					Unit   string
					Trains bool
				}
				Inference *inference.Rate
			}
			harness.Ask(t, &report, "report", r.Dataset, "--format", "json")
			near := func(what string, got, want float64) {
				if math.Abs(got-want) > 0.02*want {
					t.Errorf("%s: %.1f, the job says %.1f", what, got, want)
				}
			}
			if report.Steps.Unit != want.unit || report.Steps.Trains || report.Inference == nil {
				t.Fatalf("%+v, %+v", report.Steps, report.Inference)
			}
			i := report.Inference
			t.Logf("%s; the job: %d steps, %d tokens, %d requests in %.2f s", strings.Join(i.Sentences(), "; "), told.Steps, told.Tokens,
				told.Requests, told.Seconds)
			steps := float64(i.Steps)
			if want.tokens {
				near("tokens", *i.Tokens, float64(told.Tokens))
				near("tokens/s", *i.TokensPerS, *i.Tokens/i.Seconds)
			}
			if want.served {
				near("requests", *i.Requests, float64(told.Requests))
			}
			if kind != "serve" { // there a pool of threads shares them
				near("steps", steps, float64(told.Steps))
			}
		})
	}
}

// inferenceJob is the command line of the job under a Python that has its packages.
func inferenceJob(t *testing.T, kind, packages, requests string) []string {
	t.Helper()
	python := harness.PyPI.Python
	if packages != "torch" {
		python = filepath.Join(harness.Cache(), "exam-venv", "bin", "python")
	}
	if _, err := os.Stat(python); err != nil {
		t.Skipf("no Python with %s is here", packages)
	}
	if err := exec.Command(python, "-c", "import "+packages).Run(); err != nil {
		t.Skipf("%s has not all of %s: %v", python, packages, err)
	}
	return []string{python, harness.Script("inference.py"), kind, "--requests", requests}
}
