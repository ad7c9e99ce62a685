package suite

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/benchmark/numbers"
	"github.com/ebpfprof/ebpfprof/internal/benchmark/pipeline"
	"github.com/ebpfprof/ebpfprof/internal/benchmark/reference"
)

// Choice says which cases of a suite run.
type Choice struct {
	Host   string
	System string         // SYSTEM or SYSTEM:PARTITION; "" is that of the host
	Only   *regexp.Regexp // names; nil is all
}

// generic is the system of a machine that no system of the suite describes.
var generic = System{Name: "generic", Partitions: []Partition{{Name: "default"}}}

// builtin is the environ where a suite has none.
var builtin = Environ{Name: "builtin"}

// Cases are the benchmarks of a suite, one for each set of parameters, partition and environ that fits.
func (s *Suite) Cases(choice Choice) (all []*pipeline.Case, err error) {
	system, partition, err := s.system(choice)
	if err != nil {
		return nil, err
	}
	for _, b := range s.Benchmarks {
		if b.Abstract {
			continue
		}
		if b, err = s.resolved(b); err != nil {
			return nil, err
		}
		for _, p := range system.Partitions {
			if partition != "" && p.Name != partition || !valid(b.ValidSystems, system.Name, p.Name, p.Features) {
				continue
			}
			for _, e := range s.environs(p) {
				if !valid(b.ValidEnvirons, e.Name, "", e.Features) {
					continue
				}
				some, err := s.expand(b, system, p, e)
				if err != nil {
					return nil, fmt.Errorf("benchmark %s: %w", b.Name, err)
				}
				all = append(all, some...)
			}
		}
	}
	if choice.Only != nil {
		all = slices.DeleteFunc(all, func(c *pipeline.Case) bool { return !choice.Only.MatchString(c.Name) })
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no benchmark of the suite fits system %s: see valid_systems, valid_environs, --system and --only", system.Name)
	}
	return all, nil
}

// system is the one that was asked for, else the first whose hosts match.
func (s *Suite) system(choice Choice) (System, string, error) {
	name, partition, _ := strings.Cut(choice.System, ":")
	for _, sys := range s.Systems {
		if name != "" {
			if sys.Name == name {
				if partition != "" && !slices.ContainsFunc(sys.Partitions, func(p Partition) bool { return p.Name == partition }) {
					return sys, "", fmt.Errorf("system %s has no partition %s", name, partition)
				}
				return sys, partition, nil
			}
			continue
		}
		for _, pattern := range sys.Hosts {
			if regexp.MustCompile("^(?:" + pattern + ")$").MatchString(choice.Host) {
				return sys, "", nil
			}
		}
	}
	if name != "" && name != generic.Name {
		return System{}, "", fmt.Errorf("the suite has no system %s", name)
	}
	return generic, "", nil
}

func (s *Suite) environs(p Partition) (all []Environ) {
	for _, e := range s.Environs {
		if len(p.Environs) == 0 || slices.Contains(p.Environs, e.Name) {
			all = append(all, e)
		}
	}
	if len(s.Environs) == 0 {
		return []Environ{builtin}
	}
	return all
}

// valid says whether one of the patterns fits: *, NAME, NAME:PART with * for either, +FEATURE, -FEATURE, several of
// which in one pattern must all fit. Without patterns everything does.
func valid(patterns []string, name, part string, features []string) bool {
	if len(patterns) == 0 {
		return true
	}
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		for _, term := range strings.Fields(pattern) {
			if !fits(term, name, part, features) {
				return false
			}
		}
		return strings.TrimSpace(pattern) != ""
	})
}

func fits(term, name, part string, features []string) bool {
	switch term[0] {
	case '+':
		return slices.Contains(features, term[1:])
	case '-':
		return !slices.Contains(features, term[1:])
	}
	wantName, wantPart, both := strings.Cut(term, ":")
	return (wantName == "*" || wantName == name) && (!both || wantPart == "*" || wantPart == part)
}

// expand makes a case of each set of parameters.
func (s *Suite) expand(b Benchmark, sys System, p Partition, e Environ) (all []*pipeline.Case, err error) {
	for _, values := range product(b.Parameters) {
		fill := placeholders(joined(values, e.Values))
		c := &pipeline.Case{
			Base: b.Name, Name: b.Name + suffix(values), Parameters: values, System: sys.Name, Partition: p.Name, Environ: e.Name,
			Command: fill.all(b.Command), Dir: filepath.Join(s.dir, b.Directory),
			Setup: fill.all(b.Setup), Build: fill.all(b.Build), Cleanup: fill.all(b.Cleanup), Env: map[string]string{},
			TimeLimit: time.Duration(cmp.Or(b.TimeLimit, p.TimeLimit)),
		}
		for _, some := range []map[string]string{p.Environment, e.Environment, b.Environment} {
			for name, value := range some {
				c.Env[name] = fill.one(value)
			}
		}
		if err := b.numbers(c, fill); err != nil {
			return nil, err
		}
		if fill.missing != "" {
			return nil, fmt.Errorf("{%s} is neither a parameter nor a value of environ %s", fill.missing, e.Name)
		}
		all = append(all, c)
	}
	return all, nil
}

// numbers is what a case measures and what it is held against.
func (b Benchmark) numbers(c *pipeline.Case, fill *filling) (err error) {
	c.Numbers = numbers.Options{LossPattern: b.Loss}
	for _, of := range []struct {
		name, text string
		to         *int
	}{{"batch", b.Batch, &c.Numbers.Batch}, {"steps_per_epoch", b.StepsPerEpoch, &c.Numbers.StepsPerEpoch}} {
		if of.text == "" {
			continue
		}
		if *of.to, err = strconv.Atoi(fill.one(of.text)); err != nil || *of.to < 1 {
			return fmt.Errorf("%s is %q: give a positive number, or the name of a parameter in braces", of.name, of.text)
		}
	}
	c.Sanity = pipeline.Sanity{ExitCode: b.Sanity.ExitCode, Expected: b.Sanity.XFail}
	if c.Sanity.Find, err = compiled(b.Sanity.Find); err != nil {
		return fmt.Errorf("sanity: %w", err)
	}
	if c.Sanity.Absent, err = compiled(b.Sanity.Absent); err != nil {
		return fmt.Errorf("sanity: %w", err)
	}
	if _, err := regexp.Compile(b.Loss); err != nil {
		return fmt.Errorf("loss: %w", err)
	}
	if err := b.variables(c); err != nil {
		return err
	}
	return b.references(c)
}

// takes are what may become of several matches.
var takes = []string{"", "last", "first", "min", "max", "mean", "sum"}

func (b Benchmark) variables(c *pipeline.Case) error {
	for _, name := range slices.Sorted(maps.Keys(b.Variables)) {
		v := b.Variables[name]
		_, taken := numbers.KindOf(name)
		switch {
		case taken:
			return fmt.Errorf("variable %s has the name of a number that every recording gives: choose another one", name)
		case (v.Regex == "") == (v.SQL == ""):
			return fmt.Errorf("variable %s: give one of regex and sql", name)
		case !slices.Contains(takes, v.Take):
			return fmt.Errorf("variable %s: take is one of %s", name, strings.Join(takes[1:], ", "))
		}
		out := pipeline.Variable{Name: name, Unit: v.Unit, SQL: v.SQL, Take: v.Take}
		if v.Regex != "" {
			re, err := compiled([]string{v.Regex})
			if err != nil {
				return fmt.Errorf("variable %s: %w", name, err)
			}
			out.Pattern = re[0]
		}
		c.Variables = append(c.Variables, out)
	}
	return nil
}

// references are those of the case's partition, else of its system, else of *, for each number.
func (b Benchmark) references(c *pipeline.Case) error {
	c.References = map[string]reference.Reference{}
	for where := range b.References {
		if where != "*" && where != c.System && where != c.System+":"+c.Partition && !named.MatchString(strings.ReplaceAll(where, ":", "")) {
			return fmt.Errorf("references are of %q: give SYSTEM:PARTITION, SYSTEM or *", where)
		}
	}
	for _, where := range []string{"*", c.System, c.System + ":" + c.Partition} {
		for name, r := range b.References[where] {
			_, known := numbers.KindOf(name)
			if _, variable := b.Variables[name]; !known && !variable {
				return fmt.Errorf("there is no number %s to hold against its reference: it is neither one of a recording nor one of variables", name)
			}
			c.References[name] = reference.Reference{Value: r.Value, Lower: r.Lower, Upper: r.Upper, Unit: r.Unit, Expected: r.XFail}
		}
	}
	return nil
}

// compiled are patterns that see each line's begin and end, as ReFrame's do.
func compiled(patterns []string) (all []*regexp.Regexp, err error) {
	for _, p := range patterns {
		re, err := regexp.Compile("(?m)" + p)
		if err != nil {
			return nil, fmt.Errorf("pattern %q: %w", p, err)
		}
		all = append(all, re)
	}
	return all, nil
}

// product are all combinations of the parameters' values, the first parameter's changing slowest.
func product(parameters map[string][]string) []map[string]string {
	all := []map[string]string{{}}
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		var next []map[string]string
		for _, one := range all {
			for _, value := range parameters[name] {
				with := maps.Clone(one)
				with[name] = value
				next = append(next, with)
			}
		}
		all = next
	}
	return all
}

// suffix are the parameters as ReFrame writes them behind a name.
func suffix(values map[string]string) (text string) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		text += " %" + name + "=" + values[name]
	}
	return text
}

// filling puts values in the place of {name}.
type filling struct {
	values  map[string]string
	missing string // the first name without a value
}

var placeholder = regexp.MustCompile(`\{([a-z][a-z0-9_]*)\}`)

func placeholders(values map[string]string) *filling { return &filling{values: values} }

func (f *filling) one(text string) string {
	return placeholder.ReplaceAllStringFunc(text, func(found string) string {
		name := found[1 : len(found)-1]
		value, ok := f.values[name]
		if !ok && f.missing == "" {
			f.missing = name
		}
		return value
	})
}

func (f *filling) all(texts []string) (out []string) {
	for _, text := range texts {
		out = append(out, f.one(text))
	}
	return out
}
