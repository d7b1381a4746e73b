-- What each API call does, and which call started which GPU activity.
-- Reads stage.calls, stage.call_steps, stage.activities; fills api_calls, stage.linked.

INSERT INTO api_calls BY NAME
WITH named AS (
    SELECT c.* EXCLUDE (scope), s.step, regexp_replace(c.recorded_name, '(_v[0-9]+)?(_ptsz|_ptds)?$', '') AS name
    FROM stage.calls AS c LEFT JOIN stage.call_steps AS s USING (call_id)
)
SELECT
    1 AS trace_id, *,
    CASE
        WHEN regexp_matches(name, '^(cuda|cu|hip)GraphLaunch') THEN 'graph_launch'
        WHEN regexp_matches(name, '^(cuda|cu|hip)\w*Launch\w*(Kernel|Grid)|^(cuda|cu|hip)Launch(Async|Cooperative|$)') THEN 'launch'
        WHEN regexp_matches(name, '^(cuda|cu|hip)(Device|Ctx|Stream|Event)Synchronize') THEN 'sync'
        WHEN regexp_matches(name, '^(cuda|cu|hip)StreamWait') THEN 'wait'
        WHEN regexp_matches(name, '^(cuda|cu|hip)Memcpy') THEN 'memcpy'
        WHEN regexp_matches(name, '^(cuda|cu|hip)Memset') THEN 'memset'
        WHEN regexp_matches(name, '^(cuda|cu|hip)(Ext)?(Malloc|Free|Host(Alloc|Malloc|Free|Register|Unregister))') THEN 'alloc'
        WHEN regexp_matches(
            name, '^(cuda|cu|hip)Mem(Alloc|Free|Create|Release|Map|Unmap|AddressReserve|AddressFree|SetAccess|HostAlloc|Pool)'
        ) THEN 'alloc'
        WHEN regexp_matches(name, '^(cuda|cu|hip)(Module|Library)(Load|Get)|^(cuda|cu|hip)Kernel(Load|GetFunction)|FatBinary') THEN 'load'
        ELSE 'other'
    END AS role
FROM named;

-- A correlation id links only if one call of its scope has it; id 0 means "none".
CREATE OR REPLACE TABLE stage.linked AS
WITH one AS (
    SELECT scope, correlation_id, min(call_id) AS launch_id
    FROM stage.calls WHERE correlation_id <> 0 GROUP BY ALL HAVING count(*) = 1
)
SELECT
    a.activity_id, a.kind, a.device, a.start_ns, a.dur_ns, one.launch_id,
    CASE WHEN a.pid IS NOT NULL THEN a.pid WHEN o.is_one THEN o.pid ELSE c.pid END AS pid,
    s.step, c.tid AS launch_tid, c.start_ns AS launch_start_ns, c.start_ns + c.dur_ns AS launch_end_ns
FROM stage.activities AS a
CROSS JOIN stage.callers AS o
LEFT JOIN one ON a.scope = one.scope AND a.correlation_id = one.correlation_id
LEFT JOIN stage.calls AS c ON c.call_id = one.launch_id
LEFT JOIN stage.call_steps AS s ON s.call_id = one.launch_id;
