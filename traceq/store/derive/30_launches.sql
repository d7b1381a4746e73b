-- What each API call does, and which call started which GPU activity.
-- Reads stage.calls, stage.call_places, stage.callers, stage.activities; fills stage.roles, stage.linked.

CREATE OR REPLACE TABLE stage.roles AS
WITH named AS (
    SELECT DISTINCT recorded_name, regexp_replace(recorded_name, '(_v[0-9]+)?(_ptsz|_ptds)?$', '') AS name FROM stage.calls
)
SELECT
    recorded_name, name,
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
    a.activity_id, a.kind, a.device, a.stream, a.start_ns, a.dur_ns, a.correlation_id, one.launch_id,
    CASE WHEN a.pid IS NOT NULL THEN a.pid WHEN o.is_one THEN o.pid ELSE c.pid END AS pid,
    p.step, p.lane AS launch_lane, p.marks AS launch_marks, c.start_ns AS launch_start_ns, c.start_ns + c.dur_ns AS launch_end_ns,
    nullif(a.external_id, 0) AS own_external_id, coalesce(nullif(a.external_id, 0), nullif(c.external_id, 0)) AS external_id,
    nullif(a.external_id, 0) = nullif(a.correlation_id, 0) AS is_correlation
FROM stage.activities AS a
CROSS JOIN stage.callers AS o
LEFT JOIN one ON a.scope = one.scope AND a.correlation_id = one.correlation_id
LEFT JOIN stage.calls AS c ON c.call_id = one.launch_id
LEFT JOIN stage.call_places AS p ON p.call_id = one.launch_id;
