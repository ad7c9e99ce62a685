// Package config reads the configuration of a node's agent: a file, its neighbours, the environment.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/ebpfprof/ebpfprof/internal/agent/jobs"
	"github.com/ebpfprof/ebpfprof/internal/exchange/otlp"
	"github.com/ebpfprof/ebpfprof/internal/fleet/request"
	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
	"github.com/ebpfprof/ebpfprof/internal/fleet/trigger"
)

// Config is the agent's configuration. The zero value of a field is its default.
type Config struct {
	Store     string      `yaml:"store"`     // s3://BUCKET/PREFIX, or a directory that all nodes reach
	Spool     string      `yaml:"spool"`     // raw events of windows, the oldest out first
	SpoolMB   int64       `yaml:"spool_mb"`  // how much of them stays
	OutboxMB  int64       `yaml:"outbox_mb"` // how much of what the store has not taken yet stays
	OTLP      string      `yaml:"otlp"`      // a collector of OpenTelemetry's, for the samples of windows; "" is none
	OTLPMB    int64       `yaml:"otlp_mb"`   // how much of what it has not taken yet stays
	Budget    string      `yaml:"budget"`    // share of the job's time, such as 1%
	Listen    string      `yaml:"listen"`    // address of /metrics, /healthz and /jobs; off
	Libraries []string    `yaml:"libraries"` // a process that maps one of these is part of a job
	Job       string      `yaml:"job"`       // name of jobs that no scheduler names
	Names     []jobs.Name `yaml:"names"`     // of jobs that are called otherwise each time that they begin
	Only      []string    `yaml:"only"`      // jobs whose names match one of these patterns; all without any
	Ranks     []int32     `yaml:"ranks"`     // of jobs, only these ranks; all without any
	Host      string      `yaml:"host"`      // what this node is called in the store; its host name without
	Every     Duration    `yaml:"every"`     // how often jobs are looked for
	Settle    Duration    `yaml:"settle"`    // how long a new job's processes are left alone
	Canary    Duration    `yaml:"canary"`    // how long one of them is recorded alone, before the others
	Window    Duration    `yaml:"window"`    // how long a window is
	Cooldown  Duration    `yaml:"cooldown"`  // between two windows of a job
	Flush     Duration    `yaml:"flush"`     // how often patterns are sent outside of windows
	KeyFile   string      `yaml:"key_file"`  // secret that requests for windows are signed with
	Redact    bool        `yaml:"redact"`    // as --redact
	// AllowUserMounts has probes put into files that a user may serve: FUSE, rootless containers.
	AllowUserMounts bool `yaml:"allow_user_mounts"`

	MaxJobs   int     `yaml:"max_jobs"`      // at a time; more are counted and left alone
	MaxRSSMB  int64   `yaml:"max_rss_mb"`    // of a worker, a soft limit
	StepsMean int     `yaml:"steps_mean"`    // whose mean counts
	Slower    float64 `yaml:"slower_than"`   // the best mean, by this factor
	Blocked   float64 `yaml:"blocked_after"` // so many mean steps without a call of the loop
	Repeats   int     `yaml:"step_repeats"`  // of a sequence of calls before it counts as a step
	Patience  int     `yaml:"step_patience"` // calls without a step, until the sequence is learnt anew
}

// Duration is a time.Duration as YAML has it, such as 20s.
type Duration time.Duration

// UnmarshalYAML implements yaml.Unmarshaler.
func (d *Duration) UnmarshalYAML(node *yaml.Node) error {
	v, err := time.ParseDuration(node.Value)
	if err != nil || v <= 0 {
		return fmt.Errorf("line %d: %q is not a time: give one such as 20s or 10m", node.Line, node.Value)
	}
	*d = Duration(v)
	return nil
}

// defaultLibraries are what frameworks and drivers bring into a process.
var defaultLibraries = []string{"libtorch_cpu.so", "libtorch.so", "libtorch_cuda.so", "libtorch_hip.so", "xla_extension.so",
	"libjax_common.so",
	"libnccl.so", "librccl.so", "libnrt.so"}

// Defaults are what a file does not say.
func Defaults() Config {
	return Config{
		SpoolMB: 2048, OutboxMB: 256, OTLPMB: 64, Budget: "1%", Listen: "127.0.0.1:9757", Libraries: defaultLibraries,
		Every:  Duration(5 * time.Second),
		Settle: Duration(10 * time.Second), Canary: Duration(10 * time.Second), Window: Duration(20 * time.Second),
		Cooldown: Duration(10 * time.Minute),
		Flush:    Duration(time.Minute), MaxJobs: 16, MaxRSSMB: 400, StepsMean: trigger.Published.Steps, Slower: trigger.Published.Slower,
		Blocked: trigger.Published.Blocked, Repeats: trigger.Published.Repeats, Patience: trigger.Published.Patience,
	}
}

// ErrUnusable is wrapped by what is wrong with a configuration.
var ErrUnusable = errors.New("the configuration cannot be used")

// mostConfig bounds a file: it is read by root.
const mostConfig = 1 << 20

// Read reads a YAML file, then FILE's neighbours conf.d/*.yaml in order of their
// names, then the environment: EBPFPROF_AGENT_STORE and so on override the keys of the
// same name. An unknown key is an error with its line.
func Read(file string, environment []string) (Config, error) {
	c := Defaults()
	more, err := filepath.Glob(filepath.Join(filepath.Dir(file), "conf.d", "*.yaml"))
	if err != nil {
		return c, fmt.Errorf("reading the configuration: %w", err)
	}
	slices.Sort(more)
	for _, name := range append([]string{file}, more...) {
		if err := c.merge(name); err != nil {
			return c, err
		}
	}
	if err := c.environment(environment); err != nil {
		return c, err
	}
	return c, c.check()
}

func (c *Config) merge(name string) error {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading the configuration: %w: name a file with --config; deploy/agent.yaml is one to begin with", err)
	}
	if err != nil {
		return fmt.Errorf("reading the configuration: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, mostConfig+1))
	if err != nil {
		return fmt.Errorf("reading the configuration %s: %w", name, err)
	}
	if len(text) > mostConfig {
		return fmt.Errorf("%w: %s is larger than %d bytes", ErrUnusable, name, mostConfig)
	}
	return c.decode(name, text)
}

func (c *Config) decode(name string, text []byte) error {
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(c); err != nil && !errors.Is(err, io.EOF) {
		what := strings.Join(strings.Fields(strings.ReplaceAll(err.Error(), "yaml: ", "")), " ")
		what = strings.ReplaceAll(what, "in type config.Config", "is no key of this file")
		return fmt.Errorf("%w: %s: %s", ErrUnusable, name, strings.ReplaceAll(what, "not found is", "is"))
	}
	return nil
}

// environmentPrefix begins the variables that override keys.
const environmentPrefix = "EBPFPROF_AGENT_"

func (c *Config) environment(environment []string) error {
	for _, entry := range environment {
		name, value, _ := strings.Cut(entry, "=")
		key, ok := strings.CutPrefix(name, environmentPrefix)
		if !ok {
			continue
		}
		if key == "LIBRARIES" {
			c.Libraries = strings.Split(value, ",")
			continue
		}
		if err := c.decode(name, fmt.Appendf(nil, "%s: %s", strings.ToLower(key), strconv.Quote(value))); err != nil {
			// Numbers and booleans are not strings to YAML.
			if err := c.decode(name, fmt.Appendf(nil, "%s: %s", strings.ToLower(key), value)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Config) check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{ErrUnusable}, args...)...)
	}
	if c.Store == "" {
		return bad("it names no store: store: s3://BUCKET/PREFIX, or a directory that all nodes reach")
	}
	if store.IsBucket(c.Store) {
		if _, err := store.Create(c.Store); err != nil { // sends nothing yet
			return bad("store: %v", err)
		}
	}
	if c.OTLP != "" {
		if _, err := otlp.Endpoint(c.OTLP); err != nil {
			return bad("otlp: %v", err)
		}
	}
	if c.Spool == "" {
		c.Spool = "/var/lib/ebpfprof/spool"
	}
	if _, err := c.Share(); err != nil {
		return bad("budget: %v", err)
	}
	if err := jobs.CheckNames(c.Names); err != nil {
		return bad("names: %v", err)
	}
	for _, pattern := range c.Only {
		if _, err := path.Match(pattern, ""); err != nil {
			return bad("only: %q is no pattern", pattern)
		}
	}
	if c.Listen != "off" {
		if _, _, err := net.SplitHostPort(c.Listen); err != nil {
			return bad("listen: %q is no address: give one such as 127.0.0.1:9757, or off", c.Listen)
		}
	}
	if c.KeyFile != "" {
		if _, err := request.ReadKey(c.KeyFile); err != nil {
			return bad("key_file: %v", err)
		}
	}
	if strings.ContainsFunc(c.Host, func(r rune) bool { return r <= ' ' || r == 0x7f || r == utf8.RuneError }) || len(c.Host) > mostHost {
		return bad("host: %q is no name", c.Host)
	}
	switch {
	case len(c.Libraries) == 0:
		return bad("libraries: without any, no job would be found")
	case c.MaxJobs < 1 || c.SpoolMB < 0 || c.OutboxMB < 1 || c.OTLPMB < 1 || c.MaxRSSMB < 64:
		return bad("max_jobs, outbox_mb and otlp_mb are at least 1, spool_mb at least 0, max_rss_mb at least 64")
	case c.StepsMean < 2 || !(c.Slower > 1):
		return bad("steps_mean is at least 2, slower_than more than 1")
	case !(c.Blocked > 1) || c.Repeats < 2 || c.Repeats > mostRepeats || c.Patience < 10:
		return bad("blocked_after is more than 1, step_repeats from 2 to %d, step_patience at least 10", mostRepeats)
	case time.Duration(c.Window) < time.Second:
		return bad("window: at least 1s")
	}
	return nil
}

// mostRepeats bounds what is kept of a thread's calls until its step is known.
const mostRepeats = 100

// mostHost is the longest name that Linux gives a host or DNS a domain.
const mostHost = 253

// NodeName is what this node is called in the store: in a container the host name may be
// the container's, which says nothing to who reads a report, and may not be unique.
func (c *Config) NodeName() (string, error) {
	if c.Host != "" {
		return c.Called(c.Host), nil
	}
	name, err := os.Hostname()
	return c.Called(name), err
}

// Wants says whether a job is to be recorded.
func (c *Config) Wants(job string) bool {
	return len(c.Only) == 0 || slices.ContainsFunc(c.Only, func(pattern string) bool {
		match, _ := path.Match(pattern, job)
		return match
	})
}

// Share is the budget as a share of 1.
func (c *Config) Share() (float64, error) {
	percent, err := strconv.ParseFloat(strings.TrimSuffix(c.Budget, "%"), 64)
	if err != nil || !(percent > 0 && percent <= 100) {
		return 0, fmt.Errorf("%q: give a percentage between 0 and 100, such as 1%%", c.Budget)
	}
	return percent / 100, nil
}
