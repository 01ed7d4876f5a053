"""What a user's type checker sees of the public interface."""

import numpy as np

import bankshot
from bankshot.oracle.audit import Options
from bankshot.oracle.sweep import Row, sweep
from bankshot.testing import Bankshot, MeasuredRun


def excess(run: bankshot.Run) -> int:
    total = 0
    for site in run.sites:
        total += site.shared_wavefronts - site.shared_ideal_wavefronts
    for finding in run.findings:
        print(finding.code, finding.severity, finding.message)
    return total


def test_kernel(bankshot: Bankshot) -> None:
    measured: MeasuredRun = bankshot.run("k.wgsl", grid=1)
    print(measured)


def rows() -> list[Row]:
    return list(sweep([]))


module: bankshot.Module = bankshot.check("")
result: bankshot.Run = bankshot.simulate(
    module, grid=(1, 1, 1), bindings={"y": np.zeros(4, np.float32)}, device=bankshot.devices.NVIDIA, probes=["races"]
)
sites: list[bankshot.Site] = result.sites
print(bankshot.__version__, excess(result), sites, rows(), Options())
try:
    bankshot.portability(module)
except (bankshot.WgslError, bankshot.UsageError, bankshot.Crash) as error:
    print(error)
