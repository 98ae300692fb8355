"""Children are isolated: whatever one does is a verdict on it, and nothing of it stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fuzzer.campaign import processes
from fuzzer.campaign.protocol import Generate, Reply, RunCase, Settings
from fuzzer.campaign.worker import Lane, Pool
from fuzzer.program import Case, FuzzerError
from fuzzer.verdict import Kind, Outcome, Stage
from tests.campaign.programs import HONEST, WRONG, misbehaving


def run(pool: Pool, case: Case) -> Reply:
    (reply,) = pool.run([RunCase(case=case)])
    return reply


def eventually(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return condition()


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_an_honest_program_passes_and_tells_its_seconds(pool: Pool) -> None:
    reply = run(pool, Case(source=HONEST))
    assert reply.verdict.outcome is Outcome.PASS
    assert {"eager", "reference", "inductor", "judge"} <= dict(reply.verdict.seconds).keys()
    assert reply.peak > 0


@pytest.mark.sim
@pytest.mark.slow
@pytest.mark.parametrize("backend", ["triton_experimental", "default"])
def test_each_backend_of_torch_npu_runs_in_forked_children(backend: str) -> None:
    with Pool(Settings(target="sim", backend=backend), workers=1) as pool:
        assert run(pool, Case(source=HONEST)).verdict.outcome is Outcome.PASS


def test_a_program_that_compiles_to_something_else_is_a_wrong_result(pool: Pool) -> None:
    verdict = run(pool, Case(source=WRONG)).verdict
    assert verdict.signature is not None
    assert (verdict.signature.kind, verdict.signature.stage) == (Kind.WRONG_RESULT, Stage.JUDGE)


def test_a_child_that_dies_of_a_signal_is_a_crash_with_its_traceback(pool: Pool) -> None:
    verdict = run(pool, misbehaving("os.kill(os.getpid(), signal.SIGSEGV)")).verdict
    assert verdict.signature is not None
    assert (verdict.signature.kind, verdict.signature.origin) == (Kind.CRASH, "SIGSEGV")
    assert any("in misbehave" in line for line in verdict.evidence)


def test_a_child_that_exits_is_a_crash(pool: Pool) -> None:
    verdict = run(pool, misbehaving("os._exit(3)")).verdict
    assert verdict.signature is not None
    assert (verdict.signature.kind, verdict.signature.origin) == (Kind.CRASH, "exit-3")


def test_a_child_that_dies_in_eager_mode_is_lost(pool: Pool) -> None:
    verdict = run(
        pool, Case(source=HONEST.replace("return x.sum(0)", "__import__('os').abort(); return x.sum(0)"))
    ).verdict
    assert verdict.outcome is Outcome.LOST
    assert verdict.evidence[0] == "the process died of SIGABRT"


def test_an_internal_error_is_lost_with_its_traceback(pool: Pool) -> None:
    verdict = run(pool, misbehaving("sys.exit(4)")).verdict
    assert verdict.outcome is Outcome.LOST
    assert any("SystemExit" in line for line in verdict.evidence)


def test_a_child_that_hangs_is_killed_and_says_where_it_was(pool: Pool) -> None:
    reply = run(pool, misbehaving("time.sleep(1000)"))
    assert reply.verdict.signature is not None
    assert (reply.verdict.signature.kind, reply.verdict.signature.origin) == (Kind.HANG, "timeout")
    assert any("in misbehave" in line for line in reply.verdict.evidence)
    assert reply.seconds < pool.settings.timeout + 5.0


def test_a_child_that_eats_memory_is_killed(pool: Pool) -> None:
    reply = run(pool, misbehaving("eaten = [b'x' * (1 << 24) for _ in range(1000) if not time.sleep(0.01)]"))
    assert reply.verdict.signature is not None
    assert (reply.verdict.signature.kind, reply.verdict.signature.origin) == (Kind.CRASH, "memory-limit")
    assert reply.peak > pool.settings.memory


def test_what_a_child_prints_is_kept_in_bounds(pool: Pool) -> None:
    reply = run(pool, misbehaving("[os.write(1, b'y' * (1 << 20)) for _ in range(64)]; print('the end', flush=True)"))
    assert reply.verdict.outcome is Outcome.PASS
    assert len(reply.output) < 32 << 10
    assert "bytes left out" in reply.output
    assert "the end" in reply.output


def test_a_text_that_is_no_program_is_an_error_that_says_why(pool: Pool) -> None:
    with pytest.raises(FuzzerError, match="inputs"):
        run(pool, Case(source="def program(x): return x\n"))


def test_what_a_child_starts_ends_with_it_and_leaves_no_zombie(pool: Pool) -> None:
    run(pool, Case(source=HONEST))
    (server,) = [server for server in pool.servers if server.settings == pool.settings]
    reply = run(pool, misbehaving("os.system('sleep 997 & setsid sleep 998 & true')"))
    assert reply.verdict.outcome is Outcome.PASS
    assert processes.children(server.pid) == ()
    commands = [Path(f"/proc/{pid}/cmdline") for pid in os.listdir("/proc") if pid.isdigit()]
    assert not [path for path in commands if path.exists() and b"sleep\x0099" in path.read_bytes()]


def test_the_same_program_gives_the_same_verdict_whatever_ran_before(pool: Pool) -> None:
    jobs = [Generate(seed=11, index=index) for index in range(3)]
    forward = pool.run(jobs)
    backward = pool.run(jobs[::-1])[::-1]
    assert [reply.case for reply in forward] == [reply.case for reply in backward]
    assert [reply.verdict for reply in forward] == [reply.verdict for reply in backward]


def test_a_fork_server_that_dies_is_replaced_and_its_job_run_again(pool: Pool) -> None:
    run(pool, Case(source=HONEST))
    (server,) = [server for server in pool.servers if server.settings == pool.settings]
    future = pool.submit(RunCase(case=misbehaving("time.sleep(2)")))
    assert eventually(lambda: len(processes.children(server.pid)) > 0)
    (child,) = processes.children(server.pid)
    os.kill(server.pid, signal.SIGKILL)
    assert future.result().verdict.outcome is Outcome.PASS
    assert eventually(lambda: not is_running(child))


def test_a_platform_that_cannot_be_prepared_fails_every_job_with_its_reason() -> None:
    with Pool(Settings(target="nowhere"), workers=1) as pool:
        futures = [pool.submit(RunCase(case=Case(source=HONEST))) for _ in range(3)]
        for future in futures:
            with pytest.raises(FuzzerError, match="nowhere"):
                future.result()


def test_closing_a_pool_cancels_what_waits_and_ends_what_runs(pool: Pool) -> None:
    own = Pool(Settings(target="cpu"), workers=1)
    futures = [own.submit(RunCase(case=misbehaving("time.sleep(1000)"))) for _ in range(3)]
    (server,) = own.servers
    own.close()
    assert all(future.done() for future in futures)
    assert not is_running(server.pid)
    assert own.submit(RunCase(case=Case(source=HONEST))).cancelled()


def test_examining_gets_its_share_of_the_workers_and_no_more(pool: Pool) -> None:
    order: list[Lane] = []
    futures = [
        pool.submit(RunCase(case=Case(source=HONEST)), lane=lane) for lane in (*[Lane.EXPLORE] * 5, *[Lane.SHRINK] * 5)
    ]
    for lane, future in zip((*[Lane.EXPLORE] * 5, *[Lane.SHRINK] * 5), futures, strict=True):
        future.add_done_callback(lambda _, lane=lane: order.append(lane))  # type: ignore[misc]
    for future in futures:
        future.result()
    first = order[:6]
    assert first.count(Lane.EXPLORE) >= 2
    assert first.count(Lane.SHRINK) >= 1


ORPHAN = """
import sys, time
from fuzzer.campaign.protocol import RunCase, Settings
from fuzzer.campaign.worker import Pool
from tests.campaign.programs import misbehaving
pool = Pool(Settings(target="cpu"), workers=1)
pool.submit(RunCase(case=misbehaving("time.sleep(1000)")))
print(pool.servers[0].pid, "torch" in sys.modules, flush=True)
time.sleep(1000)
"""


def test_everything_ends_when_the_campaign_is_killed_and_it_never_imported_torch() -> None:
    campaign = subprocess.Popen([sys.executable, "-c", ORPHAN], stdout=subprocess.PIPE, text=True)
    assert campaign.stdout is not None
    pid, imported_torch = campaign.stdout.readline().split()
    server = int(pid)
    assert imported_torch == "False"
    assert eventually(lambda: len(processes.children(server)) > 0, 120.0)
    family = tuple(processes.family(server))
    campaign.kill()
    campaign.wait()
    campaign.stdout.close()
    assert eventually(lambda: not any(is_running(member) for member in family), 60.0)
