"""Publishing: a store is always the old one or the new one, whatever happens to who writes it."""

import contextlib
import fcntl
import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pytest
from clirun import (
    CASES,
    DEMO,
    MARKUP,
    NS_UNIT,
    assert_fails,
    environment,
    fill,
    finish,
    inside,
    labels,
    listing,
    rows,
    send,
    shared,
    start,
    trace,
    traceq,
    wait_until,
    write_big_trace,
)
from recorded import slow

import traceq as api
from traceq.store.build import RUN_TABLES, SCHEMA_VERSION

RANKS = CASES / "hand-42-rank-missing-and-rank-twice"
HOLD = "import duckdb, sys; con = duckdb.connect(sys.argv[1]{}); print('held', flush=True); sys.stdin.read()"
LABELLED = {
    "trace_id": "SELECT trace_id, label FROM traces JOIN runs USING (run_id)",
    "run_id": "SELECT run_id, label FROM runs",
}


def contents(store):
    """Number of rows of every table by run label, read as any DuckDB client would."""
    with duckdb.connect(store, read_only=True) as con:
        tables = [t for (t,) in con.execute("SELECT table_name FROM duckdb_tables() ORDER BY ALL").fetchall()]
        found = {}
        for table in tables:
            if table in ("meta", "rules", "runs"):
                found[table] = con.execute(f"SELECT count(*) FROM {table}").fetchall()
            else:
                key = "run_id" if table in RUN_TABLES else "trace_id"
                found[table] = con.execute(
                    f"SELECT label, count(*) FROM {table} JOIN ({LABELLED[key]}) USING ({key}) GROUP BY 1 ORDER BY 1"
                ).fetchall()
                assert con.execute(
                    f"SELECT count(*) FROM {table} WHERE {key} NOT IN (SELECT {key} FROM ({LABELLED[key]}))"
                ).fetchall() == [(0,)]
    return found


def left_over(store):
    """What lies beside a store that begins with its name."""
    return sorted(p.name for p in store.parent.iterdir() if p.name.startswith(store.name) and p != store)


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    """A store with one run. Only for copying."""
    made = shared(tmp_path_factory, "old", lambda to: fill(to / "store.duckdb", (DEMO / "default.json.gz", "old")))
    return made / "store.duckdb"


@pytest.fixture(scope="module")
def big(tmp_path_factory, old):
    """A large trace, what the old store holds with it, and how many seconds that took."""

    def make(folder):
        path = write_big_trace(folder / "big.json", copies=1)
        store = shutil.copy(old, folder / "store.duckdb")
        started = time.monotonic()
        done = traceq("ingest", path, "--store", store, "--label", "new")
        assert done.status == 0, done
        (folder / "seconds").write_text(str(time.monotonic() - started))

    made = shared(tmp_path_factory, "big", make)
    return made / "big.json", contents(made / "store.duckdb"), float((made / "seconds").read_text())


@pytest.fixture
def store(tmp_path, old):
    """A private copy of the old store."""
    return Path(shutil.copy(old, tmp_path / "store.duckdb"))


def test_the_same_file_twice_is_one_trace(store):
    first = rows(store, "ingest", DEMO / "eager.json.gz", "--label", "eager")
    before, digest = contents(store), store.read_bytes()
    again = rows(store, "ingest", DEMO / "eager.json.gz", "--label", "another")
    assert [(r["result"], r["run"]) for r in first + again] == [("ingested", "eager"), ("known", "eager")]
    assert contents(store) == before
    assert store.read_bytes() == digest
    assert left_over(store) == []


def test_the_same_file_twice_in_one_command_is_one_trace(tmp_path):
    twin = tmp_path / "twin.json"
    shutil.copy(NS_UNIT, twin)
    store = tmp_path / "store.duckdb"
    found = rows(store, "ingest", NS_UNIT, twin, NS_UNIT, "--label", "one")
    assert [(r["result"], r["run"]) for r in found] == [("ingested", "one"), ("known", "one")]
    assert rows(store, "runs")[0]["traces"] == 1


def test_the_same_events_compressed_are_another_file(tmp_path):
    packed = tmp_path / "packed.json.gz"
    packed.write_bytes(gzip.compress(NS_UNIT.read_bytes()))
    found = rows(tmp_path / "store.duckdb", "ingest", NS_UNIT, packed, "--label", "one")
    assert [(r["result"], r["run"]) for r in found] == [("ingested", "one"), ("ingested", "one-2")]


OFTEN = [pytest.param(part, marks=slow) for part in (0.2, 0.5, 0.7, 0.9)]  # of the time that it takes
MOMENTS = [0.35, 0.6, 0.8, *OFTEN, "scratch folder", "lock", "new store"]


def killed(store, path, moment, seconds):
    """Start an ingest and kill it at `moment`: a part of the time it takes, or when something appears."""
    process = start("ingest", path, "--store", store, "--label", "new", stdout=subprocess.DEVNULL)
    beside = {"scratch folder": ".scratch-*", "lock": ".lock", "new store": ".new"}
    if moment in beside:
        wait_until(lambda: list(store.parent.glob(store.name + beside[moment])), process)
    else:
        began = time.monotonic()
        wait_until(lambda: time.monotonic() - began > moment * seconds, process)
    send(process, signal.SIGKILL)
    finish(process)


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_killed_ingest_leaves_the_store_as_it_was(store, old, big, moment):
    path, with_new, seconds = big
    killed(store, path, moment, seconds)
    assert contents(store) in (contents(old), with_new)
    was_published = contents(store) == with_new
    assert was_published or store.read_bytes() == old.read_bytes()
    fill(store, (NS_UNIT, "next"))
    assert left_over(store) == []
    assert labels(store) == ["old", *(["new"] if was_published else []), "next"]


def test_a_killed_ingest_is_done_by_the_next(store, big):
    path, with_new, seconds = big
    killed(store, path, "new store", seconds)
    done = traceq("ingest", path, "--store", store, "--label", "new")
    assert done.status == 0, done
    assert contents(store) == with_new
    assert left_over(store) == []


def test_a_killed_first_ingest_leaves_no_store(tmp_path, big):
    path, _, seconds = big
    store = tmp_path / "store.duckdb"
    killed(store, path, "lock", seconds)
    assert not store.exists() or labels(store) == ["new"]
    done = traceq("ingest", path, "--store", store, "--label", "new")
    assert done.status == 0, done
    assert labels(store) == ["new"]
    assert left_over(store) == []


def litter(store, with_lock=True, age_s=0):
    """What an ingest that was killed some time ago leaves beside a store."""
    folder = store.with_name(f"{store.name}.scratch-abandoned")
    folder.mkdir()
    (folder / "0.duckdb").write_bytes(b"x" * 1000)
    if with_lock:
        (folder / "lock").touch()
    for path in (folder, *folder.iterdir()):
        os.utime(path, (time.time() - age_s,) * 2)
    for end in (".new", ".new.wal"):
        store.with_name(store.name + end).write_bytes(b"x" * 1000)
    store.with_name(f"{store.name}.lock").write_text("process 4194305")


@pytest.mark.parametrize(
    ("name", "path", "how"),
    [
        ("store.duckdb", MARKUP, {}),
        ("it's a store [1] *.duckdb", MARKUP, {}),
        ("store.duckdb", DEMO / "default.json.gz", {}),
        ("store.duckdb", MARKUP, {"with_lock": False, "age_s": 86400}),
    ],
    ids=["new file", "odd name of the store", "known file", "killed before it made its lock"],
)
def test_the_next_ingest_removes_left_over_files(tmp_path, old, name, path, how):
    store = Path(shutil.copy(old, tmp_path / name))
    litter(store, **how)
    done = inside("ingest", path, "--store", store)
    assert done.status == 0, done
    assert left_over(store) == []


def test_any_name_will_do_for_a_store(tmp_path):
    store = tmp_path / "what & 'why' [1] %20.duckdb"
    for path in (NS_UNIT, MARKUP):
        done = inside("ingest", path, "--store", store)
        assert done.status == 0, done
    assert len(labels(store)) == 2
    assert left_over(store) == []


def test_a_name_that_duckdb_cannot_open_is_refused(tmp_path):
    done = inside("ingest", NS_UNIT, "--store", tmp_path / "wh?t.duckdb")
    assert (done.status, done.out) == (4, "")
    assert "has no ?" in done.err
    assert list(tmp_path.iterdir()) == []


def test_left_over_files_of_another_store_stay(tmp_path, old):
    store = Path(shutil.copy(old, tmp_path / "a.duckdb"))
    other = tmp_path / "a.duckdb2"
    litter(other)
    before = listing(tmp_path)
    done = inside("ingest", MARKUP, "--store", store)
    assert done.status == 0, done
    assert {n: s for n, s in listing(tmp_path).items() if n != store.name} == {
        n: s for n, s in before.items() if n != store.name
    }


def test_a_reader_neither_blocks_an_ingest_nor_sees_it(store):
    with api.open(store) as reader:
        assert reader.query("runs")["run"].to_list() == ["old"]
        done = traceq("ingest", MARKUP, "--store", store, "--label", "new")
        assert done.status == 0, done
        assert reader.query("runs")["run"].to_list() == ["old"]
        assert reader.query("top_kernels", run="old").height > 0
    assert labels(store) == ["old", "new"]


def test_a_reader_of_another_process_does_not_block_an_ingest(store):
    with holding(store, ", read_only=True"):
        done = traceq("ingest", MARKUP, "--store", store, "--label", "new")
        assert done.status == 0, done
    assert labels(store) == ["old", "new"]


class holding:  # noqa: N801
    """Another process that has the store open, for as long as the block lasts."""

    def __init__(self, store, how=""):
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOLD.format(how), str(store)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment(),
        )  # fmt: skip

    def __enter__(self):
        assert self.process.stdout.readline() == "held\n"
        return self.process.pid

    def __exit__(self, *_):
        self.process.communicate("")


def test_a_store_that_another_holds_for_writing(store, old):
    with holding(store) as pid:
        for argv in (["runs"], ["query", "summary"], ["sql", "SELECT 1"], ["ingest", MARKUP]):
            assert_fails(
                traceq(*argv, "--store", store), 4, rf"store\.duckdb: held for writing by process {pid}\nhint: "
            )
    assert store.read_bytes() == old.read_bytes()
    assert left_over(store) == []
    assert labels(store) == ["old"]


def test_two_ingests_at_once_both_come_in(store):
    both = [start("ingest", DEMO / "eager.json.gz", "--store", store, "--label", "first"),
            start("ingest", MARKUP, "--store", store, "--label", "second")]  # fmt: skip
    for done in map(finish, both):
        assert done.status == 0, done
    assert sorted(labels(store)) == ["first", "old", "second"]
    assert left_over(store) == []


def test_two_first_ingests_at_once_both_come_in(tmp_path):
    store = tmp_path / "store.duckdb"
    both = [
        start("ingest", path, "--store", store, "--label", label) for path, label in ((MARKUP, "a"), (NS_UNIT, "b"))
    ]
    for done in map(finish, both):
        assert done.status == 0, done
    assert sorted(labels(store)) == ["a", "b"]
    assert left_over(store) == []


def test_the_same_file_in_two_ingests_at_once_is_one_trace(store):
    both = [start("ingest", MARKUP, "--store", store, "--json") for _ in range(2)]
    found = [json.loads(done.out)["rows"][0] for done in map(finish, both)]
    assert sorted(r["result"] for r in found) == ["ingested", "known"]
    assert len({r["run"] for r in found}) == 1
    assert labels(store) == ["old", "input"]


def has_open(process, path):
    """Whether the process has that file open at this moment."""
    for entry in Path(f"/proc/{process.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            if os.readlink(entry) == str(path):
                return True
    return False


def test_an_ingest_waits_for_the_lock(store):
    lock = store.with_name(f"{store.name}.lock")
    with open(lock, "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        process = start("ingest", MARKUP, "--store", store, "--label", "new")
        assert wait_until(lambda: has_open(process, lock), process)
        assert labels(store) == ["old"]
        assert process.poll() is None
    done = finish(process)
    assert done.status == 0, done
    assert labels(store) == ["old", "new"]
    assert left_over(store) == []


def test_the_storage_format_is_the_one_of_duckdb_1_5(store):
    assert inside("ingest", MARKUP, "--store", store).status == 0
    with duckdb.connect(store, read_only=True) as con:
        tags = con.execute("SELECT tags FROM duckdb_databases() WHERE NOT internal").fetchall()
        versions = dict(con.execute("FROM meta").fetchall())
    assert [tag["storage_version"] for (tag,) in tags] == ["v1.5.0+"]
    assert versions == {
        "schema_version": str(SCHEMA_VERSION),
        "traceq_version": api.__version__,
        "duckdb_version": duckdb.__version__,
    }


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written(store):
    store.parent.chmod(0o500)
    try:
        assert_fails(traceq("ingest", MARKUP, "--store", store), 4, "cannot write there")
        assert labels(store) == ["old"]
    finally:
        store.parent.chmod(0o700)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
def test_a_folder_where_nobody_may_write():
    assert_fails(
        inside("ingest", MARKUP, "--store", "/proc/store.duckdb"), 4, r"^traceq: error: /proc: cannot write there"
    )


def test_a_folder_that_does_not_exist(tmp_path):
    assert_fails(inside("ingest", MARKUP, "--store", tmp_path / "no" / "s.duckdb"), 4, "no: cannot write there")


def test_a_link_to_a_store_stays_a_link(tmp_path, old):
    (tmp_path / "disk").mkdir()
    target = Path(shutil.copy(old, tmp_path / "disk" / "store.duckdb"))
    link = tmp_path / "link.duckdb"
    link.symlink_to(target)
    done = inside("ingest", MARKUP, "--store", link, "--label", "new")
    assert done.status == 0, done
    assert labels(link) == ["old", "new"]
    assert link.is_symlink()
    assert labels(target) == ["old", "new"]


def test_the_mode_of_a_store_stays(store):
    store.chmod(0o640)
    assert inside("ingest", MARKUP, "--store", store).status == 0
    assert store.stat().st_mode & 0o777 == 0o640


def test_two_files_of_one_rank_are_kept_apart(tmp_path):
    store = tmp_path / "store.duckdb"
    done = inside("ingest", RANKS / "input-rank3.json", RANKS / "input-rank3-again.json", "--store", store)
    assert done.status == 0, done
    assert "rank 3" in done.err
    assert "input-rank3.json" in done.err
    assert "input-rank3-again.json" in done.err
    assert [(r["run"], r["traces"], r["kernel_ns"]) for r in rows(store, "runs")] == [
        (RANKS.name, 1, 20_000),
        (f"{RANKS.name}-2", 1, 30_000),
    ]


def rank(number, at_us=100.0, size=2):
    """The text of a trace that says it is one of `size` ranks."""
    whole = json.loads(trace([f"kernel_{number}"], at_us))
    return json.dumps({**whole, "distributedInfo": {"backend": "nccl", "rank": number, "world_size": size}})


def test_ranks_form_a_run_in_one_command_or_in_two(tmp_path):
    store = tmp_path / "store.duckdb"
    job = tmp_path / "job"
    job.mkdir()
    for number in range(2):
        (job / f"rank{number}.json").write_text(rank(number))
        assert inside("ingest", job, "--store", store).status == 0
    found = rows(
        store, "sql", "SELECT r.label, t.rank, t.world_size FROM traces AS t JOIN runs AS r USING (run_id) ORDER BY ALL"
    )
    assert found == [{"label": "job", "rank": n, "world_size": 2} for n in range(2)]
    (job / "rank1.json").write_text(rank(1, at_us=7.0))
    found = rows(store, "ingest", job / "rank1.json")
    assert found[0]["run"] == "job-2"
    assert labels(store) == ["job", "job-2"]


def test_a_label_that_is_taken_gets_a_number(store):
    for number, text in enumerate([trace(["a"]), trace(["b"]), trace(["c"])], 2):
        path = store.with_name(f"{number}.json")
        path.write_text(text)
        done = inside("ingest", path, "--store", store, "--label", "old")
        assert done.status == 0, done
        assert f"'old-{number}'" in done.err
    assert labels(store) == ["old", "old-2", "old-3", "old-4"]


def step_ns(store):
    return {row["run"]: row["step_ns"] for row in rows(store, "runs")}


def test_the_step_time_is_kept_and_can_be_said_later(tmp_path):
    store = tmp_path / "store.duckdb"
    assert inside("ingest", NS_UNIT, "--store", store, "--label", "a", "--step", "12.3ms").status == 0
    assert inside("ingest", MARKUP, "--store", store, "--label", "b").status == 0
    assert step_ns(store) == {"a": 12_300_000, "b": None}
    found = rows(store, "ingest", MARKUP, "--step", "0.5ms")
    assert [(r["result"], r["run"]) for r in found] == [("known", "b")]
    assert step_ns(store) == {"a": 12_300_000, "b": 500_000}
    assert inside("ingest", NS_UNIT, "--store", store, "--step", "7us").status == 0
    assert inside("ingest", NS_UNIT, "--store", store).status == 0
    assert step_ns(store) == {"a": 7000, "b": 500_000}
    assert left_over(store) == []
