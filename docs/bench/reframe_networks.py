"""The three networks as tests of ReFrame: reframe -c docs/bench/reframe_networks.py -r --performance-report"""
import os

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import parameter, run_before, sanity_function

from ebpfprof.reframe import Profiled


@rfm.simple_test
class Network(rfm.RunOnlyRegressionTest, Profiled):
    network = parameter(["resnet", "segmentation", "volume"])
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    sourcesdir = os.path.dirname(os.path.abspath(__file__))
    executable = os.environ.get("PYTHON", "python3")
    reference = {"*": {"loss": (1.0, -1.0, 1.0, "")}}

    @run_before("run")
    def train(self):
        self.prerun_cmds = [f"{self.executable} networks.py prepare samples"]
        self.executable_opts = ["networks.py", self.network, "samples"]

    @sanity_function
    def trained(self):
        return sn.assert_found(r"^epoch 2 loss", self.stdout)
