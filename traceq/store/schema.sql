-- The tables of a traceq store. DESIGN: all times are BIGINT nanoseconds counted from traces.origin_ns.
-- Column documentation is in comments.sql, the views in views.sql; a store is created by running the three in turn.

CREATE TABLE meta (key VARCHAR NOT NULL, value VARCHAR);

CREATE TABLE rules (
    priority BIGINT PRIMARY KEY, pattern VARCHAR NOT NULL, category VARCHAR NOT NULL, origin VARCHAR NOT NULL,
    decisive BOOLEAN NOT NULL DEFAULT true, applies_to VARCHAR NOT NULL DEFAULT 'kernel', note VARCHAR, source VARCHAR NOT NULL DEFAULT 'user'
);

CREATE TABLE runs (
    run_id BIGINT NOT NULL, label VARCHAR NOT NULL, created_at TIMESTAMP NOT NULL, command VARCHAR, mode VARCHAR,
    torch_version VARCHAR, triton_version VARCHAR, gpu VARCHAR,
    step_pipelined_ns BIGINT, step_pipelined_low_ns BIGINT, step_pipelined_high_ns BIGINT,
    step_synced_ns BIGINT, step_synced_low_ns BIGINT, step_synced_high_ns BIGINT,
    peak_memory_bytes BIGINT, details JSON
);

CREATE TABLE traces (
    trace_id BIGINT NOT NULL, run_id BIGINT NOT NULL, rank BIGINT, world_size BIGINT, path VARCHAR NOT NULL,
    format VARCHAR NOT NULL, sha256 VARCHAR NOT NULL, size_bytes BIGINT NOT NULL, origin_ns BIGINT, duration_ns BIGINT,
    status VARCHAR NOT NULL, resolution_ns BIGINT, invisible_replays BIGINT NOT NULL,
    clipped_rows BIGINT NOT NULL, op_disagreements BIGINT NOT NULL, warnings JSON, metadata JSON
);

CREATE TABLE captures (
    run_id BIGINT NOT NULL, rank BIGINT, world_size BIGINT, path VARCHAR NOT NULL, sha256 VARCHAR NOT NULL, size_bytes BIGINT NOT NULL,
    has_facts BOOLEAN NOT NULL
);

CREATE TABLE timings (
    run_id BIGINT NOT NULL, rank BIGINT, kind VARCHAR NOT NULL, block BIGINT NOT NULL, steps BIGINT NOT NULL, ns BIGINT NOT NULL
);

CREATE TABLE graph_breaks (
    run_id BIGINT NOT NULL, rank BIGINT, reason VARCHAR NOT NULL, file VARCHAR, line BIGINT, function VARCHAR, count BIGINT NOT NULL
);

CREATE TABLE recompiles (
    run_id BIGINT NOT NULL, rank BIGINT, function VARCHAR, file VARCHAR, line BIGINT, guard VARCHAR, count BIGINT NOT NULL
);

CREATE TABLE compile_phases (run_id BIGINT NOT NULL, rank BIGINT, phase VARCHAR NOT NULL, ns BIGINT NOT NULL, count BIGINT NOT NULL);

CREATE TABLE kernel_sources (
    run_id BIGINT NOT NULL, rank BIGINT, kernel VARCHAR NOT NULL, hash VARCHAR, language VARCHAR NOT NULL, source VARCHAR NOT NULL,
    num_warps BIGINT, num_stages BIGINT, registers BIGINT, spills BIGINT, shared_bytes BIGINT, ops JSON
);

CREATE TABLE event_counts (
    trace_id BIGINT NOT NULL, ph VARCHAR, category VARCHAR, stored_in VARCHAR, kept BIGINT NOT NULL,
    skipped BIGINT NOT NULL, lost BIGINT NOT NULL, reason VARCHAR
);

CREATE TABLE devices (
    trace_id BIGINT NOT NULL, device BIGINT NOT NULL, name VARCHAR, uuid VARCHAR, sm_count BIGINT, memory_bytes BIGINT,
    compute_capability VARCHAR, peak_bytes_per_s BIGINT, peak_flops JSON, peak_source VARCHAR
);

CREATE TABLE device_ordinals (trace_id BIGINT NOT NULL, pid VARCHAR, ordinal BIGINT NOT NULL, device BIGINT NOT NULL);

CREATE TABLE processes (trace_id BIGINT NOT NULL, pid VARCHAR NOT NULL, os_pid BIGINT, rank BIGINT, name VARCHAR, labels VARCHAR);

CREATE TABLE threads (trace_id BIGINT NOT NULL, pid VARCHAR NOT NULL, tid VARCHAR NOT NULL, name VARCHAR);

CREATE TABLE gpu_activities (
    trace_id BIGINT NOT NULL, activity_id BIGINT NOT NULL, kind VARCHAR NOT NULL, name VARCHAR, short_name VARCHAR,
    mangled_name VARCHAR, category VARCHAR, category_by_name VARCHAR, category_source VARCHAR, origin VARCHAR, phase VARCHAR,
    pid VARCHAR, device BIGINT, context BIGINT, green_context BIGINT, stream BIGINT,
    start_ns BIGINT NOT NULL, dur_ns BIGINT NOT NULL, correlation_id BIGINT, external_id BIGINT,
    launch_id BIGINT, op_id BIGINT, step BIGINT, graph_id BIGINT, graph_exec_id BIGINT, graph_node_id BIGINT,
    grid_x BIGINT, grid_y BIGINT, grid_z BIGINT, block_x BIGINT, block_y BIGINT, block_z BIGINT,
    registers BIGINT, shared_bytes BIGINT, static_shared_bytes BIGINT, dynamic_shared_bytes BIGINT, occupancy_pct DOUBLE,
    bytes BIGINT, copy_kind VARCHAR, src_kind VARCHAR, dst_kind VARCHAR, src_device BIGINT, dst_device BIGINT, details JSON
);

CREATE TABLE api_calls (
    trace_id BIGINT NOT NULL, call_id BIGINT NOT NULL, name VARCHAR, recorded_name VARCHAR, api VARCHAR NOT NULL,
    pid VARCHAR, tid VARCHAR, start_ns BIGINT NOT NULL, dur_ns BIGINT NOT NULL, correlation_id BIGINT, external_id BIGINT,
    result BIGINT, op_id BIGINT, range_id BIGINT, python_call_id BIGINT, step BIGINT, role VARCHAR NOT NULL, details JSON
);

CREATE TABLE ops (
    trace_id BIGINT NOT NULL, op_id BIGINT NOT NULL, name VARCHAR, pid VARCHAR, tid VARCHAR,
    start_ns BIGINT NOT NULL, dur_ns BIGINT NOT NULL, self_ns BIGINT, parent_id BIGINT, depth BIGINT,
    external_id BIGINT, sequence BIGINT, forward_thread BIGINT, is_backward BOOLEAN, forward_op_id BIGINT, phase VARCHAR,
    step BIGINT, input_dims JSON, input_types JSON, input_strides JSON, concrete_inputs JSON, module VARCHAR,
    kernel_file VARCHAR, kernel_hash VARCHAR, details JSON
);

CREATE TABLE ranges (
    trace_id BIGINT NOT NULL, range_id BIGINT NOT NULL, kind VARCHAR NOT NULL, name VARCHAR, domain VARCHAR,
    category VARCHAR, payload VARCHAR, pid VARCHAR, tid VARCHAR, end_tid VARCHAR, start_ns BIGINT NOT NULL, dur_ns BIGINT,
    external_id BIGINT, parent_id BIGINT, depth BIGINT, details JSON
);

CREATE TABLE python_calls (
    trace_id BIGINT NOT NULL, call_id BIGINT NOT NULL, name VARCHAR, pid VARCHAR, tid VARCHAR,
    start_ns BIGINT NOT NULL, dur_ns BIGINT NOT NULL, self_ns BIGINT, parent_id BIGINT, depth BIGINT,
    python_id BIGINT, python_parent_id BIGINT, module_id BIGINT, details JSON
);

CREATE TABLE steps (
    trace_id BIGINT NOT NULL, step BIGINT NOT NULL, name VARCHAR, pid VARCHAR, start_ns BIGINT NOT NULL, dur_ns BIGINT NOT NULL,
    gpu_start_ns BIGINT, gpu_end_ns BIGINT, period_ns BIGINT, gpu_busy_ns BIGINT, kernels BIGINT NOT NULL,
    kernel_ns BIGINT, memop_ns BIGINT, launches BIGINT NOT NULL, flags VARCHAR[] NOT NULL
);

CREATE TABLE gaps (
    trace_id BIGINT NOT NULL, device BIGINT NOT NULL, gap_id BIGINT NOT NULL, start_ns BIGINT NOT NULL, dur_ns BIGINT NOT NULL,
    before_id BIGINT, after_id BIGINT, step BIGINT, launch_state VARCHAR NOT NULL, host_ns BIGINT, after_launch_ns BIGINT
);

CREATE TABLE gap_parts (
    trace_id BIGINT NOT NULL, gap_id BIGINT NOT NULL, part VARCHAR NOT NULL, cause VARCHAR NOT NULL, ns BIGINT NOT NULL,
    evidence VARCHAR, call_id BIGINT, op_id BIGINT
);

CREATE TABLE stream_gaps (
    trace_id BIGINT NOT NULL, device BIGINT NOT NULL, stream BIGINT, gap_id BIGINT NOT NULL, start_ns BIGINT NOT NULL,
    dur_ns BIGINT NOT NULL, before_id BIGINT, after_id BIGINT, step BIGINT, launch_state VARCHAR NOT NULL, host_ns BIGINT,
    after_launch_ns BIGINT
);

CREATE TABLE stream_gap_parts (
    trace_id BIGINT NOT NULL, gap_id BIGINT NOT NULL, part VARCHAR NOT NULL, cause VARCHAR NOT NULL, ns BIGINT NOT NULL,
    evidence VARCHAR, call_id BIGINT, op_id BIGINT
);

CREATE TABLE gpu_busy (trace_id BIGINT NOT NULL, device BIGINT NOT NULL, start_ns BIGINT NOT NULL, dur_ns BIGINT NOT NULL);

CREATE TABLE collectives (
    trace_id BIGINT NOT NULL, activity_id BIGINT, op_id BIGINT, name VARCHAR, dtype VARCHAR, in_elems BIGINT, out_elems BIGINT,
    bytes BIGINT, group_name VARCHAR, group_size BIGINT, ranks VARCHAR, sequence BIGINT, peer BIGINT
);

CREATE TABLE memory_events (
    trace_id BIGINT NOT NULL, name VARCHAR, at_ns BIGINT NOT NULL, pid VARCHAR, tid VARCHAR, op_id BIGINT, device BIGINT, device_type BIGINT,
    bytes BIGINT, allocated_bytes BIGINT, reserved_bytes BIGINT, addr VARCHAR, details JSON
);

CREATE TABLE syncs (
    trace_id BIGINT NOT NULL, type VARCHAR, pid VARCHAR, device BIGINT, context BIGINT, stream BIGINT, start_ns BIGINT NOT NULL, dur_ns BIGINT NOT NULL,
    correlation_id BIGINT, external_id BIGINT, wait_stream BIGINT, details JSON
);

CREATE TABLE overheads (
    trace_id BIGINT NOT NULL, type VARCHAR, pid VARCHAR, tid VARCHAR, start_ns BIGINT NOT NULL, dur_ns BIGINT NOT NULL, details JSON
);

CREATE TABLE os_calls (
    trace_id BIGINT NOT NULL, name VARCHAR, pid VARCHAR, tid VARCHAR, start_ns BIGINT NOT NULL, dur_ns BIGINT NOT NULL,
    result BIGINT, depth BIGINT
);

CREATE TABLE counters (
    trace_id BIGINT NOT NULL, name VARCHAR, pid VARCHAR, tid VARCHAR, start_ns BIGINT NOT NULL, details JSON
);
