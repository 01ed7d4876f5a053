"""The time of a dispatch by the clock of the host: it begins after the uploads, and ends with the last command."""

from types import SimpleNamespace
from unittest.mock import MagicMock

from bankshot.oracle.wgpu_worker import device_dispatch
from bankshot.oracle.wgpu_worker.device_dispatch import Made


def test_only_the_dispatch_is_timed(monkeypatch):
    done, now = [], iter((10.0, 12.5))
    monkeypatch.setattr(device_dispatch, "wait", lambda device: done.append("wait"))
    monkeypatch.setattr(device_dispatch.time, "perf_counter", lambda: done.append("clock") or next(now))
    device = MagicMock(queue=SimpleNamespace(submit=lambda commands: done.append("submit")))
    assert device_dispatch._run(device, Made(None, [None, None], (2, 3, 4), []), None) == 2.5
    assert done == ["wait", "clock", "submit", "wait", "clock"]
    compute = device.create_command_encoder().begin_compute_pass()
    assert [call.args for call in compute.set_bind_group.call_args_list] == [(0, None), (1, None)]
    compute.dispatch_workgroups.assert_called_once_with(2, 3, 4)
    compute.end.assert_called_once_with()
