"""Exports of Nsight Systems: what every row becomes, whatever is missing, and nothing that is private."""

import csv
import importlib.util
import re
import shutil
import sqlite3
import sys
from collections import Counter
from contextlib import closing

import duckdb
import pytest
from cases import Case
from clirun import ROOT, environment, traceq
from exports import CATEGORY, DOMAIN, MARK, START_END, THREAD, Export, gpid, gtid
from recorded import stored

from traceq.ingest.pipeline import Options, ingest

REAL = ROOT / "fixtures" / "nsys"
SHARED = ROOT.parent / "shared"
EXPORTS = {
    **{p.stem: p for p in sorted((SHARED / "data" / "nsys-h200").glob("*.sqlite"))},
    **{p.stem: p for p in sorted((SHARED / "data" / "public" / "nsys-ai").glob("mfu*.sqlite"))},
}
needs_shared = pytest.mark.skipif(not EXPORTS, reason="the shared exports are not here")


def export():
    """Two steps of one process, two launches in each."""
    made = Export().version()
    for n, at in enumerate((1000, 2000, 11000, 12000), 1):
        made.launched("gemm", at, n)
    for n in range(2):
        made.nvtx(f"step{n}", n * 10000 + 500, n * 10000 + 9000)
    return made


@pytest.fixture
def opened(tmp_path):
    """A function that ingests an export and gives its `Case`; the last one is closed at the end."""
    cases = []

    def make(made, name="x.sqlite", **options):
        path = made.write(tmp_path / name) if isinstance(made, Export) else made
        cases.append(Case([path], tmp_path / f"{len(cases)}.duckdb", Options(**options)))
        return cases[-1]

    yield make
    for case in cases:
        case.__exit__()


def refused(path):
    """The message and the hint for a file that cannot be read."""
    (outcome,), _ = ingest([str(path)], path.parent / "refused.duckdb", Options())
    assert outcome.result == "failed"
    assert outcome.error.status == 3
    assert "\n" not in outcome.error.message
    return f"{outcome.error.message}\n{outcome.error.hint}"


# What rows become -----------------------------------------------------------------------------------------------------


def test_kernels_calls_and_steps(opened):
    case = opened(export())
    assert case.column("SELECT latency_ns FROM launches ORDER BY start_ns") == [100] * 4
    assert case.column("SELECT name || ' ' || kernels FROM steps ORDER BY step") == ["step0 2", "step1 2"]
    assert case.column("SELECT kind FROM ranges ORDER BY range_id") == ["push_pop"] * 2
    assert case.column("SELECT format FROM traces") == ["nsys"]
    assert case.outcomes[0].run == "x"


def test_any_table_may_be_missing(opened):
    whole = export().copy(3000, 3100, 9)
    for table in whole.tables:
        made = export().copy(3000, 3100, 9)
        if table != "StringIds":
            del made.tables[table]
        case = opened(made)
        for query in ("summary", "trust", "steps", "launch_gaps", "event_counts"):
            case.ask(query)
        assert case.outcomes[0].result == "ingested"


def test_any_column_may_be_missing_and_is_named_where_it_matters(opened):
    for table in ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"):
        for column in export().columns(table):
            made = export()
            for row in made.tables[table]:
                del row[column]
            case = opened(made)
            if column not in ("contextId", "shortName", "returnValue", "text"):
                assert re.search(rf"{table} has no column {column} \(schema 3.7.2\)", "\n".join(case.notes))


def test_a_kernel_table_without_correlation_still_counts(opened):
    made = export()
    for row in made.tables["CUPTI_ACTIVITY_KIND_KERNEL"]:
        del row["correlationId"]
    case = opened(made)
    assert case.one("SELECT count(*) FROM kernels WHERE launch_id IS NULL") == 4
    assert case.one("SELECT sum(dur_ns)::BIGINT FROM gpu_busy") == 200


@pytest.mark.parametrize("tables", [["NVTX_EVENTS_V3"], ["NVTX_EVENTS", "NVTX_EVENTS_V2"]])
def test_a_table_with_a_version_suffix(opened, tables):
    made = export()
    rows = made.tables.pop("NVTX_EVENTS")
    for table in tables:
        made.tables[table] = []
    made.tables[tables[-1]] = rows
    if len(tables) > 1:
        made.tables[tables[0]] = [{"start": None, "end": None}][:0]
    assert opened(made).one("SELECT count(*) FROM steps") == 2


def test_processes_have_correlation_ids_of_their_own(opened):
    made = Export()
    for pid, device in ((100, 0), (200, 1)):
        for corr in (1, 2):
            made.launched("k", corr * 1000 + pid, corr, pid=pid, device=device)
    case = opened(made)
    assert case.column("SELECT latency_ns FROM launches") == [100] * 4
    assert case.column("SELECT pid FROM processes") == [str(gpid(100)), str(gpid(200))]
    assert case.column("SELECT os_pid FROM processes") == [100, 200]
    assert case.one("SELECT bool_and(a.pid = c.pid) FROM gpu_activities a JOIN api_calls c ON c.call_id = a.launch_id")


def test_the_physical_gpu_is_the_device(opened):
    made = Export()
    for pid, gpu in ((100, 3), (200, 5)):
        made.launched("k", pid * 10, 1, pid=pid, device=0)
        made.put("TARGET_INFO_CUDA_DEVICE", gpuId=gpu, cudaId=0, pid=pid)
    for gpu in range(8):
        made.put(
            "TARGET_INFO_GPU",
            vmId=1 << 48,
            id=gpu,
            name="GPU",
            uuid=f"u{gpu}",
            smCount=132,
            memoryBandwidth=48 * 10**11,
        )
    case = opened(made)
    assert case.column("SELECT device FROM kernels ORDER BY start_ns") == [3, 5]
    assert case.con.execute("SELECT device, uuid, sm_count, peak_bytes_per_s FROM devices").fetchall() == [
        (3, "u3", 132, 48 * 10**11),
        (5, "u5", 132, 48 * 10**11),
    ]
    assert case.con.execute("SELECT ordinal, device FROM device_ordinals ORDER BY ALL").fetchall() == [(0, 3), (0, 5)]
    assert case.notes == [n for n in case.notes if "same" not in n]


def test_two_processes_on_gpu_0_that_may_be_two_are_told(opened):
    made = Export().launched("k", 1000, 1, pid=100).launched("k", 2000, 1, pid=200)
    assert any("2 processes use a GPU of the same number" in note for note in opened(made).notes)


def test_a_process_that_is_listed_twice_and_where_it_lies(opened):
    made = export()
    for name in ("nsys-launcher", "/home/somebody/bin/python3"):
        made.put("PROCESSES", globalPid=gpid(100), pid=100, name=name)
    made.put("PROCESSES", globalPid=gpid(1), pid=1, name="init")
    made.put("ThreadNames", nameId=made.text("worker"), priority=0, globalTid=gtid(100, 101))
    made.put("ThreadNames", nameId=made.text("other"), priority=0, globalTid=gtid(1))
    case = opened(made)
    assert case.one("SELECT count(*) FROM kernels") == 4
    assert case.con.execute("SELECT os_pid, name FROM processes").fetchall() == [(100, "python3")]
    assert case.con.execute("SELECT tid, name FROM threads").fetchall() == [("101", "worker")]


def test_unified_memory_rows_link_to_nothing(opened):
    made = export()
    made.call("cudaDeviceSynchronize", 20000, 20010, 0)
    row = {
        "start": 30000,
        "end": 31000,
        "deviceId": 0,
        "contextId": 0,
        "streamId": 0,
        "correlationId": 0,
        "bytes": 65536,
    }
    made.put(
        "CUPTI_ACTIVITY_KIND_MEMCPY", **row, globalPid=gpid(100), copyKind=11, srcKind=7, dstKind=7, migrationCause=2
    )
    case = opened(made)
    assert case.con.execute(
        "SELECT name, launch_id, stream, copy_kind, src_kind, details->>'$.unified' FROM memops"
    ).fetchall() == [("Memcpy HtoD (Unified)", None, None, "HtoD", None, "true")]


def test_copies_and_memsets_are_called_as_kineto_calls_them(opened):
    made = export().copy(3000, 3100, 9, srcKind=0, dstKind=2).copy(4000, 4100, 8, kind=77)
    made.gpu("CUPTI_ACTIVITY_KIND_MEMSET", 5000, 5010, 7, bytes=64, value=255, memKind=2)
    assert opened(made).column("SELECT name FROM memops ORDER BY start_ns") == [
        "Memcpy HtoD (Pageable -> Device)",
        "Memcpy [kind 77]",
        "Memset (Device)",
    ]


def test_a_graph_in_node_mode_starts_many_kernels(opened):
    made = Export().call("cudaGraphLaunch_v10000", 1000, 1100, 1)
    for n in range(3):
        made.kernel("k", 2000 + n * 100, 2050 + n * 100, 1, graphNodeId=n + 5)
    case = opened(made)
    assert case.one("SELECT count(DISTINCT launch_id) FROM kernels") == 1
    assert case.column("SELECT graph_node_id FROM kernels ORDER BY start_ns") == [5, 6, 7]
    assert case.one("SELECT sum(dur_ns)::BIGINT FROM gpu_busy") == 150


def test_a_graph_that_was_recorded_as_a_whole_is_busy(opened):
    made = Export().call("cudaGraphLaunch_v10000", 1000, 1100, 1).launched("k", 5000, 2)
    made.gpu("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", 2000, 2400, 1, graphId=4, graphExecId=6)
    case = opened(made)
    assert case.con.execute(
        "SELECT kind, name, graph_exec_id, category FROM gpu_activities ORDER BY start_ns"
    ).fetchall() == [
        ("graph", "CUDA graph 4", 6, None),
        ("kernel", "k", None, "other"),
    ]
    assert case.one("SELECT sum(dur_ns)::BIGINT FROM gpu_busy") == 450
    assert any("kernels are not visible" in n and "--cuda-graph-trace=node" in n for n in case.notes)


def test_a_graph_without_any_row_makes_busy_unknown(opened):
    made = export().call("cudaGraphLaunch_v10000", 1000, 1100, 77)
    case = opened(made)
    assert case.query("summary")[0]["busy_ns"] is None
    assert any("replays were not recorded" in n and "--cuda-graph-trace=node" in n for n in case.notes)


def test_nvtx_in_all_its_forms(opened):
    made = Export().launched("k", 100, 1)
    made.nvtx("NCCL", 0, None, DOMAIN, domainId=3)
    made.nvtx("io", 0, None, CATEGORY, category=9, domainId=3)
    made.nvtx("renamed", 0, None, THREAD)
    made.nvtx(None, 1000, 2000, textId=made.text("registered"), domainId=3, category=9, int64Value=42)
    made.nvtx("open", 3000, None)
    made.nvtx("over there", 4000, 6000, START_END, endGlobalTid=gtid(100, 101))
    made.nvtx("now", 5000, None, MARK)
    made.nvtx(None, 7000, 8000, textId=4711)
    case = opened(made)
    found = case.con.execute(
        "SELECT kind, name, domain, category, payload, tid, end_tid, dur_ns FROM ranges ORDER BY start_ns"
    ).fetchall()
    assert found == [
        ("push_pop", "registered", "NCCL", "io", "42", "100", None, 1000),
        ("push_pop", "open", None, None, None, "100", None, None),
        ("start_end", "over there", None, None, None, "100", "101", 2000),
        ("mark", "now", None, None, None, "100", None, None),
        ("push_pop", "[name 4711]", None, None, None, "100", None, 1000),
    ]
    assert case.column("SELECT name FROM threads") == ["renamed"]
    assert case.column("SELECT skipped FROM event_counts WHERE stored_in IS NULL") == [3]


OPS = {
    "aten::mm, seq = 12, op_id = 345, sizes = [[2, 3], [3, 4]], input_op_ids = [(1,0)]": (
        "aten::mm",
        12,
        345,
        "[[2, 3], [3, 4]]",
    ),
    "aten::mm, seq = 12, sizes = [[2, 3], []]": ("aten::mm", 12, None, "[[2, 3], []]"),
    "aten::view, op_id = 7": ("aten::view", None, 7, None),
    "autograd::engine::evaluate_function: MmBackward0, op_id = 8": (
        "autograd::engine::evaluate_function: MmBackward0",
        None,
        8,
        None,
    ),
    "MmBackward0, seq = 3, op_id = 9": ("MmBackward0", 3, 9, None),
    "aten::add": ("aten::add", None, None, None),
}
RANGES = {
    "step 0, op_id = 55": "step 0",
    "ProfilerStep#3, op_id = 1": "ProfilerStep#3",
    "Optimizer.step#Adam.step, op_id = 2": "Optimizer.step#Adam.step",
    "load, then sizes = big": "load, then sizes = big",
    "Model::forward": "Model::forward",
}


@pytest.mark.parametrize("text", OPS)
def test_emit_nvtx_ranges_become_ops(opened, text):
    case = opened(Export().nvtx(text, 1000, 2000))
    assert case.con.execute("SELECT name, sequence, external_id, input_dims::VARCHAR FROM ops").fetchall() == [
        OPS[text]
    ]


@pytest.mark.parametrize("text", RANGES)
def test_what_a_user_annotates_stays_a_range(opened, text):
    assert opened(Export().nvtx(text, 1000, 2000)).column("SELECT name FROM ranges") == [RANGES[text]]


def test_steps_are_the_outermost_family_that_covers_most_launches(opened):
    made = export().nvtx("all", 0, 30000).nvtx("warm1", 0, 90).nvtx("warm2", 100, 190)
    for n in range(2):
        made.nvtx("forward", n * 10000 + 600, n * 10000 + 8000)
    made.call("cudaLaunchKernel", 12500, 12510, 50, tid=101)
    case = opened(made)
    assert case.column("SELECT name || ' ' || launches FROM steps ORDER BY start_ns") == ["step0 2", "step1 3"]
    assert opened(made, "y.sqlite", step_range="forw*").column("SELECT name FROM steps") == ["forward", "forward"]


def test_profiler_steps_go_before_other_ranges(opened):
    made = export()
    for n in range(2):
        made.nvtx(f"ProfilerStep#{n + 5}", n * 10000 + 600, n * 10000 + 8000)
    assert opened(made).column("SELECT step FROM steps ORDER BY step") == [5, 6]


def test_the_rest_of_the_tables(opened):
    made = export()
    name = made.text
    made.call("cudaStreamSynchronize_v3020", 15000, 15500, 40)
    made.gpu("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", 15100, 15400, 40, syncType=2)
    made.gpu("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", 15500, 15600, 0, stream=4294967295, syncType=4)
    made.put(
        "PROFILER_OVERHEAD", start=1, end=3, globalTid=gtid(100), nameId=name("CUDA profiling data flush overhead")
    )
    made.put("CUPTI_ACTIVITY_KIND_OVERHEAD", start=5, end=9, globalTid=gtid(100), correlationId=1, overheadType=7)
    made.put(
        "OSRT_API",
        start=50,
        end=90,
        eventClass=27,
        globalTid=gtid(100),
        nameId=name("poll"),
        returnValue=1,
        nestingLevel=0,
    )
    made.put("OSRT_API", start=50, end=50, eventClass=31, globalTid=0, nameId=name("marker"), returnValue=0)
    usage = {"globalPid": gpid(100), "deviceId": 0, "address": 4096, "memKind": 2}
    made.put("CUDA_GPU_MEMORY_USAGE_EVENTS", start=60, bytes=512, memoryOperationType=0, **usage)
    made.put("CUDA_GPU_MEMORY_USAGE_EVENTS", start=70, bytes=512, memoryOperationType=1, **usage)
    made.put("GPU_METRICS", timestamp=80, typeId=1, metricId=2, value=97)
    made.put("TARGET_INFO_GPU_METRICS", typeId=1, typeName="GPU 1", metricId=2, metricName="SM Active")
    made.put("SCHED_EVENTS", start=5, cpu=1, isSchedIn=1, globalTid=gtid(100))
    made.put("CUPTI_ACTIVITY_KIND_CUDA_EVENT", deviceId=0, eventId=1)
    made.put("TARGET_INFO_SESSION_START_TIME", utcEpochNs=1_700_000_000_000_000_000)
    case = opened(made)

    def rows(sql):
        return case.con.execute(sql).fetchall()

    assert rows("SELECT type, stream, pid FROM syncs ORDER BY start_ns") == [
        ("Stream Sync", 7, str(gpid(100))),
        ("Context Sync", None, str(gpid(100))),
    ]
    assert rows("SELECT type, dur_ns FROM overheads ORDER BY start_ns") == [
        ("CUDA profiling data flush overhead", 2),
        ("Lazy Function Loading", 4),
    ]
    assert rows("SELECT name, dur_ns, result, depth, tid FROM os_calls") == [("poll", 40, 1, 0, "100")]
    assert rows("SELECT name, bytes, device, device_type, addr FROM memory_events ORDER BY at_ns") == [
        ("alloc", 512, 0, 1, "4096"),
        ("free", -512, 0, 1, "4096"),
    ]
    assert rows("SELECT name, details->>'$.value', details->>'$.gpu' FROM counters") == [("SM Active", "97", "GPU 1")]
    assert rows("SELECT origin_ns FROM traces") == [(1_700_000_000_000_000_001,)]
    assert rows("SELECT category, skipped FROM event_counts WHERE skipped > 0 ORDER BY ALL") == [
        ("CUPTI_ACTIVITY_KIND_CUDA_EVENT", 1),
        ("OSRT_API", 1),
        ("SCHED_EVENTS", 1),
    ]


def test_times_that_are_epochs_already_are_not_shifted(opened):
    made = Export().launched("k", 1_700_000_000_000_000_000, 1)
    made.put("TARGET_INFO_SESSION_START_TIME", utcEpochNs=1_700_000_000_000_000_000)
    assert opened(made).one("SELECT origin_ns FROM traces") == 1_700_000_000_000_000_000


def test_the_order_of_rows_does_not_matter(opened):
    made = export()
    for n in range(5):
        made.kernel("same", 1100, 1150, 90 + n, stream=7 + n)
    names = "name, start_ns, activity_id, stream, launch_id"
    first = opened(made).con.execute(f"SELECT {names} FROM gpu_activities ORDER BY ALL").fetchall()
    for rows in made.tables.values():
        rows.reverse()
    assert opened(made, "y.sqlite").con.execute(f"SELECT {names} FROM gpu_activities ORDER BY ALL").fetchall() == first


ODD = {
    "text digits": ("3000", 3000),
    "real": (3000.0, 3000),
    "word": ("soon", None),
    "blob": (b"\x01\x02", None),
    "null": (None, None),
    "huge": (2**62 + 1, None),
    "infinite": (float("inf"), None),
}


@pytest.mark.parametrize("what", ODD)
def test_times_of_another_type(opened, what):
    value, right = ODD[what]
    case = opened(export().kernel("odd", value, 3500, None))
    assert case.column("SELECT start_ns + 500 FROM kernels WHERE name = 'odd'") == ([right] if right else [])
    assert case.one("SELECT sum(lost)::BIGINT FROM event_counts") == (0 if right else 1)


def test_indexes_and_sparse_row_numbers(opened, tmp_path):
    path = export().write(tmp_path / "x.sqlite")
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE INDEX StringIds_V2 ON StringIds (id)")
        db.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET rowid = -5 WHERE rowid = 2")
        db.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET rowid = 9223372036854775807 WHERE rowid = 3")
        db.execute("CREATE TABLE SCHED_EVENTS (start)")
        db.execute("INSERT INTO SCHED_EVENTS (rowid, start) VALUES (100, 1)")
        db.commit()
    case = opened(path)
    assert case.one("SELECT count(*) FROM kernels") == 4
    assert case.one("SELECT sum(skipped)::BIGINT FROM event_counts") == 1


def test_texts_of_any_bytes(opened, tmp_path):
    path = export().nvtx("plain", 1, 2).write(tmp_path / "x.sqlite")
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE NVTX_EVENTS SET text = CAST(x'61FF62' AS TEXT) WHERE text = 'plain'")
        db.execute("UPDATE StringIds SET value = 'a\"b\\c\n\u2028é' WHERE value = 'gemm'")
        db.commit()
    case = opened(path)
    assert case.column("SELECT name FROM ranges WHERE dur_ns = 1") == ["a�b"]
    assert case.column("SELECT DISTINCT name FROM kernels") == ['a"b\\c\n\u2028é']


# Files ----------------------------------------------------------------------------------------------------------------


def test_it_is_told_by_content(opened, tmp_path):
    for name in ("report", "x.json", "x.db"):
        assert opened(export().write(tmp_path / name)).outcomes[0].result == "ingested"
    assert "Nsight Systems did not export" in refused(Export.write(other(), tmp_path / "other.sqlite"))


def other():
    made = Export()
    made.tables = {"people": [{"name": "x"}]}
    return made


def test_folders_hold_exports(tmp_path):
    folder = tmp_path / "runs"
    folder.mkdir()
    export().write(folder / "a.sqlite")
    other().write(folder / "b.sqlite")
    (folder / "a.nsys-rep").write_bytes(b"x")
    outcomes, _ = ingest([str(folder)], tmp_path / "s.duckdb", Options())
    assert [(o.path[-8:], o.result) for o in outcomes] == [("a.sqlite", "ingested"), ("b.sqlite", "ignored")]


def test_the_same_file_is_one_trace(opened, tmp_path):
    path = export().write(tmp_path / "x.sqlite")
    for result in ("ingested", "known"):
        (outcome,), _ = ingest([str(path)], tmp_path / "s.duckdb", Options())
        assert outcome.result == result


def listing(folder):
    return {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in folder.iterdir() if p.is_file()}


def written_ahead(folder):
    """An export of which a kernel is in the log alone."""
    path = export().write(folder / "work.sqlite")
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT * FROM CUPTI_ACTIVITY_KIND_KERNEL LIMIT 1")
        db.commit()
        for end in ("", "-wal"):
            shutil.copyfile(f"{path}{end}", folder / f"x.sqlite{end}")
    return folder / "x.sqlite"


@pytest.mark.parametrize(("with_log", "kernels"), [(True, 5), (False, 4)])
def test_a_write_ahead_log_is_read_and_left_alone(tmp_path, with_log, kernels):
    folder = tmp_path / "in"
    folder.mkdir()
    path = written_ahead(folder)
    if not with_log:
        (folder / "x.sqlite-wal").unlink()
    before = listing(folder)
    folder.chmod(0o555)
    try:
        with Case([path], tmp_path / "s.duckdb") as case:
            assert case.one("SELECT count(*) FROM kernels") == kernels
    finally:
        folder.chmod(0o755)
    assert listing(folder) == before


def test_an_export_that_is_being_written_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr("traceq.ingest.nsys.PATIENCE_S", 0.1)
    path = export().write(tmp_path / "x.sqlite")
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("BEGIN EXCLUSIVE")
        assert "locked by another program" in refused(path)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.6, 0.99])
def test_a_truncated_file_gives_no_numbers(tmp_path, share):
    path = export().write(tmp_path / "x.sqlite")
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    assert re.search("truncated|empty", refused(path))


def test_a_damaged_file_gives_no_numbers(tmp_path):
    path = export().write(tmp_path / "x.sqlite")
    data = bytearray(path.read_bytes())
    data[4096 : len(data)] = b"\xff" * (len(data) - 4096)
    path.write_bytes(data)
    assert "damaged" in refused(path)


def test_tables_without_rows(opened):
    made = export()
    case = opened(made)
    made.tables = {name: rows if name == "StringIds" else [] for name, rows in made.tables.items()}
    columns = {name: case.outcomes and export().columns(name) for name in made.tables}
    made.columns = columns.__getitem__
    empty = opened(made, "y.sqlite")
    assert "there are no events in it" in empty.notes
    assert empty.query("summary")[0]["busy_ns"] is None


def parquet(path, folder):
    """The Parquet export of a SQLite one, with unsigned ids as nsys writes them."""
    folder.mkdir()
    with closing(sqlite3.connect(path)) as db, duckdb.connect() as con:
        for (table,) in db.execute("SELECT name FROM sqlite_master").fetchall():
            cursor = db.execute(f"SELECT * FROM {table}")
            names = [d[0] for d in cursor.description]
            types = {"value": "VARCHAR", "text": "VARCHAR", "name": "VARCHAR", "start": "BIGINT", "end": "BIGINT"}
            listed = ", ".join(f'"{n}" {types.get(n, "UBIGINT")}' for n in names)
            con.execute(f"CREATE TABLE {table} ({listed})")
            if rows := [tuple(v + 2**64 if isinstance(v, int) and v < 0 else v for v in row) for row in cursor]:
                con.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(names))})", rows)
            con.execute(f"COPY {table} TO '{folder}/{table}.parquet'")
    return folder


def test_a_folder_of_parquet_files_gives_the_same(opened, tmp_path):
    path = export().write(tmp_path / "x.sqlite")
    folder = parquet(path, tmp_path / "x[1]_pqtdir")
    tables = ("gpu_activities", "api_calls", "ranges", "steps", "gaps", "processes", "event_counts")
    one, two = opened(path), opened(folder)
    assert two.outcomes[0].run == "x[1]"
    for table in tables:
        sql = f"SELECT * FROM {table} ORDER BY ALL"
        assert one.con.execute(sql).fetchall() == two.con.execute(sql).fetchall(), table
    (again,), _ = ingest([str(tmp_path / "x[1]_pqtdir")], tmp_path / "1.duckdb", Options())
    assert again.result == "known"


def test_a_global_id_beyond_63_bits(opened, tmp_path):
    made = export()
    for rows in made.tables.values():
        for row in rows:
            for name in {"globalPid", "globalTid"} & set(row):
                row[name] -= 1 << 63
    path = made.write(tmp_path / "x.sqlite")
    for case in (opened(path), opened(parquet(path, tmp_path / "p"))):
        assert case.column("SELECT os_pid FROM processes") == [100]
        assert case.one("SELECT count(launch_id) FROM kernels") == 4


def test_a_damaged_parquet_file_is_told(tmp_path):
    folder = parquet(export().write(tmp_path / "x.sqlite"), tmp_path / "p")
    (folder / "CUPTI_ACTIVITY_KIND_KERNEL.parquet").write_bytes(b"PAR1 and nothing else")
    assert "damaged" in refused(folder)


# Reports --------------------------------------------------------------------------------------------------------------

NSYS = """#!{python}
import shutil, sys
if "--version" in sys.argv:
    print("NVIDIA Nsight Systems version {version}")
else:
    {act}
"""


def program(folder, version="2024.5.1.113-1", act="shutil.copy('{made}', sys.argv[sys.argv.index('--output') + 1])"):
    folder.mkdir()
    made = export().write(folder / "made")
    path = folder / "nsys"
    path.write_text(NSYS.format(python=sys.executable, version=version, act=act.format(made=made)))
    path.chmod(0o755)
    return str(folder)


def test_a_report_needs_nsys(tmp_path, monkeypatch):
    path = tmp_path / "x.nsys-rep"
    path.write_bytes(b"anything")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert re.search(
        r"no nsys is on the path(.|\n)*nsys export --type sqlite --force-overwrite true x.nsys-rep", refused(path)
    )
    monkeypatch.setenv("PATH", program(tmp_path / "old", "2019.1.1"))
    assert "is no nsys of 2021 or later" in refused(path)
    monkeypatch.setenv(
        "PATH", program(tmp_path / "bad", act="print('written by a newer version', file=sys.stderr); sys.exit(1)")
    )
    assert re.search(r"nsys 2024.5.1.113 cannot export it: written by a newer version\n.*newer one", refused(path))
    monkeypatch.setenv("PATH", program(tmp_path / "good"))
    with Case([path], tmp_path / "s.duckdb") as case:
        assert case.outcomes[0].run == "x"
        assert case.one("SELECT count(*) FROM kernels") == 4
    assert not list(tmp_path.glob("s.duckdb?*"))


# What is private ------------------------------------------------------------------------------------------------------


def test_nothing_private_enters_the_store(tmp_path):
    made = export()
    secret = "S3CR3T{}".format
    made.put("META_DATA_EXPORT", name="EXPORT_HOST", value=secret(1))
    made.put("META_DATA_EXPORT", name="EXPORT_PARAM_INPUT_PATH_ABS", value=f"/home/{secret(2)}/x")
    made.put("META_DATA_CAPTURE", name="PROCESS_0:COMMAND", value=secret(3))
    made.put("META_DATA_CAPTURE", name="PROCESS_0:CUDA_GRAPH_TRACE_OPTIONS:MODE", value=f"{secret(4)} x")
    made.put("TARGET_INFO_SYSTEM_ENV", globalVid=0, devStateName="e", name="Hostname", nameEnum=1, value=secret(5))
    made.put("ANALYSIS_FILE", id=1, filename=secret(6), contentId=made.text(secret(7)), globalPid=gpid(100))
    made.put("ProcessStreams", globalPid=gpid(100), filenameId=1, contentId=made.text(secret(8)))
    made.put("DIAGNOSTIC_EVENT", timestamp=1, source=1, severity=1, text=secret(9), globalPid=gpid(100))
    made.put("PROCESSES", globalPid=gpid(100), pid=100, name=f"/home/{secret(10)}/bin/python")
    made.put("PROCESSES", globalPid=gpid(1), pid=1, name=secret(11))
    made.put("TARGET_INFO_SESSION_START_TIME", utcEpochNs=10**18, localTime=secret(12))
    made.put("META_DATA_EXPORT", name="EXPORT_PRODUCT_VERSION", value=secret(13))
    store = tmp_path / "s.duckdb"
    done = traceq("ingest", made.write(tmp_path / "x.sqlite"), "--store", store, cwd=tmp_path, env=environment())
    assert done.status == 0
    assert b"S3CR3T" not in store.read_bytes()
    assert "S3CR3T" not in done.out + done.err
    with duckdb.connect(store, read_only=True) as con:
        for (table,) in con.execute("SELECT table_name FROM duckdb_tables()").fetchall():
            assert "S3CR3T" not in str(con.execute(f"FROM {table}").fetchall())


# Real exports ---------------------------------------------------------------------------------------------------------


def test_a_real_export(opened):
    (path,) = REAL.glob("*.sqlite")
    case = opened(path)
    assert case.outcomes[0].notes == []
    (row,) = case.query("summary")
    assert (row["kernels"], row["memcpys"], row["memsets"], row["graph_launches"]) == (632, 10, 36, 8)
    assert (row["gpu"], row["carried_over"], round(row["busy_pct"], 1)) == ("NVIDIA H200", 0, 23.1)
    assert [step["kernels"] for step in case.query("steps")] == [158] * 4
    assert (
        case.con.execute("SELECT metadata->>'$.nsys_version', origin_ns FROM traces").fetchall()[0][0] == "2023.4.4.54"
    )


# Report -> its column of counts, and the names with their durations as traceq has them.
SUMS = {
    "cuda_gpu_kern_sum": ("Instances", "SELECT name, dur_ns FROM kernels"),
    "cuda_api_sum": ("Num Calls", "SELECT regexp_replace(recorded_name, '_v.{4}$', ''), dur_ns FROM api_calls"),
    "cuda_gpu_mem_time_sum": ("Count", "SELECT coalesce(copy_kind, 'memset'), dur_ns FROM memops"),
    "nvtx_sum": ("Instances", "SELECT name, dur_ns FROM ranges UNION ALL SELECT name, dur_ns FROM ops"),
}
LABELS = {"Host-to-Device": "HtoD", "Device-to-Host": "DtoH", "Device-to-Device": "DtoD"}


def shown(name):
    """A name of nsys' tables as traceq has it."""
    if copied := re.fullmatch(r"\[CUDA (?:memcpy )?(.*)\]", name):
        return LABELS.get(copied[1], copied[1])
    return re.sub(r"(?:, (?:seq|op_id) = \d+)+$", "", name)


@needs_shared
@pytest.mark.parametrize("report", SUMS)
@pytest.mark.parametrize("name", EXPORTS)
def test_sums_are_those_of_nsys(tmp_path_factory, name, report):
    path = EXPORTS[name]
    stats = path.parent / "stats" / f"{name.removeprefix('gpt4_')}.{report}.csv"
    count, sql = SUMS[report]
    right = Counter()
    times = Counter()
    with stats.open(newline="") as file:
        for row in csv.DictReader(file):
            label = shown(row.get("Name") or row.get("Operation") or row["Range"])
            right[label] += int(row[count])
            times[label] += int(row["Total Time (ns)"])
    found, spent = Counter(), Counter()
    with stored(path, tmp_path_factory) as case:
        durations = case.con.execute(sql).fetchall()
    for label, dur_ns in durations:
        found[label] += 1
        spent[label] += dur_ns
    assert (found, spent) == (right, times)


SCHEMAS = ["2022.4", "2023.4", "2024.5", "2025.1", "2025.3", "2025.5", "2025.6", "2026.1", "2026.2"]
THREAD_100 = {"pid": 100, "tid": 100}
GPU_0 = {"pid": 100, "device": 0, "stream": 7}
EVENTS = [
    {"t": "gpu", "id": 0, "name": "GPU"},
    {"t": "process", "pid": 100, "name": "python3"},
    *({"t": "api", **THREAD_100, "start": n, "end": n + 9, "name": "cudaLaunchKernel_v7000", "corr": n}
      for n in (1000, 2000)),
    *({"t": "kernel", **GPU_0, "start": n + 200, "end": n + 700, "name": "k", "corr": n} for n in (1000, 2000)),
    {"t": "memcpy", **GPU_0, "start": 5000, "end": 5100, "bytes": 64, "kind": "HtoD", "corr": 9},
    {"t": "nvtx", **THREAD_100, "start": 900, "end": 9000, "text": "registered", "registered": True},
    {"t": "overhead", **THREAD_100, "start": 10, "end": 20, "name": "CUDA profiling overhead"},
    {"t": "osrt", **THREAD_100, "start": 30, "end": 50, "name": "poll"},
]  # fmt: skip
ONE_OF_EACH = """
SELECT (SELECT count(*) FROM memops), (SELECT count(*) FROM overheads), (SELECT count(*) FROM os_calls),
    (SELECT list(name) FROM ranges)
"""


@pytest.mark.skipif(not (SHARED / "tools").exists(), reason="the shared builder of exports is not here")
@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize("schema", SCHEMAS)
def test_exports_of_all_versions(opened, tmp_path, schema, eager):
    spec = importlib.util.spec_from_file_location("nsys_fixture", SHARED / "tools" / "nsys_fixture.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    tool.build(EVENTS, str(tmp_path / "x.sqlite"), schema=schema, lazy=not eager)
    case = opened(tmp_path / "x.sqlite")
    assert case.outcomes[0].notes == []
    assert case.column("SELECT latency_ns FROM launches WHERE kind = 'kernel'") == [200] * 2
    assert case.con.execute(ONE_OF_EACH).fetchall() == [(1, 1, 1, ["registered"])]
    assert case.one("SELECT metadata->>'$.nsys_version' FROM traces").startswith(schema)
