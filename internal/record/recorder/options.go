package recorder

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/tracer"
	"github.com/ebpfprof/ebpfprof/tracer/asked"
	"github.com/ebpfprof/ebpfprof/tracer/filter"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
)

// recordFlags are what attach and run share; moreTimes is what --device-times can do besides.
func recordFlags(moreTimes string) []urfave.Flag {
	return []urfave.Flag{
		&urfave.DurationFlag{Name: "duration", Aliases: []string{"d"}, DefaultText: "until the job exits, or Ctrl-C",
			Usage: "stop after this `TIME`, such as 30s"},
		&urfave.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write the dataset to `DIR`, which must be empty or not exist",
			DefaultText: "ebpfprof-JOB-TIME"},
		&urfave.StringFlag{Name: "mode", Value: "0600", Usage: "who may read the dataset: the `MODE` of its files, such as 0640, or 0640:GROUP " +
			"for a group"},
		&urfave.BoolFlag{Name: "redact", DisableDefaultText: true, Usage: "leave out command lines, directories and the names of host, " +
			"containers and control groups"},
		&urfave.StringFlag{Name: "level", Value: string(tracer.LevelWindow), Usage: "how much to record: anchor, window or deep"},
		&urfave.StringFlag{Name: "probe", Usage: "record only what matches `FILTER`: groups (see ebpfprof probes --groups), or KEY=GLOB[,…] " +
			"with KEY one of " + filter.KeyNames()},
		&urfave.StringFlag{Name: "exclude", Usage: "leave out what matches `FILTER`, such as symbol=aten::view or category=sync"},
		&urfave.StringSliceFlag{Name: "probe-symbol", Usage: "record the calls of a function too, `LIB:SYMBOL[(NAME:TYPE,…)][->TYPE]`, " +
			"with the types " + asked.TypeNames},
		&urfave.StringSliceFlag{Name: "usdt", Usage: "record the calls of a USDT probe too, `PROVIDER:NAME[(NAME:TYPE,…)]`"},
		&urfave.BoolFlag{Name: "no-follow", DisableDefaultText: true, Usage: "leave the children of the process alone"},
		&urfave.BoolFlag{Name: "no-shapes", DisableDefaultText: true, Usage: "do not read the sizes, strides and types of what operators are " +
			"called with"},
		&urfave.BoolFlag{Name: "no-io", DisableDefaultText: true, Usage: "do not measure what the job reads and writes (the same as " +
			"--exclude io)"},
		&urfave.BoolFlag{Name: "paths", DisableDefaultText: true, Usage: "tell what the job reads and writes apart by file, and " +
			"record the paths"},
		&urfave.BoolFlag{Name: "allow-user-mounts", DisableDefaultText: true, Usage: userMountsUsage},
		&urfave.StringFlag{Name: "budget", Usage: "the `SHARE` of the job's time that the recording may take, such as 5%, or off to " +
			"record everything", DefaultText: "5% at window, 1% at anchor, off at deep"},
		&urfave.StringFlag{Name: "frequency", Usage: "how often a second to look at what runs, `HZ`; 0 for no samples",
			DefaultText: "99 at window and deep, 9 at anchor"},
		&urfave.DurationFlag{Name: "off-cpu-threshold", Value: defaultOffCPU, Usage: "record waits of at least this `TIME`; 0 for none"},
		&urfave.IntFlag{Name: "max-frames", Value: defaultFrames, Usage: fmt.Sprintf("cut stacks after so many (`N`) native and so many Python "+
			"frames, %d at the most, of Python %d", kernel.MostFrames, kernel.MostPythonFrames)},
		&urfave.IntFlag{Name: "verify-stacks", Value: 256, Usage: "of `N` stacks that a call had before, walk one to compare; 1 walks all"},
		&urfave.StringFlag{Name: "buffer-size", Value: "64MiB", Usage: "`SIZE` of the kernel's ring buffer"},
		&urfave.StringSliceFlag{Name: "limit", Usage: "another value for a limit, `NAME=NUMBER`: " + limitNames()},
		&urfave.StringFlag{Name: "counters", Value: "1s", Usage: "read the machine's counters this often (`TIME`), or off"},
		deviceTimesFlag(moreTimes),
		&urfave.BoolFlag{Name: "json", DisableDefaultText: true, Usage: "print the summary as JSON, and no progress"},
		&urfave.BoolFlag{Name: "no-verdict", DisableDefaultText: true, Usage: "end without the verdict, which takes some seconds of one " +
			"CPU to compute"},
		&urfave.BoolFlag{Name: "quiet", Aliases: []string{"q"}, DisableDefaultText: true, Usage: "no progress"},
		&urfave.StringFlag{Name: "attach-with", Hidden: true, Usage: "perf: one perf event a site, as on kernels below 6.6"},
		&urfave.DurationFlag{Name: "rotate", Hidden: true, Usage: "close the files of the dataset this often (default: 60s)"},
	}
}

// userMountsUsage says what the flag lets a user do.
const userMountsUsage = "put probes also into files that a user may have mounted (FUSE, rootless containers): " +
	"a user who serves such a file can then stop all forks of this machine"

// limitNames lists the limits with their defaults.
func limitNames() string {
	var names []string
	for _, l := range tracer.Limits {
		names = append(names, fmt.Sprintf("%s (%d)", l.Name, l.Default))
	}
	return strings.Join(names, ", ")
}

// recordOptions reads the flags into the tracer's options.
func recordOptions(c *urfave.Context) (tracer.Options, error) {
	o := tracer.Options{Follow: !c.Bool("no-follow"), PerfEvents: c.String("attach-with") == "perf", NoShapes: c.Bool("no-shapes"),
		NoIO: c.Bool("no-io"), Paths: c.Bool("paths"),
		AllowUserMounts: c.Bool("allow-user-mounts")}
	if o.Paths && o.NoIO {
		return o, cli.Usagef("--paths says what is read and written, which --no-io leaves out: give one of them")
	}
	if name := c.String("attach-with"); name != "" && name != "perf" {
		return o, cli.Usagef("--attach-with %q: the only choice is perf", name)
	}
	switch o.Level = tracer.Level(c.String("level")); o.Level {
	case tracer.LevelAnchor, tracer.LevelWindow, tracer.LevelDeep:
	default:
		return o, cli.Usagef("--level %q: choose anchor, window or deep", o.Level)
	}
	var err error
	if o.Filter, err = filter.New(c.String("probe"), c.String("exclude")); err != nil {
		return o, cli.Mistaken(err)
	}
	if o.Asked, err = asked.Group(c.StringSlice("probe-symbol"), c.StringSlice("usdt")); err != nil {
		return o, cli.Mistaken(err)
	}
	if _, err := o.SelectGroups(); err != nil {
		return o, cli.Mistaken(err)
	}
	if o.Budget, err = parseBudget(c.String("budget"), o.Level); err != nil {
		return o, cli.Mistaken(err)
	}
	if o.Frequency, err = parseFrequency(c.String("frequency"), o.Level); err != nil {
		return o, cli.Mistaken(err)
	}
	if o.VerifyStacks = c.Int("verify-stacks"); o.VerifyStacks < 1 {
		return o, cli.Usagef("--verify-stacks %d: give a positive number", o.VerifyStacks)
	}
	if o.OffCPU = c.Duration("off-cpu-threshold"); o.OffCPU < 0 {
		return o, cli.Usagef("--off-cpu-threshold %s: give a time, such as 5ms, or 0", o.OffCPU)
	}
	if o.MaxFrames = c.Int("max-frames"); o.MaxFrames < 1 || o.MaxFrames > kernel.MostFrames {
		return o, cli.Usagef("--max-frames %d: give a number from 1 to %d", o.MaxFrames, kernel.MostFrames)
	}
	if o.BufferBytes, err = parseBytes(c.String("buffer-size")); err != nil {
		return o, cli.Mistaken(fmt.Errorf("--buffer-size: %w", err))
	}
	if o.Limits, err = tracer.ParseLimits(c.StringSlice("limit")); err != nil {
		return o, cli.Mistaken(fmt.Errorf("--limit: %w", err))
	}
	if o.Counters, err = parseCounters(c.String("counters")); err != nil {
		return o, cli.Mistaken(err)
	}
	if d := c.Duration("duration"); c.IsSet("duration") && d <= 0 {
		return o, cli.Usagef("--duration %s: give a positive time, such as 30s", d)
	}
	return o, nil
}

func parseBudget(s string, level tracer.Level) (float64, error) {
	switch s {
	case "":
		return tracer.DefaultBudget(level), nil
	case "off":
		return tracer.Unlimited, nil
	}
	percent, err := strconv.ParseFloat(strings.TrimSuffix(s, "%"), 64)
	if err != nil || !(percent > 0 && percent <= 100) { // NaN is neither
		return 0, fmt.Errorf("--budget %q: give a percentage between 0 and 100, such as 5%%, or off", s)
	}
	return percent / 100, nil
}

// defaultFrames is what there is room for: 128 cut a twelfth of the samples of a
// Hugging Face Trainer, and 256 a thirteenth of those of torch.compile.
const defaultFrames = kernel.MostFrames

// defaultFrequency is no divisor of what else comes so many times a second.
var defaultFrequency = map[tracer.Level]int{tracer.LevelAnchor: 9, tracer.LevelWindow: 99, tracer.LevelDeep: 99}

// defaultOffCPU is far above what a switch of threads takes.
const defaultOffCPU = time.Millisecond

// defaultBuffer is the ring buffer's default size in bytes.
const defaultBuffer = 64 << 20

// DefaultOptions are what decides which programs are loaded for a recording, and how
// large they are, if no flag says otherwise.
func DefaultOptions() tracer.Options {
	return tracer.Options{
		Level: tracer.LevelWindow, Frequency: defaultFrequency[tracer.LevelWindow], OffCPU: defaultOffCPU,
		MaxFrames: defaultFrames, BufferBytes: defaultBuffer,
	}
}

// maxFrequency is where the kernel's own limit on interrupts begins to matter.
const maxFrequency = 10_000

func parseFrequency(s string, level tracer.Level) (int, error) {
	if s == "" {
		return defaultFrequency[level], nil
	}
	hertz, err := strconv.Atoi(s)
	if err != nil || hertz < 0 || hertz > maxFrequency {
		return 0, fmt.Errorf("--frequency %q: give a number of samples a second from 0 to %d", s, maxFrequency)
	}
	return hertz, nil
}

// leastCounterPeriod keeps the sampler's own cost low: a reading takes about a
// millisecond, and some drivers wait 20 ms for theirs.
const leastCounterPeriod = 100 * time.Millisecond

func parseCounters(s string) (time.Duration, error) {
	if s == "off" {
		return 0, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < leastCounterPeriod {
		return 0, fmt.Errorf("--counters %q: give a time of at least %s, such as 1s, or off", s, leastCounterPeriod)
	}
	return d, nil
}

var byteUnits = []struct {
	suffix string
	factor float64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"kB", 1e3}, {"G", 1 << 30}, {"M", 1 << 20},
	{"K", 1 << 10}, {"B", 1}, {"", 1}}

// parseBytes reads a size and rounds it up to what a ring buffer can have: a
// power of two, at least a page.
func parseBytes(s string) (int, error) {
	for _, unit := range byteUnits {
		number, ok := strings.CutSuffix(strings.TrimSpace(s), unit.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || !(n > 0 && n*unit.factor <= 1<<30) { // NaN is neither
			return 0, fmt.Errorf("%q: give a size up to 1GiB, such as 64MiB", s)
		}
		size := 4096
		for float64(size) < n*unit.factor {
			size *= 2
		}
		return size, nil
	}
	panic("the last unit is the empty one")
}

// defaultOutput names a dataset after what it is of.
func defaultOutput(what string, now time.Time) string {
	return fmt.Sprintf("ebpfprof-%s-%s", what, now.Format("20060102-150405"))
}
