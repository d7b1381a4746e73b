"""The schema: every table and column says what it means, and what DESIGN promises to users' SQL is there."""

import re

import pytest

from traceq.store import files
from traceq.store.build import SCHEMA_VERSION

LONGEST_COMMENT = 160
OF_A_RUN = {"captures", "timings", "graph_breaks", "recompiles", "compile_phases", "kernel_sources"}
WITHOUT_TRACE = {"meta", "rules", "runs"} | OF_A_RUN
COPIES_OF_ACTIVITIES = ("kernels", "memops")

# DESIGN section 3, table by table; `trace_id` is not listed there either.
PROMISED = {
    "runs": """
        run_id label created_at command mode torch_version triton_version gpu step_pipelined_ns
        step_pipelined_low_ns step_pipelined_high_ns step_synced_ns step_synced_low_ns
        step_synced_high_ns peak_memory_bytes details
    """,
    "traces": """
        run_id rank world_size path format sha256 size_bytes origin_ns duration_ns status
        warnings metadata
    """,
    "devices": """
        device name uuid sm_count memory_bytes compute_capability peak_bytes_per_s peak_flops
        peak_source
    """,
    "timings": "run_id rank kind block steps ns",
    "graph_breaks": "run_id rank reason file line function count",
    "recompiles": "run_id rank function file line guard count",
    "compile_phases": "run_id rank phase ns count",
    "kernel_sources": """
        run_id rank kernel hash language source num_warps num_stages registers spills
        shared_bytes
    """,
    "gpu_activities": """
        activity_id kind name short_name mangled_name category category_by_name category_source
        origin phase pid device context green_context stream start_ns dur_ns correlation_id
        launch_id op_id step graph_id graph_exec_id graph_node_id grid_x grid_y grid_z block_x
        block_y block_z registers static_shared_bytes dynamic_shared_bytes occupancy_pct bytes
        copy_kind src_kind dst_kind src_device dst_device details
    """,
    "api_calls": """
        call_id name recorded_name api pid tid start_ns dur_ns correlation_id result op_id step
        role details
    """,
    "ops": """
        op_id name pid tid start_ns dur_ns self_ns parent_id depth external_id sequence
        forward_thread is_backward forward_op_id phase step input_dims input_types input_strides
        concrete_inputs module kernel_file kernel_hash details
    """,
    "ranges": """
        range_id kind name domain category payload pid tid end_tid start_ns dur_ns parent_id
        depth
    """,
    "steps": """
        step name pid start_ns dur_ns gpu_start_ns gpu_end_ns period_ns gpu_busy_ns kernels
        kernel_ns memop_ns launches flags
    """,
    "gaps": """
        device gap_id start_ns dur_ns before_id after_id step launch_state host_ns
        after_launch_ns
    """,
    "gap_parts": "gap_id part cause ns evidence op_id call_id",
    "stream_gaps": """
        device stream gap_id start_ns dur_ns before_id after_id step launch_state host_ns
        after_launch_ns
    """,
    "stream_gap_parts": "gap_id part cause ns evidence op_id call_id",
    "idle": """
        run rank device gap_id start_ns dur_ns step launch_state before_id after_id part cause ns
        evidence op_id call_id
    """,
    "stream_idle": """
        run rank device stream gap_id start_ns dur_ns step launch_state before_id after_id part
        cause ns evidence op_id call_id
    """,
    "python_calls": """
        name pid tid start_ns dur_ns self_ns parent_id depth module_id
    """,
    "rules": "priority pattern category origin decisive applies_to note",
    "gpu_busy": "device start_ns dur_ns",
    "collectives": """
        activity_id op_id name dtype in_elems out_elems bytes group_name group_size ranks
        sequence peer
    """,
    "memory_events": """
        at_ns pid tid op_id device device_type bytes allocated_bytes reserved_bytes addr
    """,
}
# What a view adds to its tables.
VIEWS_OF_GAPS = {"idle": ("gaps", "gap_parts"), "stream_idle": ("stream_gaps", "stream_gap_parts")}

TABLES = "SELECT table_name, comment FROM duckdb_tables() WHERE NOT internal ORDER BY ALL"
VIEWS = "SELECT view_name, comment FROM duckdb_views() WHERE NOT internal ORDER BY ALL"
COLUMNS = """
SELECT table_name, column_name, data_type, comment FROM duckdb_columns() WHERE NOT internal
ORDER BY table_name, column_index
"""


@pytest.fixture(scope="module")
def store():
    with files.empty_store() as con:
        yield con


@pytest.fixture(scope="module")
def columns(store):
    """Type and comment of every column of every table and view."""
    return {(table, name): (kind, text) for table, name, kind, text in store.execute(COLUMNS).fetchall()}


def relations(con):
    return dict(con.execute(TABLES).fetchall() + con.execute(VIEWS).fetchall())


def comments(con):
    """The comment of every table and view, and of every column as `table.column`."""
    of_columns = {f"{row[0]}.{row[1]}": row[3] for row in con.execute(COLUMNS).fetchall()}
    return relations(con) | of_columns


def test_nothing_is_without_a_comment(store, columns):
    assert [name for name, comment in comments(store).items() if not comment] == []
    assert {table for table, _ in columns} == set(relations(store))


def test_comments_are_short_fragments(store):
    found = {name: comment or "" for name, comment in comments(store).items()}
    assert [name for name, text in found.items() if len(text) > LONGEST_COMMENT] == []
    assert [name for name, text in found.items() if text.endswith(".")] == []
    assert [name for name, text in found.items() if text != " ".join(text.split())] == []


def test_comments_are_in_a_published_store(store, tmp_path):
    path = tmp_path / "store.duckdb"
    with files.publishing(path):
        pass
    with files.open_store(path) as con:
        assert comments(con) == comments(store)


@pytest.mark.parametrize("view", COPIES_OF_ACTIVITIES)
def test_views_say_what_their_table_says(columns, view):
    ours = {name: text for (table, name), (_, text) in columns.items() if table == view}
    theirs = {name: text for (table, name), (_, text) in columns.items() if table == "gpu_activities"}
    assert ours == theirs | {name: ours[name] for name in ("run", "rank")}


def test_times_are_whole_nanoseconds(columns):
    times = {column: kind for column, (kind, _) in columns.items() if column[1].endswith("_ns")}
    assert times
    assert {column: kind for column, kind in times.items() if kind != "BIGINT"} == {}


@pytest.mark.parametrize(("ending", "unit"), [("_ns", "ns"), ("bytes", "bytes"), ("_pct", "percent")])
def test_comments_name_the_unit(columns, ending, unit):
    texts = {column: text for column, (_, text) in columns.items() if column[1].endswith(ending)}
    assert texts
    assert [column for column, text in texts.items() if not re.search(rf"\b{unit}\b", text or "")] == []


def test_every_row_of_a_capture_names_its_run(columns):
    assert {table for table, name in columns if name == "run_id"} >= OF_A_RUN


def test_every_row_names_its_trace(store, columns):
    tables = {name for name, _ in store.execute(TABLES).fetchall()}
    assert {table for table in tables if (table, "trace_id") not in columns} == WITHOUT_TRACE


@pytest.mark.parametrize("table", PROMISED)
def test_promised_columns_exist(columns, table):
    assert {(table, name) for name in PROMISED[table].split()} - set(columns) == set()


@pytest.mark.parametrize("view", VIEWS_OF_GAPS)
def test_views_of_gaps_say_what_their_tables_say(columns, view):
    ours = {name: text for (table, name), (_, text) in columns.items() if table == view and name not in ("run", "rank")}
    said = [{name: text for (t, name), (_, text) in columns.items() if t == table} for table in VIEWS_OF_GAPS[view]]
    assert {name: text for name, text in ours.items() if text not in (some.get(name) for some in said)} == {}


def test_version_is_recorded(store):
    found = store.execute("SELECT value FROM meta WHERE key = 'schema_version'").fetchall()
    assert found == [(str(SCHEMA_VERSION),)]
