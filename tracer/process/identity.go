package process

import (
	"bytes"
	"errors"
	"io/fs"
	"strconv"
	"strings"
)

// JobIdentity is a process's place in a distributed job, as its launcher told
// it. The environment it is read from is the one the process was started with:
// a rank that the program gives itself later (torch.multiprocessing.spawn) is
// not in it.
type JobIdentity struct {
	JobID     *string
	Rank      *int32
	LocalRank *int32
	WorldSize *int32
	// Where each comes from: "cgroup", or the name of the environment
	// variable; "" where absent.
	JobIDFrom     string
	RankFrom      string
	LocalRankFrom string
	WorldSizeFrom string
}

// The environment variables that may be read, first choice first. Nothing else
// of an environment is looked at or kept: it holds secrets. torchrun's names
// come before those of the launcher that started torchrun.
var (
	jobIDNames = []string{
		"SLURM_JOB_ID", "TORCHELASTIC_RUN_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID", "RAY_JOB_ID",
	}
	rankNames = []string{
		"RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID", "JOB_COMPLETION_INDEX",
	}
	localRankNames = []string{
		"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID",
	}
	worldSizeNames = []string{
		"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS",
	}
)

var allowedNames = func() map[string]bool {
	allowed := map[string]bool{}
	for _, names := range [][]string{jobIDNames, rankNames, localRankNames, worldSizeNames} {
		for _, name := range names {
			allowed[name] = true
		}
	}
	return allowed
}()

const (
	maxEnvironment = 8 << 20 // more than exec allows
	maxJobID       = 128
)

// readJob reads the cgroup and the allowed part of the environment.
func (p *Process) readJob() error {
	group := p.readCgroup()
	p.Cgroup, p.ContainerID = group.path, group.container
	environment, _, err := p.fs.text(p.through(), maxEnvironment, "environ")
	if errors.Is(err, fs.ErrPermission) {
		// Another user's environment takes CAP_DAC_READ_SEARCH, which tracing
		// does not need: the job's identity is then what its cgroup says.
		environment, err = nil, nil
	}
	if err != nil {
		return vanished(p.PID, "reading the job's identity", err)
	}
	p.Job = identify(group, allowed(environment))
	clear(environment)
	return nil
}

// allowed keeps the variables of the allow-list.
func allowed(environment []byte) map[string]string { return keepNamed(environment, allowedNames) }

// keepNamed keeps the variables with some names.
func keepNamed(environment []byte, names map[string]bool) map[string]string {
	kept := map[string]string{}
	for entry := range bytes.SplitSeq(environment, []byte{0}) {
		name, value, ok := bytes.Cut(entry, []byte{'='})
		if ok && len(value) <= maxJobID && names[string(name)] {
			kept[string(name)] = string(value)
		}
	}
	return kept
}

func identify(group cgroup, environment map[string]string) JobIdentity {
	// The batch script of a Slurm job and the processes beside its steps have
	// the variables of a task without being one of the tasks.
	if step := group.slurmStep; step == "batch" || step == "extern" || step == "interactive" {
		if environment["SLURM_NTASKS"] != "1" {
			for _, name := range []string{"SLURM_PROCID", "SLURM_LOCALID", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"} {
				delete(environment, name)
			}
		}
	}
	var job JobIdentity
	if group.slurmJob != "" {
		job.JobID, job.JobIDFrom = &group.slurmJob, "cgroup"
	} else {
		job.JobID, job.JobIDFrom = firstJobID(environment)
	}
	job.Rank, job.RankFrom = firstNumber(environment, rankNames)
	job.LocalRank, job.LocalRankFrom = firstNumber(environment, localRankNames)
	job.WorldSize, job.WorldSizeFrom = firstNumber(environment, worldSizeNames)
	return job
}

func firstJobID(environment map[string]string) (*string, string) {
	for _, name := range jobIDNames {
		// torchrun says "none" when it was given no id.
		if value := environment[name]; value != "" && value != "none" && printable(value) {
			return &value, name
		}
	}
	return nil, ""
}

func printable(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c > '~' })
}

func firstNumber(environment map[string]string, names []string) (*int32, string) {
	for _, name := range names {
		if n, err := strconv.ParseInt(environment[name], 10, 32); err == nil && n >= 0 {
			value := int32(n)
			return &value, name
		}
	}
	return nil, ""
}
