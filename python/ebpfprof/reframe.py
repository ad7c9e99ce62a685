"""ReFrame: tests that are recorded, with the numbers of a benchmark as performance variables.

    import reframe as rfm
    from ebpfprof.reframe import Profiled

    @rfm.simple_test
    class Train(rfm.RunOnlyRegressionTest, Profiled):
        valid_systems = ['*']
        valid_prog_environs = ['*']
        executable = 'python3'
        executable_opts = ['train.py']
        reference = {'*': {'throughput': (600, -0.05, 0.1, 'samples/s')}}

        @sanity_function
        def trained(self):
            return sn.assert_found('loss', self.stdout)

The job itself is not changed. The numbers are those of ``ebpfprof bench numbers``; one that is not available is left
out, and ReFrame says why if the test has a reference for it. Needs ReFrame 4.10 or later, and the rights of
``ebpfprof run`` where the job runs.
"""

import json
import os

import reframe as rfm
import reframe.utility.sanity as sn
import reframe.utility.typecheck as typ
from reframe.core.builtins import run_before, variable
from reframe.core.exceptions import PerformanceError

from ._binary import Error, binary, run

__all__ = ["Profiled"]


class Profiled(rfm.RegressionTestPlugin):
    """Records a test's job with ebpfprof and adds its numbers to ``perf_variables``."""

    #: Options of ``ebpfprof run``.
    ebpfprof_options = variable(typ.List[str], value=[])

    #: Samples in a step of one process; 0 is what the data loader puts together.
    ebpfprof_batch = variable(int, value=0)

    #: Steps in an epoch; 0 is by the ends of the data loader.
    ebpfprof_steps_per_epoch = variable(int, value=0)

    #: A regular expression that finds the loss in what the job prints; '' is the usual one.
    ebpfprof_loss = variable(str, value="")

    #: The numbers to report; all that are available without any.
    ebpfprof_numbers = variable(typ.List[str], value=[])

    #: The directory of the recording, below the stage directory.
    ebpfprof_recording = variable(str, value="ebpfprof-recording")

    @run_before("run")
    def ebpfprof_record(self):
        command = [binary(), "run", "--quiet", "--no-verdict", *self.ebpfprof_options, "--output"]
        self.prerun_cmds = [*self.prerun_cmds, f"rm -rf {self.ebpfprof_recording}*"]
        if self.job.launcher.registered_name.startswith("srun"):
            # Slurm's daemon starts the tasks, not srun: each is recorded where it runs.
            recorder, *options = [*command, f"{self.ebpfprof_recording}-$SLURM_PROCID", "--", self.executable]
            self.executable, self.executable_opts = recorder, [*options, *self.executable_opts]
        else:
            self.job.launcher.modifier, *self.job.launcher.modifier_options = [*command, self.ebpfprof_recording, "--"]

    @run_before("performance")
    def ebpfprof_measure(self):
        measured = self._ebpfprof_numbers()
        wanted = self.ebpfprof_numbers or [n["name"] for n in measured if n["value"] is not None]
        for name in {*wanted, *self._ebpfprof_referenced(measured)}:
            found = next((n for n in measured if n["name"] == name), None)
            if found is None:
                raise PerformanceError(f"ebpfprof has no number {name}: see ebpfprof bench numbers")
            if name not in self.perf_variables:
                self.perf_variables[name] = sn.make_performance_function(_value(found), found["unit"])

    def _ebpfprof_numbers(self):
        arguments = ["bench", "numbers", "--json", "--printed", os.path.join(self.stagedir, self.stdout.evaluate())]
        for flag, given in (
            ("--batch", self.ebpfprof_batch),
            ("--steps-per-epoch", self.ebpfprof_steps_per_epoch),
            ("--loss", self.ebpfprof_loss),
        ):
            if given:
                arguments += [flag, str(given)]
        recording = os.path.join(self.stagedir, self.ebpfprof_recording)
        if not os.path.isdir(recording):
            recording += "-0"  # of the first task of srun
        if not os.path.isdir(recording):
            said = sn.extractall(r"ebpfprof: (.*)", self.stderr, 1).evaluate()
            raise PerformanceError("the job was not recorded: " + (said[-1] if said else "it wrote no recording"))
        try:
            return json.loads(run([*arguments, recording]))
        except Error as error:
            raise PerformanceError(str(error)) from error

    def _ebpfprof_referenced(self, measured):
        """The numbers that the test has a reference for, here or anywhere."""
        names = {n["name"] for n in measured}
        return {key for some in self.reference.values() if isinstance(some, dict) for key in some if key in names} | {
            key.rsplit(":", 1)[-1] for key in self.reference if key.rsplit(":", 1)[-1] in names
        }


def _value(number):
    """A deferred value; where there is none its evaluation says why, and ReFrame repeats that."""

    @sn.deferrable
    def value():
        if number["value"] is None:
            raise PerformanceError(f"{number['name']} is not available: {number['why']}")
        return number["value"]

    return value()
