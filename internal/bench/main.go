// Command bench measures what the tracer costs the jobs that it traces, and
// what it costs itself: `make bench`. With -write the figures go into
// docs/overhead.md. It needs root, the jobs' interpreters and two cores: the
// job has one, the tracer the other.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// settings are how long and how often.
type settings struct {
	rounds      int           // of every paired measurement
	window      time.Duration // one side of a pair
	long        time.Duration // of a pair whose tracer works in slices
	attaches    int
	spans       int // decoded
	interpreted []interpreter
	only        []string // parts, all if empty
}

func (s *settings) wanted(part string) bool { return len(s.only) == 0 || slices.Contains(s.only, part) }

// interpreter is a Python with a PyTorch.
type interpreter struct{ name, path string }

func main() {
	log.SetFlags(0)
	log.SetPrefix("bench: ")
	quick := flag.Bool("quick", false, "fewer rounds, shorter windows")
	write := flag.Bool("write", false, "put the figures into docs/overhead.md, each section with the date; what this run did not measure stays")
	only := flag.String("only", "", "parts to run, of hit,python,native,mixed,programs,plan,decode,attach,paired,budget,allocator,memory,models,samples (all if empty)")
	torch := flag.String("torch", "", "only the interpreter whose name begins so: 1.13 or 2")
	spans := flag.Int("decode", 0, "decode so many synthetic records and print the figures as JSON (used by bench itself)")
	flag.Parse()
	if *spans > 0 {
		fail(decodeChild(*spans))
		return
	}
	s := settings{rounds: 9, window: 500 * time.Millisecond, long: 8 * time.Second, attaches: 7, spans: 10_000_000}
	if *quick {
		s = settings{rounds: 3, window: 300 * time.Millisecond, long: 3 * time.Second, attaches: 5, spans: 3_000_000}
	}
	s.interpreted = interpreters(*torch)
	if *only != "" {
		s.only = strings.Split(*only, ",")
	}
	started := time.Now()
	r := &results{started: started, quick: *quick, command: command()}
	fail(pinToTracerCore())
	part := func(name string, run func() error) {
		if !s.wanted(name) {
			return
		}
		say("%s …", name)
		r.load = append(r.load, loadAverage())
		if err := run(); err != nil {
			fail(fmt.Errorf("%s: %w", name, err))
		}
	}
	part("hit", r.measureHits)
	part("python", r.measurePythonWalk)
	part("launch", func() error { return r.measureLaunches(s) })
	part("decode", func() error { return r.measureDecoding(s) })
	part("mixed", func() error { return r.measureWarm(s) })
	part("memory", func() error { return onBothCores(func() error { return r.measureMemory(s) }) })
	for _, python := range s.interpreted {
		part("native", func() error { return r.measureNativeWalk(s, python) })
		part("mixed", func() error { return r.measureMixed(s, python) })
		if slices.ContainsFunc([]string{"plan", "programs", "attach", "paired"}, s.wanted) {
			r.load = append(r.load, loadAverage())
			if err := r.measureWorstCase(s, python); err != nil {
				fail(err)
			}
		}
		part("budget", func() error { return r.measureBudget(s, python) })
		part("allocator", func() error { return r.measureAllocator(s, python) })
		part("samples", func() error { return r.measureSampling(s, python) })
		for _, model := range []string{"resnet.py", "transformer.py"} {
			part("models", func() error { return r.measureModel(s, python, model) })
		}
	}
	r.load = append(r.load, loadAverage())
	r.took = time.Since(started)
	text := r.markdown()
	fmt.Print(text)
	if !*write {
		return
	}
	path := filepath.Join("docs", "overhead.md")
	if old, err := os.ReadFile(path); err == nil {
		text = r.merge(string(old), text)
	}
	fail(os.WriteFile(path, []byte(text), 0o644))
}

// command is how this run was started, for the page.
func command() string {
	if len(os.Args) > 1 {
		return "go run ./internal/bench " + strings.Join(os.Args[1:], " ")
	}
	return "go run ./internal/bench"
}

// cacheDirectory is where the setup scripts put what they fetch.
func cacheDirectory() string {
	if directory := os.Getenv("EBPFPROF_CACHE"); directory != "" {
		return directory
	}
	home, _ := os.UserHomeDir()
	return filepath.Join(home, ".cache", "ebpfprof")
}

func interpreters(only string) []interpreter {
	var found []interpreter
	for _, i := range []interpreter{
		{"1.13 (Debian)", "/usr/bin/python3"},
		{"2.15 (PyPI)", filepath.Join(cacheDirectory(), "torch-venv/bin/python")},
	} {
		if _, err := os.Stat(i.path); err != nil {
			say("no PyTorch %s here: make deps torch", i.name)
			continue
		}
		if strings.HasPrefix(i.name, only) {
			found = append(found, i)
		}
	}
	return found
}

func say(format string, values ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05 ")+format+"\n", values...)
}

func fail(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
