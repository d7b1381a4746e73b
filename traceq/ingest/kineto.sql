-- What each event of a Chrome trace (stage.events, times in ns as recorded) becomes. Fills the base tables of one trace
-- (trace_id 1) that need no derivation, and for store/derive stage.activities, stage.collectives, stage.calls, stage.ops,
-- stage.ranges, stage.python_calls and stage.memory_events.
-- Facts about the format: libkineto's output_json.cpp and ActivityType.h, torch's profiler_kineto.cpp; `Operator`,
-- `Runtime`, `Kernel`, `Memcpy`, `Memset` are the categories of 2021 and before.

-- A row has a usable time if it has a time at all that is within 73 years of zero, its length is neither negative nor over 30
-- days, and it is not at zero while everything else lies at least a day later (a device that never reported its times).
CREATE OR REPLACE TABLE stage.zero AS
SELECT min(ts_ns) FILTER (ts_ns > 0) > 86400000000000 AS is_bad FROM stage.events WHERE ph = 'X';

CREATE OR REPLACE TABLE stage.categories AS
FROM (VALUES
    ('kernel', 'gpu_activities', NULL), ('gpu_memcpy', 'gpu_activities', NULL), ('gpu_memset', 'gpu_activities', NULL),
    ('memcpy', 'gpu_activities', NULL), ('memset', 'gpu_activities', NULL),
    ('cuda_runtime', 'api_calls', NULL), ('cuda_driver', 'api_calls', NULL), ('runtime', 'api_calls', NULL),
    ('cpu_op', 'ops', NULL), ('operator', 'ops', NULL),
    ('user_annotation', 'ranges', NULL), ('trace', 'ranges', NULL),
    ('python_function', 'python_calls', NULL), ('overhead', 'overheads', NULL), ('cuda_sync', 'syncs', NULL),
    ('gpu_user_annotation', NULL, 'a CPU range projected on the GPU, not work'),
    ('cuda_event', NULL, 'a mark of 1 ns on a stream'),
    ('ac2g', NULL, 'a flow arrow: correlation ids link instead'),
    ('async_cpu_to_gpu', NULL, 'a flow arrow: correlation ids link instead'),
    ('async', NULL, 'a flow arrow: correlation ids link instead'),
    ('fwdbwd', NULL, 'a flow arrow: sequence numbers link instead')
) AS t (category, stored_in, reason);

CREATE OR REPLACE VIEW stage.sorted AS
SELECT
    e.rowid AS event, e.*,
    CASE
        WHEN e.ph = 'X' AND c.category IN ('cpu_op', 'operator') AND regexp_full_match(e.name, 'ProfilerStep#[0-9]+')
            THEN 'ranges'
        WHEN e.ph = 'X' THEN c.stored_in
        WHEN e.ph IN ('i', 'I', 'R') AND e.name IN ('[memory]', '[OutOfMemory]') THEN 'memory_events'
        WHEN e.ph IN ('i', 'I', 'R') THEN 'ranges'
        WHEN e.ph = 'C' THEN 'counters'
        WHEN e.ph = 'M' AND e.name IN ('process_name', 'process_labels') THEN 'processes'
        WHEN e.ph = 'M' AND e.name = 'thread_name' THEN 'threads'
    END AS stored_in,
    CASE
        WHEN e.ph IS NULL THEN 'no event: it has no phase'
        WHEN e.ph = 'M' THEN 'a display hint'
        WHEN c.reason IS NOT NULL THEN c.reason
        WHEN e.ph IN ('s', 't', 'f') THEN 'a flow arrow: correlation ids link instead'
        WHEN e.ph = 'X' THEN 'a category that traceq does not know'
        ELSE 'a phase that torch.profiler does not write'
    END AS why_not,
    CASE
        WHEN e.ph = 'M' THEN true
        WHEN e.ts_ns = 0 AND z.is_bad THEN false
        WHEN e.ph = 'X' AND NOT coalesce(e.dur_ns BETWEEN 0 AND 2592000000000000, false) THEN false
        ELSE coalesce(abs(e.ts_ns) <= (1::BIGINT << 61), false)
    END AS is_usable
FROM stage.events AS e
LEFT JOIN stage.categories AS c ON c.category = lower(e.cat)
CROSS JOIN stage.zero AS z;

INSERT INTO event_counts
SELECT
    1, ph, cat, stored_in,
    count(*) FILTER (stored_in IS NOT NULL AND is_usable),
    count(*) FILTER (stored_in IS NULL),
    count(*) FILTER (stored_in IS NOT NULL AND NOT is_usable),
    CASE WHEN stored_in IS NULL THEN any_value(why_not) WHEN NOT bool_and(is_usable) THEN 'no usable time' END
FROM stage.sorted
GROUP BY ph, cat, stored_in, CASE WHEN stored_in IS NULL THEN why_not END
ORDER BY ALL;

-- origin: the first usable time of any stored row, in the file's own clock.
CREATE OR REPLACE TABLE stage.origin AS
SELECT coalesce(min(ts_ns), 0) AS ns FROM stage.sorted WHERE is_usable AND stored_in IS NOT NULL AND ph <> 'M';

-- Ids are numbers over recorded fields, never file order: of two GPU rows with the same times, the one launched first comes
-- first. Only narrow columns are sorted; the wide ones are joined to them.
CREATE OR REPLACE TABLE stage.numbered AS
SELECT
    e.event, e.stored_in, e.ts_ns - o.ns AS start_ns,
    row_number() OVER (
        PARTITION BY e.stored_in ORDER BY
            e.ts_ns, e.dur_ns DESC,
            CASE WHEN e.stored_in = 'gpu_activities' THEN TRY_CAST(e.args->>'$.correlation' AS BIGINT) END,
            e.pid, e.tid, hash(e.ph, e.cat, e.name, e.args)
    ) AS id
FROM stage.sorted AS e CROSS JOIN stage.origin AS o
WHERE e.is_usable AND e.stored_in IS NOT NULL;

CREATE OR REPLACE VIEW stage.kept AS
SELECT n.id, n.stored_in, n.start_ns, e.* EXCLUDE (ts_ns, pos)
FROM stage.events AS e JOIN stage.numbered AS n ON n.event = e.rowid;

-- What remains of an event's args (`rest`) once the keys with a column of their own, and those not worth one, are taken
-- out. yyjson reads bare NaN and Infinity; they are no JSON and mean "missing".
CREATE OR REPLACE MACRO stage.without_nan(j) AS
    CASE
        WHEN regexp_matches(
            regexp_replace(j, '"(?:[^"\\]|\\.)*"', '""', 'g'), '(?i)[:,\[]\s*[+-]?(nan|inf|infinity)\s*[,}\]]'
        ) THEN regexp_replace(
            regexp_replace(j, '(?i)([:,\[])\s*[+-]?(?:nan|inf|infinity)\s*([,}\]])', '\1null\2', 'g'),
            '(?i)([:,\[])\s*[+-]?(?:nan|inf|infinity)\s*([,}\]])', '\1null\2', 'g'
        )
        ELSE j
    END;

CREATE OR REPLACE MACRO stage.others(args, known) AS
    CASE WHEN starts_with(args, '{') THEN nullif(json_merge_patch(args, known)::VARCHAR, '{}') END;

-- `scope`: correlation ids are unique within one. It is empty in a file of one profiler; where ranks were merged into one
-- file, the label in front of the process id ("[rank 3] 4242").

-- GPU work -----------------------------------------------------------------------------------------------------------

-- Merged ranks label the GPU's process id too, and each may call its GPU 0: a lane is a device then.
CREATE OR REPLACE TABLE stage.lanes AS
SELECT pid, row_number() OVER (ORDER BY pid) - 1 AS device
FROM (SELECT DISTINCT pid FROM stage.kept WHERE stored_in = 'gpu_activities' AND regexp_matches(pid, '^\[.*\] '));

CREATE OR REPLACE VIEW stage.activities AS
WITH gpu AS (
    SELECT
        id, name, pid, tid, start_ns, dur_ns, args,
        CASE
            WHEN lower(cat) LIKE '%memcpy' OR name LIKE '\_\_amd\_rocclr\_copyBuffer%' ESCAPE '\' THEN 'memcpy'
            WHEN lower(cat) LIKE '%memset' OR name LIKE '\_\_amd\_rocclr\_fillBuffer%' ESCAPE '\' THEN 'memset'
            ELSE 'kernel'
        END AS kind,
        from_json(args, '{
            "device": "BIGINT", "context": "BIGINT", "stream": "BIGINT", "correlation": "BIGINT", "External id": "BIGINT",
            "grid": ["BIGINT"], "block": ["BIGINT"], "registers per thread": "BIGINT", "shared memory": "BIGINT",
            "est. achieved occupancy %": "DOUBLE", "bytes": "BIGINT", "graph id": "BIGINT", "graph node id": "BIGINT",
            "fromDevice": "BIGINT", "toDevice": "BIGINT"
        }') AS a,
        stage.others(args, '{
            "device": null, "context": null, "stream": null, "correlation": null, "External id": null, "external id": null,
            "grid": null, "block": null, "registers per thread": null, "shared memory": null, "est. achieved occupancy %": null,
            "bytes": null, "graph id": null, "graph node id": null, "fromDevice": null, "toDevice": null, "queued": null,
            "blocks per SM": null, "warps per SM": null, "memory bandwidth (GB/s)": null,
            "Collective name": null, "In msg nelems": null, "Out msg nelems": null, "Group size": null, "dtype": null,
            "Process Group Name": null, "Process Group Ranks": null, "Seq": null, "Dst Rank": null, "Src Rank": null
        }') AS rest
    FROM stage.kept
    WHERE stored_in = 'gpu_activities'
)
SELECT
    id AS activity_id, kind, name, NULL::VARCHAR AS short_name, regexp_extract(coalesce(pid, ''), '^\[(.*)\] ', 1) AS scope,
    NULL::VARCHAR AS pid, coalesce(l.device, a.device, TRY_CAST(pid AS BIGINT), 0) AS device,
    a.context AS context, coalesce(a.stream, TRY_CAST(tid AS BIGINT)) AS stream, start_ns, dur_ns,
    a.correlation AS correlation_id, coalesce(a."External id", TRY_CAST(args->>'$."external id"' AS BIGINT)) AS external_id,
    a."graph id" AS graph_id, a."graph node id" AS graph_node_id,
    a.grid[1] AS grid_x, a.grid[2] AS grid_y, a.grid[3] AS grid_z,
    a.block[1] AS block_x, a.block[2] AS block_y, a.block[3] AS block_z,
    a."registers per thread" AS registers, a."shared memory" AS shared_bytes,
    CASE WHEN isfinite(a."est. achieved occupancy %") THEN a."est. achieved occupancy %" END AS occupancy_pct,
    a.bytes AS bytes,
    CASE
        WHEN kind <> 'memcpy' THEN NULL
        WHEN regexp_matches(name, '(Host|Device|Peer)To(Host|Device|Peer)')
            THEN regexp_replace(regexp_extract(name, '(Host|Device|Peer)To(Host|Device|Peer)'), '([HDP])[a-z]+To([HDP])[a-z]+', '\1to\2')
        ELSE nullif(regexp_extract(name, '[HDPA]to[HDPA]'), '')
    END AS copy_kind,
    CASE WHEN kind = 'memcpy' THEN nullif(regexp_extract(name, '\((\w+) -> (\w+)\)', 1), '') END AS src_kind,
    CASE
        WHEN kind = 'memcpy' THEN nullif(regexp_extract(name, '\((\w+) -> (\w+)\)', 2), '')
        WHEN kind = 'memset' THEN nullif(regexp_extract(name, '\((\w+)\)', 1), '')
    END AS dst_kind,
    a."fromDevice" AS src_device, a."toDevice" AS dst_device,
    CASE WHEN starts_with(args, '{') AND contains(args, '"Collective name"') THEN args END AS collective,
    stage.without_nan(rest)::JSON AS details
FROM gpu LEFT JOIN stage.lanes AS l USING (pid);

CREATE OR REPLACE TABLE stage.dtypes AS
FROM (VALUES
    ('bool', 1), ('byte', 1), ('char', 1), ('int8', 1), ('uint8', 1), ('float8_e4m3fn', 1), ('float8_e5m2', 1),
    ('half', 2), ('bfloat16', 2), ('short', 2), ('float16', 2), ('int16', 2),
    ('float', 4), ('int', 4), ('float32', 4), ('int32', 4),
    ('double', 8), ('long', 8), ('float64', 8), ('int64', 8), ('complexfloat', 8), ('complexdouble', 16)
) AS t (dtype, element_bytes);

CREATE OR REPLACE TABLE stage.collectives AS
SELECT
    activity_id, c."Collective name" AS name, c.dtype, c."In msg nelems" AS in_elems, c."Out msg nelems" AS out_elems,
    TRY_CAST(greatest(c."In msg nelems", c."Out msg nelems")::HUGEINT * d.element_bytes AS BIGINT) AS bytes, c."Process Group Name" AS group_name,
    c."Group size" AS group_size, c."Process Group Ranks" AS ranks, c."Seq" AS sequence,
    coalesce(c."Dst Rank", c."Src Rank") AS peer
FROM (
    SELECT activity_id, from_json(collective, '{
        "Collective name": "VARCHAR", "dtype": "VARCHAR", "In msg nelems": "BIGINT", "Out msg nelems": "BIGINT",
        "Process Group Name": "VARCHAR", "Group size": "BIGINT", "Process Group Ranks": "VARCHAR", "Seq": "BIGINT",
        "Dst Rank": "BIGINT", "Src Rank": "BIGINT"
    }') AS c
    FROM stage.activities
    WHERE collective IS NOT NULL
) LEFT JOIN stage.dtypes AS d ON d.dtype = lower(c.dtype);

-- The host side ------------------------------------------------------------------------------------------------------

CREATE OR REPLACE TABLE stage.calls AS
WITH calls AS (
    SELECT id, cat, name, pid, tid, start_ns, dur_ns, args, from_json(args, '{
        "correlation": "BIGINT", "External id": "BIGINT"
    }') AS a,
        stage.others(args, '{
            "correlation": null, "External id": null, "external id": null, "cbid": null, "cid": null, "external ts": null
        }') AS rest
    FROM stage.kept
    WHERE stored_in = 'api_calls'
)
SELECT
    id AS call_id, name AS recorded_name, CASE WHEN lower(cat) = 'cuda_driver' THEN 'driver' ELSE 'runtime' END AS api,
    regexp_extract(coalesce(pid, ''), '^\[(.*)\] ', 1) AS scope, pid, tid, start_ns, dur_ns,
    a.correlation AS correlation_id, coalesce(a."External id", TRY_CAST(args->>'$."external id"' AS BIGINT)) AS external_id,
    NULL::BIGINT AS result,
    stage.without_nan(rest)::JSON AS details
FROM calls;

CREATE OR REPLACE TABLE stage.ops AS
WITH ops AS (
    SELECT id, name, pid, tid, start_ns, dur_ns, args, from_json(args, '{
        "External id": "BIGINT", "Sequence number": "BIGINT", "Fwd thread id": "BIGINT", "Input Dims": "JSON",
        "Input type": "JSON", "Input Strides": "JSON", "Concrete Inputs": "JSON", "Module Hierarchy": "VARCHAR",
        "kernel_file": "VARCHAR", "kernel_hash": "VARCHAR"
    }') AS a,
        stage.others(args, '{
            "External id": null, "external id": null, "Sequence number": null, "Fwd thread id": null, "Input Dims": null,
            "Input type": null, "Input Strides": null, "Concrete Inputs": null, "Module Hierarchy": null, "kernel_file": null,
            "kernel_hash": null, "Ev Idx": null, "Record function id": null, "Trace name": null, "Trace iteration": null,
            "Profiler Event Index": null, "Device": null, "finished": null
        }') AS rest
    FROM stage.kept
    WHERE stored_in = 'ops'
)
SELECT
    id AS op_id, name, pid, tid, start_ns, dur_ns,
    a."External id" AS external_id, a."Sequence number" AS sequence, a."Fwd thread id" AS forward_thread,
    a."Input Dims" AS input_dims, a."Input type" AS input_types, a."Input Strides" AS input_strides,
    a."Concrete Inputs" AS concrete_inputs, nullif(a."Module Hierarchy", '') AS module,
    a."kernel_file" AS kernel_file, a."kernel_hash" AS kernel_hash,
    stage.without_nan(rest)::JSON AS details
FROM ops;

CREATE OR REPLACE TABLE stage.ranges AS
WITH ranges AS (
    SELECT id, ph, cat, name, pid, tid, start_ns, CASE WHEN ph = 'X' THEN dur_ns END AS dur_ns, args,
        from_json(args, '{"External id": "BIGINT"}')."External id" AS external_id,
        stage.others(args, '{
            "External id": null, "external id": null, "Ev Idx": null, "Record function id": null, "Trace name": null,
            "Trace iteration": null, "Profiler Event Index": null, "finished": null
        }') AS rest
    FROM stage.kept
    WHERE stored_in = 'ranges'
)
SELECT
    id AS range_id,
    CASE
        WHEN ph <> 'X' THEN 'mark'
        WHEN lower(cat) = 'trace' THEN 'window'
        WHEN regexp_full_match(name, 'ProfilerStep#[0-9]+') THEN 'step'
        ELSE 'record_function'
    END AS kind,
    name, pid, tid, start_ns, dur_ns, external_id,
    stage.without_nan(rest)::JSON AS details
FROM ranges;

CREATE OR REPLACE TABLE stage.python_calls AS
SELECT
    id AS call_id, name, pid, tid, start_ns, dur_ns,
    a."Python id" AS python_id, a."Python parent id" AS python_parent_id, a."Python module id" AS module_id,
    stage.without_nan(rest)::JSON AS details
FROM (
    SELECT *, from_json(args, '{"Python id": "BIGINT", "Python parent id": "BIGINT", "Python module id": "BIGINT"}') AS a,
        stage.others(args, '{
            "Python id": null, "Python parent id": null, "Python module id": null, "Ev Idx": null, "finished": null
        }') AS rest
    FROM stage.kept
    WHERE stored_in = 'python_calls'
);

-- The rest -----------------------------------------------------------------------------------------------------------

CREATE OR REPLACE TABLE stage.memory_events AS
SELECT
    id AS event_id, name, start_ns, pid, tid, nullif(a."Device Id", -1) AS device, a."Device Type" AS device_type,
    a."Bytes" AS bytes, a."Total Allocated" AS allocated_bytes, a."Total Reserved" AS reserved_bytes, a."Addr" AS addr,
    stage.without_nan(rest)::JSON AS details
FROM (
    SELECT *, from_json(args, '{
        "Device Id": "BIGINT", "Device Type": "BIGINT", "Bytes": "BIGINT", "Total Allocated": "BIGINT",
        "Total Reserved": "BIGINT", "Addr": "VARCHAR"
    }') AS a,
        stage.others(args, '{
            "Device Id": null, "Device Type": null, "Bytes": null, "Total Allocated": null, "Total Reserved": null, "Addr": null,
            "Ev Idx": null, "finished": null
        }') AS rest
    FROM stage.kept
    WHERE stored_in = 'memory_events'
);

INSERT INTO syncs
SELECT
    1, coalesce(a."cuda_sync_kind", name), NULL, a.device, a.context, CASE WHEN a.stream NOT IN (-1, 4294967295) THEN a.stream END,
    start_ns, dur_ns, a.correlation, a."External id", a."wait_on_stream",
    stage.without_nan(rest)::JSON
FROM (
    SELECT *, from_json(args, '{
        "cuda_sync_kind": "VARCHAR", "device": "BIGINT", "context": "BIGINT", "stream": "BIGINT", "correlation": "BIGINT",
        "External id": "BIGINT", "wait_on_stream": "BIGINT"
    }') AS a,
        stage.others(args, '{
            "cuda_sync_kind": null, "device": null, "context": null, "stream": null, "correlation": null, "External id": null,
            "wait_on_stream": null
        }') AS rest
    FROM stage.kept
    WHERE stored_in = 'syncs'
)
ORDER BY ALL;

INSERT INTO overheads
SELECT 1, name, pid, tid, start_ns, dur_ns, nullif(stage.without_nan(args), '{}')::JSON
FROM stage.kept WHERE stored_in = 'overheads' ORDER BY ALL;

INSERT INTO counters
SELECT 1, name, pid, tid, start_ns, nullif(stage.without_nan(args), '{}')::JSON
FROM stage.kept WHERE stored_in = 'counters' ORDER BY ALL;

INSERT INTO processes
WITH named AS (
    SELECT coalesce(pid, '') AS pid, string_agg(DISTINCT args->>'$.name', ', ' ORDER BY args->>'$.name') FILTER (name = 'process_name') AS name,
        string_agg(DISTINCT args->>'$.labels', ', ' ORDER BY args->>'$.labels') FILTER (name = 'process_labels') AS labels
    FROM stage.kept WHERE stored_in = 'processes' GROUP BY 1
), seen AS (
    SELECT pid FROM stage.calls UNION SELECT pid FROM stage.ops UNION SELECT pid FROM stage.python_calls
    UNION SELECT pid FROM stage.ranges WHERE kind IN ('record_function', 'step')
)
SELECT 1, s.pid, TRY_CAST(s.pid AS BIGINT), NULL, n.name, n.labels
FROM seen AS s LEFT JOIN named AS n ON n.pid = s.pid
WHERE s.pid IS NOT NULL ORDER BY s.pid;

INSERT INTO threads
SELECT 1, coalesce(pid, ''), coalesce(tid, ''), string_agg(DISTINCT args->>'$.name', ', ' ORDER BY args->>'$.name')
FROM stage.kept WHERE stored_in = 'threads' AND coalesce(pid, '') IN (SELECT pid FROM processes) GROUP BY ALL ORDER BY ALL;
