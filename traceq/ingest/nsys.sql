-- What each row of an export of Nsight Systems (stage.kernel, stage.call, …, as nsys.py names and fills them) becomes. Fills
-- the base tables of one trace (trace_id 1) that need no derivation, and the staged ones that store/derive reads. A table
-- or column that the export lacks is empty here.

-- A globalTid holds host and process in its upper bits and the thread in its lower 24; a globalPid is one without a thread.
CREATE OR REPLACE MACRO stage.pid_of(g) AS (g - (g & 16777215))::VARCHAR;
CREATE OR REPLACE MACRO stage.scope_of(g) AS (g >> 24)::VARCHAR;
CREATE OR REPLACE MACRO stage.tid_of(g) AS (g & 16777215)::VARCHAR;
CREATE OR REPLACE MACRO stage.os_pid_of(g) AS (g >> 24) & 16777215;
CREATE OR REPLACE MACRO stage.name_of(value, id) AS coalesce(value, '[name ' || id || ']');
CREATE OR REPLACE MACRO stage.without_nulls(j) AS nullif(json_merge_patch('{}', j)::VARCHAR, '{}')::JSON;
CREATE OR REPLACE MACRO stage.none(id) AS CASE WHEN id NOT IN (-1, 4294967295) THEN id END;

-- Names that files do not always explain (ENUM_ tables may be empty or missing) ---------------------------------------

CREATE OR REPLACE TABLE stage.copy_kinds AS
FROM (VALUES
    (1, 'HtoD'), (2, 'DtoH'), (3, 'HtoA'), (4, 'AtoH'), (5, 'AtoA'), (6, 'AtoD'), (7, 'DtoA'), (8, 'DtoD'), (9, 'HtoH'),
    (10, 'PtoP'), (11, 'HtoD'), (12, 'DtoH'), (13, 'DtoD')
) AS t (id, label);

CREATE OR REPLACE TABLE stage.memory_kinds AS
FROM (VALUES
    (0, 'Pageable'), (1, 'Pinned'), (2, 'Device'), (3, 'Array'), (4, 'Managed'), (5, 'Device Static'), (6, 'Managed Static')
) AS t (id, label);

-- syncType differs between versions for one and the same call, so the call's name goes first.
CREATE OR REPLACE TABLE stage.sync_kinds AS
FROM (VALUES
    (1, 'EventSynchronize', 'Event Sync'), (2, 'StreamWaitEvent', 'Stream Wait Event'), (3, 'StreamSynchronize', 'Stream Sync'),
    (4, 'DeviceSynchronize', 'Context Sync'), (NULL, 'CtxSynchronize', 'Context Sync'), (NULL, 'EventQuery', 'Event Query'),
    (NULL, 'StreamQuery', 'Stream Query')
) AS t (id, call, label);

CREATE OR REPLACE TABLE stage.overhead_kinds AS
FROM (VALUES
    (2, 'Driver JIT Compile'), (3, 'Buffer Flush'), (4, 'Instrumentation'), (5, 'Resource'), (6, 'Module Loading'),
    (7, 'Lazy Function Loading'), (8, 'Command Buffer Full')
) AS t (id, label);

-- NVTX ----------------------------------------------------------------------------------------------------------------

-- torch.autograd.profiler.emit_nvtx writes "aten::mm, seq = 12, op_id = 345, sizes = [[2, 3], [3, 4]], input_op_ids = [(1, 0)]",
-- each part but the name optional, for operators and for record_function alike: what looks like an operator becomes one.
CREATE OR REPLACE TABLE stage.marked AS
WITH texts AS (
    SELECT
        n.start, n."end", n.eventType, n.rangeId, n.category, n.globalTid, n.endGlobalTid, n.domainId,
        coalesce(s.value, n.text, '[name ' || n.textId || ']') AS text,
        coalesce(
            n.int64Value::VARCHAR, n.uint64Value::VARCHAR, n.doubleValue::VARCHAR, n.int32Value::VARCHAR, n.uint32Value::VARCHAR,
            n.floatValue::VARCHAR, j.value, n.jsonText
        ) AS payload
    FROM stage.nvtx AS n
    LEFT JOIN stage.strings AS s ON s.id = n.textId
    LEFT JOIN stage.strings AS j ON j.id = n.jsonTextId
), parsed AS (
    SELECT
        *,
        CASE
            WHEN contains(text, ', seq = ') OR contains(text, ', op_id = ') OR contains(text, ', sizes = ') THEN regexp_extract(
                text,
                '^(.*?)(?:, seq = (-?[0-9]+))?(?:, op_id = ([0-9]+))?(?:, sizes = (\[[^a-zA-Z]*\]))?(?:, input_op_ids = (\[[^a-zA-Z]*\]))?$',
                ['name', 'seq', 'op_id', 'sizes', 'inputs'], 's'
            )
        END AS p
    FROM texts
)
SELECT
    * EXCLUDE (p), coalesce(p.name, text) AS name,
    TRY_CAST(p.seq AS BIGINT) AS sequence, TRY_CAST(p.op_id AS BIGINT) AS op_handle,
    nullif(p.sizes, '') AS sizes, nullif(p.inputs, '') AS inputs,
    CASE
        WHEN eventType IN (33, 39, 75, 76) THEN NULL
        WHEN eventType IN (59, 70) AND "end" IS NOT NULL AND (
            (p IS NOT NULL AND (
                p.seq <> '' OR contains(p.name, '::') OR starts_with(p.name, 'triton_') OR p.name = 'record_param_comms'
                OR regexp_matches(p.name, 'Backward[0-9]*$')
            )) OR starts_with(text, 'aten::')
        ) THEN 'ops'
        ELSE 'ranges'
    END AS stored_in
FROM parsed;

-- Rows, their times and their ids -------------------------------------------------------------------------------------

CREATE OR REPLACE VIEW stage.timed AS
SELECT 'kernel' AS source, 'gpu_activities' AS stored_in, rowid AS row, start, "end", correlationId AS correlation,
    hash(globalPid, deviceId, contextId, streamId, demangledName, gridX, gridY, gridZ) AS rest
FROM stage.kernel
UNION ALL
SELECT 'memcpy', 'gpu_activities', rowid, start, "end", correlationId, hash(globalPid, deviceId, contextId, streamId, bytes, copyKind)
FROM stage.memcpy
UNION ALL
SELECT 'memset', 'gpu_activities', rowid, start, "end", correlationId, hash(globalPid, deviceId, contextId, streamId, bytes, value)
FROM stage.memset
UNION ALL
SELECT 'graph', 'gpu_activities', rowid, start, "end", correlationId, hash(globalPid, deviceId, contextId, streamId, graphId)
FROM stage.graph
UNION ALL
SELECT 'call', 'api_calls', rowid, start, "end", correlationId, hash(globalTid, nameId) FROM stage.call
UNION ALL
SELECT 'nvtx', stored_in, rowid, start, coalesce("end", start), NULL, hash(globalTid, text, eventType, domainId, rangeId)
FROM stage.marked
UNION ALL
SELECT 'sync', 'syncs', rowid, start, "end", NULL, NULL FROM stage.sync
UNION ALL
SELECT 'overhead', 'overheads', rowid, start, "end", NULL, NULL FROM stage.overhead
UNION ALL
SELECT 'cuda_overhead', 'overheads', rowid, start, "end", NULL, NULL FROM stage.cuda_overhead
UNION ALL
SELECT 'os_call', CASE WHEN coalesce(eventClass, 27) = 27 THEN 'os_calls' END, rowid, start, "end", NULL, NULL FROM stage.os_call
UNION ALL
SELECT 'memory', 'memory_events', rowid, start, start, NULL, NULL FROM stage.memory
UNION ALL
SELECT 'metric', 'counters', rowid, timestamp, timestamp, NULL, NULL FROM stage.metric;

-- A time is usable if it is within 73 years of zero, its length is neither negative nor over 30 days, and, on the GPU, it is
-- not the zero of a record that never got its times.
CREATE OR REPLACE TABLE stage.zero AS
SELECT min(start) FILTER (start > 0) > 86400000000000 AS is_bad FROM stage.timed WHERE stored_in = 'gpu_activities';

CREATE OR REPLACE VIEW stage.judged AS
SELECT
    t.*,
    coalesce(
        t.start BETWEEN -(1::BIGINT << 61) AND (1::BIGINT << 61)
        AND t."end" BETWEEN t.start AND least(t.start, 1::BIGINT << 61) + 2592000000000000
        AND NOT (t.stored_in = 'gpu_activities' AND t.start = 0 AND (t."end" = 0 OR z.is_bad)),
        false
    ) AS is_usable
FROM stage.timed AS t CROSS JOIN stage.zero AS z;

INSERT INTO event_counts
WITH counted AS (
    SELECT
        source, stored_in, count(*) AS rows, count(*) FILTER (is_usable) AS usable
    FROM stage.judged GROUP BY ALL
)
SELECT
    1,
    CASE WHEN c.stored_in IS NULL THEN 'M' WHEN source = 'metric' THEN 'C' WHEN source = 'memory' THEN 'i' ELSE 'X' END,
    t.recorded, c.stored_in,
    CASE WHEN c.stored_in IS NOT NULL THEN usable ELSE 0 END,
    CASE WHEN c.stored_in IS NULL THEN rows ELSE 0 END,
    CASE WHEN c.stored_in IS NOT NULL THEN rows - usable ELSE 0 END,
    CASE
        WHEN c.stored_in IS NULL AND source = 'os_call' THEN 'a marker, no call'
        WHEN c.stored_in IS NULL THEN 'a name of a domain, category or thread, which its ranges carry'
        WHEN usable < rows THEN 'no usable time'
    END
FROM counted AS c JOIN stage.found AS t USING (source)
UNION ALL
SELECT 1, 'X', recorded, NULL, 0, rows, 0, 'a table that traceq does not read' FROM stage.unread WHERE rows > 0
ORDER BY ALL;

CREATE OR REPLACE TABLE stage.origin AS
SELECT coalesce(min(start), 0) AS ns FROM stage.judged WHERE is_usable AND stored_in IS NOT NULL;

-- Ids are numbers over recorded fields, never file order: of two GPU rows with the same times, the one launched first comes
-- first. Only narrow columns are sorted; the wide ones are joined to them.
CREATE OR REPLACE TABLE stage.numbered AS
SELECT
    j.source, j.stored_in, j.row, j.start - o.ns AS start_ns, j."end" - j.start AS dur_ns,
    row_number() OVER (PARTITION BY j.stored_in ORDER BY j.start, j."end" DESC, j.correlation, j.rest) AS id
FROM stage.judged AS j CROSS JOIN stage.origin AS o
WHERE j.is_usable AND j.stored_in IS NOT NULL;

-- GPUs: each process numbers its own from 0, so the machine's number is what tells them apart --------------------------

CREATE OR REPLACE TABLE stage.listed_devices AS
SELECT
    id AS device, any_value(name) AS name, any_value(uuid) AS uuid, any_value(smCount) AS sm_count,
    any_value(totalMemory) AS memory_bytes, any_value(computeMajor || '.' || coalesce(computeMinor, 0)) AS compute_capability,
    any_value(nullif(memoryBandwidth, 0)) AS peak_bytes_per_s
FROM stage.gpu WHERE id IS NOT NULL GROUP BY id;

CREATE OR REPLACE TABLE stage.os_ordinals AS
SELECT c.pid AS os_pid, c.cudaId AS ordinal, any_value(coalesce(c.gpuId, g.id, c.cudaId)) AS device
FROM stage.cuda_device AS c LEFT JOIN stage.gpu AS g ON c.gpuId IS NULL AND g.uuid = c.uuid
WHERE c.cudaId IS NOT NULL GROUP BY ALL;

CREATE OR REPLACE TABLE stage.listed_ordinals AS
WITH used AS (
    SELECT DISTINCT globalPid, deviceId FROM stage.kernel UNION SELECT DISTINCT globalPid, deviceId FROM stage.memcpy
    UNION SELECT DISTINCT globalPid, deviceId FROM stage.memset UNION SELECT DISTINCT globalPid, deviceId FROM stage.graph
    UNION SELECT DISTINCT globalPid, deviceId FROM stage.memory UNION SELECT DISTINCT globalPid, deviceId FROM stage.sync
    UNION SELECT DISTINCT globalPid, srcDeviceId FROM stage.memcpy UNION SELECT DISTINCT globalPid, dstDeviceId FROM stage.memcpy
)
SELECT u.globalPid, stage.pid_of(u.globalPid) AS pid, u.deviceId AS ordinal, coalesce(o.device, u.deviceId, 0) AS device,
    o.device IS NOT NULL AS is_recorded
FROM used AS u LEFT JOIN stage.os_ordinals AS o ON o.os_pid = stage.os_pid_of(u.globalPid) AND o.ordinal = u.deviceId;

-- GPU work: `scope` is the process (in few digits), since correlation ids restart in each ---------------------------------------------

CREATE OR REPLACE TABLE stage.activities AS
WITH gpu AS (
    SELECT
        n.id, n.start_ns, n.dur_ns, 'kernel' AS kind,
        stage.name_of(d.value, k.demangledName) AS name, s.value AS short_name, m.value AS mangled_name,
        k.globalPid, k.deviceId, k.contextId, k.greenContextId, k.streamId, k.correlationId, k.graphNodeId,
        k.graphId, NULL::BIGINT AS graphExecId,
        k.gridX AS grid_x, k.gridY AS grid_y, k.gridZ AS grid_z, k.blockX AS block_x, k.blockY AS block_y, k.blockZ AS block_z,
        k.registersPerThread AS registers, k.staticSharedMemory + k.dynamicSharedMemory AS shared_bytes,
        k.staticSharedMemory AS static_shared_bytes, k.dynamicSharedMemory AS dynamic_shared_bytes,
        CASE
            WHEN k.localMemoryPerThread > 0 OR k.clusterX > 1 OR k.clusterY > 1 OR k.clusterZ > 1 OR k.launchType > 1
                THEN stage.without_nulls(json_object(
                    'localMemoryPerThread', nullif(k.localMemoryPerThread, 0), 'clusterX', nullif(k.clusterX, 0),
                    'clusterY', nullif(k.clusterY, 0), 'clusterZ', nullif(k.clusterZ, 0),
                    'launchType', CASE WHEN k.launchType > 1 THEN k.launchType END
                ))
        END AS details
    FROM stage.kernel AS k
    JOIN stage.numbered AS n ON n.source = 'kernel' AND n.row = k.rowid
    LEFT JOIN stage.strings AS d ON d.id = k.demangledName
    LEFT JOIN stage.strings AS s ON s.id = k.shortName
    LEFT JOIN stage.strings AS m ON m.id = k.mangledName
    UNION ALL BY NAME
    SELECT
        n.id, n.start_ns, n.dur_ns, 'memcpy' AS kind,
        concat(
            'Memcpy ', coalesce(c.label, '[kind ' || k.copyKind || ']'),
            CASE WHEN k.copyKind BETWEEN 11 AND 13 THEN ' (Unified)' WHEN s.label IS NOT NULL THEN format(' ({} -> {})', s.label, d.label) END
        ) AS name,
        k.globalPid, k.deviceId, k.contextId, k.greenContextId, k.streamId, k.correlationId, k.graphNodeId,
        k.bytes, c.label AS copy_kind, s.label AS src_kind, d.label AS dst_kind,
        coalesce(a.device, k.srcDeviceId) AS src_device, coalesce(b.device, k.dstDeviceId) AS dst_device,
        CASE
            WHEN k.copyKind BETWEEN 11 AND 13 OR k.copyCount > 1 THEN stage.without_nulls(json_object(
                'unified', CASE WHEN k.copyKind BETWEEN 11 AND 13 THEN true END, 'virtualAddress', k.virtualAddress,
                'migrationCause', k.migrationCause, 'copyCount', k.copyCount
            ))
        END AS details
    FROM stage.memcpy AS k
    JOIN stage.numbered AS n ON n.source = 'memcpy' AND n.row = k.rowid
    LEFT JOIN stage.copy_kinds AS c ON c.id = k.copyKind
    LEFT JOIN stage.memory_kinds AS s ON s.id = k.srcKind
    LEFT JOIN stage.memory_kinds AS d ON d.id = k.dstKind
    LEFT JOIN stage.listed_ordinals AS a ON a.globalPid = k.globalPid AND a.ordinal = k.srcDeviceId
    LEFT JOIN stage.listed_ordinals AS b ON b.globalPid = k.globalPid AND b.ordinal = k.dstDeviceId
    UNION ALL BY NAME
    SELECT
        n.id, n.start_ns, n.dur_ns, 'memset' AS kind, concat('Memset', ' (' || d.label || ')') AS name,
        k.globalPid, k.deviceId, k.contextId, k.greenContextId, k.streamId, k.correlationId, k.graphNodeId,
        k.bytes, d.label AS dst_kind, CASE WHEN k.value <> 0 THEN json_object('value', k.value) END AS details
    FROM stage.memset AS k
    JOIN stage.numbered AS n ON n.source = 'memset' AND n.row = k.rowid
    LEFT JOIN stage.memory_kinds AS d ON d.id = k.memKind
    UNION ALL BY NAME
    SELECT
        n.id, n.start_ns, n.dur_ns, 'graph' AS kind, concat('CUDA graph', ' ' || k.graphId) AS name,
        k.globalPid, k.deviceId, k.contextId, k.greenContextId, k.streamId, k.correlationId, k.graphId, k.graphExecId
    FROM stage.graph AS k
    JOIN stage.numbered AS n ON n.source = 'graph' AND n.row = k.rowid
), callers AS (
    SELECT CASE WHEN count(DISTINCT globalTid >> 24) = 1 THEN min(globalTid) END AS g FROM stage.call
)
SELECT
    g.id AS activity_id, g.kind, g.name, g.short_name, g.mangled_name,
    coalesce(stage.scope_of(coalesce(g.globalPid, c.g)), '') AS scope, stage.pid_of(coalesce(g.globalPid, c.g)) AS pid,
    coalesce(o.device, g.deviceId, 0) AS device, nullif(g.contextId, 0) AS context, nullif(g.greenContextId, 0) AS green_context,
    CASE WHEN g.contextId = 0 THEN nullif(g.streamId, 0) ELSE stage.none(g.streamId) END AS stream,
    g.start_ns, g.dur_ns, g.correlationId AS correlation_id, NULL::BIGINT AS external_id,
    nullif(g.graphId, 0) AS graph_id, nullif(g.graphExecId, 0) AS graph_exec_id, nullif(g.graphNodeId, 0) AS graph_node_id,
    g.grid_x, g.grid_y, g.grid_z, g.block_x, g.block_y, g.block_z, g.registers, g.shared_bytes, g.static_shared_bytes,
    g.dynamic_shared_bytes, g.bytes, g.copy_kind, g.src_kind, g.dst_kind, g.src_device, g.dst_device,
    NULL::VARCHAR AS collective, g.details
FROM gpu AS g
CROSS JOIN callers AS c
LEFT JOIN stage.listed_ordinals AS o ON o.globalPid = g.globalPid AND o.ordinal = g.deviceId;

-- The host side ------------------------------------------------------------------------------------------------------

CREATE OR REPLACE TABLE stage.calls AS
SELECT
    n.id AS call_id, stage.name_of(s.value, k.nameId) AS recorded_name,
    CASE WHEN coalesce(k.eventClass = 1, regexp_matches(s.value, '^cu[A-Z]'), false) THEN 'driver' ELSE 'runtime' END AS api,
    stage.scope_of(k.globalTid) AS scope, stage.pid_of(k.globalTid) AS pid, stage.tid_of(k.globalTid) AS tid,
    n.start_ns, n.dur_ns, k.correlationId AS correlation_id, NULL::BIGINT AS external_id, k.returnValue AS result,
    NULL::JSON AS details
FROM stage.call AS k
JOIN stage.numbered AS n ON n.source = 'call' AND n.row = k.rowid
LEFT JOIN stage.strings AS s ON s.id = k.nameId;

CREATE OR REPLACE TABLE stage.ops AS
SELECT
    n.id AS op_id, m.name, stage.pid_of(m.globalTid) AS pid, stage.tid_of(m.globalTid) AS tid, n.start_ns, n.dur_ns,
    m.op_handle AS external_id, m.sequence, NULL::BIGINT AS forward_thread,
    TRY_CAST(m.sizes AS JSON) AS input_dims, NULL::JSON AS input_types, NULL::JSON AS input_strides, NULL::JSON AS concrete_inputs,
    NULL::VARCHAR AS module, NULL::VARCHAR AS kernel_file, NULL::VARCHAR AS kernel_hash,
    CASE WHEN m.inputs IS NOT NULL THEN json_object('input_op_ids', m.inputs) END AS details
FROM stage.marked AS m JOIN stage.numbered AS n ON n.source = 'nvtx' AND n.stored_in = 'ops' AND n.row = m.rowid;

CREATE OR REPLACE TABLE stage.ranges AS
WITH domains AS (
    SELECT DISTINCT ON (pid, domainId) stage.pid_of(globalTid) AS pid, domainId, text FROM stage.marked
    WHERE eventType = 75 ORDER BY pid, domainId, start DESC
), categories AS (
    SELECT DISTINCT ON (pid, domainId, category) stage.pid_of(globalTid) AS pid, domainId, category, text FROM stage.marked
    WHERE eventType = 33 ORDER BY pid, domainId, category, start DESC
)
SELECT
    n.id AS range_id,
    CASE WHEN m.eventType = 34 THEN 'mark' WHEN m.eventType IN (60, 71) THEN 'start_end' ELSE 'push_pop' END AS kind,
    m.name, CASE WHEN m.domainId <> 0 THEN coalesce(d.text, '[domain ' || m.domainId || ']') END AS domain,
    CASE WHEN m.category <> 0 THEN coalesce(c.text, m.category::VARCHAR) END AS category, m.payload,
    stage.pid_of(m.globalTid) AS pid, stage.tid_of(m.globalTid) AS tid, stage.tid_of(m.endGlobalTid) AS end_tid,
    n.start_ns, CASE WHEN m."end" IS NOT NULL AND m.eventType IS DISTINCT FROM 34 THEN n.dur_ns END AS dur_ns,
    m.op_handle AS external_id, NULL::JSON AS details
FROM stage.marked AS m
JOIN stage.numbered AS n ON n.source = 'nvtx' AND n.stored_in = 'ranges' AND n.row = m.rowid
LEFT JOIN domains AS d ON d.pid = stage.pid_of(m.globalTid) AND d.domainId = m.domainId
LEFT JOIN categories AS c
    ON c.pid = stage.pid_of(m.globalTid) AND c.domainId IS NOT DISTINCT FROM m.domainId AND c.category = m.category;

-- The rest -----------------------------------------------------------------------------------------------------------

INSERT INTO syncs BY NAME
SELECT
    1 AS trace_id, coalesce(t.label, c.name, u.label, 'sync ' || k.syncType) AS type, stage.pid_of(k.globalPid) AS pid,
    coalesce(o.device, k.deviceId) AS device, k.contextId AS context, stage.none(k.streamId) AS stream, n.start_ns, n.dur_ns,
    k.correlationId AS correlation_id
FROM stage.sync AS k
JOIN stage.numbered AS n ON n.source = 'sync' AND n.row = k.rowid
LEFT JOIN (
    SELECT scope, correlation_id, any_value(regexp_replace(recorded_name, '(_v[0-9]+)?(_ptsz|_ptds)?$', '')) AS name
    FROM stage.calls WHERE correlation_id IN (SELECT correlationId FROM stage.sync) GROUP BY ALL HAVING count(*) = 1
) AS c ON c.scope = stage.scope_of(k.globalPid) AND c.correlation_id = k.correlationId
LEFT JOIN stage.sync_kinds AS t ON regexp_replace(c.name, '^(cuda|cu)', '') = t.call
LEFT JOIN stage.sync_kinds AS u ON u.id = k.syncType
LEFT JOIN stage.listed_ordinals AS o ON o.globalPid = k.globalPid AND o.ordinal = k.deviceId
ORDER BY ALL;

INSERT INTO overheads BY NAME
SELECT
    1 AS trace_id, coalesce(s.value, t.label, stage.name_of(NULL, k.nameId)) AS type, stage.pid_of(k.globalTid) AS pid,
    stage.tid_of(k.globalTid) AS tid, n.start_ns, n.dur_ns,
    CASE WHEN k.correlationId <> 0 THEN json_object('correlationId', k.correlationId) END AS details
FROM (
    SELECT 'overhead' AS source, rowid AS row, globalTid, nameId, NULL::BIGINT AS overheadType, NULL::BIGINT AS correlationId
    FROM stage.overhead
    UNION ALL
    SELECT 'cuda_overhead', rowid, globalTid, nameId, overheadType, correlationId FROM stage.cuda_overhead
) AS k
JOIN stage.numbered AS n ON n.source = k.source AND n.row = k.row
LEFT JOIN stage.strings AS s ON s.id = k.nameId
LEFT JOIN stage.overhead_kinds AS t ON t.id = k.overheadType
ORDER BY ALL;

INSERT INTO os_calls BY NAME
SELECT
    1 AS trace_id, stage.name_of(s.value, k.nameId) AS name, stage.pid_of(k.globalTid) AS pid, stage.tid_of(k.globalTid) AS tid,
    n.start_ns, n.dur_ns, k.returnValue AS result, k.nestingLevel AS depth
FROM stage.os_call AS k
JOIN stage.numbered AS n ON n.source = 'os_call' AND n.row = k.rowid
LEFT JOIN stage.strings AS s ON s.id = k.nameId
ORDER BY ALL;

-- device_type as torch numbers it: 0 the host, 1 CUDA.
CREATE OR REPLACE TABLE stage.memory_events AS
SELECT
    n.id AS event_id, coalesce(k.name, CASE WHEN k.memoryOperationType = 1 THEN 'free' ELSE 'alloc' END) AS name,
    n.start_ns, stage.pid_of(k.globalPid) AS pid, NULL::VARCHAR AS tid, coalesce(o.device, k.deviceId) AS device,
    CASE WHEN k.memKind IN (0, 1) THEN 0 ELSE 1 END AS device_type,
    CASE WHEN k.memoryOperationType = 1 THEN -k.bytes ELSE k.bytes END AS bytes,
    NULL::BIGINT AS allocated_bytes, NULL::BIGINT AS reserved_bytes, k.address::VARCHAR AS addr,
    stage.without_nulls(json_object('memory', m.label, 'correlationId', nullif(k.correlationId, 0))) AS details
FROM stage.memory AS k
JOIN stage.numbered AS n ON n.source = 'memory' AND n.row = k.rowid
LEFT JOIN stage.memory_kinds AS m ON m.id = k.memKind
LEFT JOIN stage.listed_ordinals AS o ON o.globalPid = k.globalPid AND o.ordinal = k.deviceId;

INSERT INTO counters BY NAME
WITH names AS (SELECT typeId, metricId, any_value(metricName) AS name, any_value(typeName) AS gpu FROM stage.metric_name GROUP BY ALL)
SELECT
    1 AS trace_id, coalesce(m.name, '[metric ' || k.metricId || ']') AS name, n.start_ns,
    stage.without_nulls(json_object('value', k.value, 'gpu', coalesce(m.gpu, (k.typeId & 255)::VARCHAR))) AS details
FROM stage.metric AS k
JOIN stage.numbered AS n ON n.source = 'metric' AND n.row = k.rowid
LEFT JOIN names AS m ON m.typeId = k.typeId AND m.metricId = k.metricId
ORDER BY ALL;

-- PROCESSES lists the whole system, and a process twice when it became another program: the last name holds. A name may be
-- a path, which may name a person: only its last part is kept.
INSERT INTO processes BY NAME
WITH named AS (
    SELECT globalPid, parse_filename(arg_max(name, rowid)) AS name FROM stage.process GROUP BY globalPid
), seen AS (
    SELECT pid FROM stage.calls UNION SELECT pid FROM stage.ops UNION SELECT pid FROM stage.ranges UNION SELECT pid FROM stage.activities
)
SELECT 1 AS trace_id, s.pid, stage.os_pid_of(s.pid::BIGINT) AS os_pid, n.name
FROM seen AS s LEFT JOIN named AS n ON n.globalPid = s.pid::BIGINT
WHERE s.pid IS NOT NULL ORDER BY s.pid;

INSERT INTO threads
WITH named AS (
    SELECT t.globalTid, s.value AS name FROM stage.thread AS t JOIN stage.strings AS s ON s.id = t.nameId
    UNION SELECT globalTid, text FROM stage.marked WHERE eventType = 39
)
SELECT 1, stage.pid_of(globalTid), stage.tid_of(globalTid), string_agg(DISTINCT name, ', ' ORDER BY name)
FROM named WHERE stage.pid_of(globalTid) IN (SELECT pid FROM processes) GROUP BY globalTid ORDER BY ALL;

-- What no export has.
CREATE OR REPLACE TABLE stage.python_calls (
    call_id BIGINT, name VARCHAR, pid VARCHAR, tid VARCHAR, start_ns BIGINT, dur_ns BIGINT, python_id BIGINT, python_parent_id BIGINT,
    module_id BIGINT, details JSON
);

CREATE OR REPLACE TABLE stage.collectives (
    activity_id BIGINT, name VARCHAR, dtype VARCHAR, in_elems BIGINT, out_elems BIGINT, bytes BIGINT, group_name VARCHAR, group_size BIGINT,
    ranks VARCHAR, sequence BIGINT, peer BIGINT
);
