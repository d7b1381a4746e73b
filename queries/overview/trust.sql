-- title: What the numbers cannot see
-- what: For each run every check of its evidence with its figure, and a sentence where the figure matters.
-- value: Read it before believing a share or a gap.
-- needs: traces
-- layout: wrap
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- column: run VARCHAR -- run label
-- column: item VARCHAR -- the check
-- column: value DOUBLE -- its figure, in the unit that the name ends in; NULL if it cannot be told
-- column: note VARCHAR -- what follows from it; NULL if nothing does
-- order: run, place
-- example: traceq query trust --run eager

WITH picked AS (
    SELECT
        l.trace_id, l.run, l.rank, l.invisible_replays, t.run_id, t.path, t.format, t.world_size, t.resolution_ns, t.status, t.clipped_rows,
        t.op_disagreements, t.warnings, t.metadata
    FROM labels AS l
    JOIN traces AS t USING (trace_id)
    WHERE l.run = coalesce($run::VARCHAR, l.run)
),

per_run AS (
    SELECT
        run,
        any_value(run_id) AS run_id,
        count(DISTINCT rank) AS ranks,
        max(world_size) AS world_size,
        min(resolution_ns) AS resolution_ns,
        count(*) FILTER (status = 'salvaged') AS salvaged,
        sum(invisible_replays) AS invisible_replays,
        count(*) FILTER (format = 'nsys') AS exports,
        sum(clipped_rows) AS clipped_rows,
        sum(op_disagreements) AS op_disagreements,
        count(*) FILTER (metadata->>'$.with_stack' = '1') AS with_stack,
        count(*) FILTER (metadata->>'$.profile_memory' = '1') AS with_memory,
        count(*) FILTER (metadata->>'$.record_shapes' = '1') AS with_shapes
    FROM picked
    GROUP BY run
),

gpu AS (
    SELECT
        p.run,
        count(*) AS activities,
        sum(a.dur_ns) AS activity_ns,
        count(*) FILTER (a.launch_id IS NULL) AS carried_over,
        sum(a.dur_ns) FILTER (a.launch_id IS NULL) AS carried_over_ns,
        count(*) FILTER (a.launch_id IS NOT NULL AND a.op_id IS NULL) AS without_op,
        sum(a.dur_ns) FILTER (a.launch_id IS NOT NULL AND a.op_id IS NULL) AS without_op_ns,
        sum(a.dur_ns) FILTER (a.kind = 'kernel') AS kernel_ns,
        sum(a.dur_ns) FILTER (a.category = 'other') AS other_ns,
        count(*) FILTER (a.start_ns < c.start_ns) AS before_launch,
        count(*) FILTER (a.kind = 'graph') AS graphs
    FROM gpu_activities AS a
    JOIN picked AS p USING (trace_id)
    LEFT JOIN api_calls AS c ON c.trace_id = a.trace_id AND c.call_id = a.launch_id
    GROUP BY p.run
),

answered AS (
    SELECT DISTINCT trace_id, launch_id
    FROM gpu_activities
),

host AS (
    SELECT
        p.run,
        count(*) AS launches,
        count(*) FILTER (c.role = 'launch') AS kernel_launches,
        count(*) FILTER (c.role = 'launch' AND a.launch_id IS NULL) AS unanswered
    FROM api_calls AS c
    JOIN picked AS p USING (trace_id)
    LEFT JOIN answered AS a ON a.trace_id = c.trace_id AND a.launch_id = c.call_id
    WHERE c.role IN ('launch', 'graph_launch')
    GROUP BY p.run
),

calling AS (
    SELECT p.run, count(*) AS calls
    FROM api_calls AS c
    JOIN picked AS p USING (trace_id)
    GROUP BY p.run
),

operating AS (
    SELECT p.run, count(*) AS ops
    FROM ops AS o
    JOIN picked AS p USING (trace_id)
    GROUP BY p.run
),

idle_time AS (
    SELECT p.run, sum(g.ns) AS idle_ns, coalesce(sum(g.ns) FILTER (g.cause = 'unexplained'), 0) AS unexplained_ns
    FROM gap_parts AS g
    JOIN picked AS p USING (trace_id)
    GROUP BY p.run
),

nameless AS (
    SELECT p.run, count(*) AS ranges
    FROM ranges AS r
    JOIN picked AS p USING (trace_id)
    WHERE r.name = 'unknown'
    GROUP BY p.run
),

profiler AS (
    SELECT p.run, sum(o.dur_ns) AS overhead_ns
    FROM overheads AS o
    JOIN picked AS p USING (trace_id)
    GROUP BY p.run
),

-- A period ends with the next step's first work, so both count only if neither is flagged.
followed AS (
    SELECT *, lead(flags) OVER (PARTITION BY trace_id, pid ORDER BY start_ns, step) AS next_flags
    FROM steps
),

stepped AS (
    SELECT
        p.run,
        count(*) AS steps,
        count(*) FILTER (len(s.flags) > 0) AS flagged,
        string_agg(DISTINCT array_to_string(s.flags, ', '), '; ' ORDER BY array_to_string(s.flags, ', ')) FILTER (len(s.flags) > 0) AS flags,
        median(s.period_ns) FILTER (len(s.flags) = 0 AND len(s.next_flags) = 0) AS period_ns
    FROM followed AS s
    JOIN picked AS p USING (trace_id)
    GROUP BY p.run
),

events AS (
    SELECT
        p.run,
        sum(e.lost) FILTER (e.stored_in IS NULL) AS unreadable,
        sum(e.lost) FILTER (e.stored_in IS NOT NULL) AS untimed,
        string_agg(e.lost || ' of category ' || coalesce(e.category, 'none'), ', ' ORDER BY e.lost DESC, e.category)
            FILTER (e.lost > 0 AND e.stored_in IS NOT NULL) AS untimed_where,
        sum(e.skipped) FILTER (e.reason = 'a category that traceq does not know') AS unknown
    FROM event_counts AS e
    JOIN picked AS p USING (trace_id)
    GROUP BY p.run
),

-- Of what an export has a table only if it occurred and was recorded.
missing AS (
    SELECT
        p.run,
        list_filter([
            CASE WHEN NOT coalesce(bool_or(contains(e.category, '_KERNEL')), false) THEN 'kernels' END,
            CASE WHEN NOT coalesce(bool_or(contains(e.category, '_MEMCPY')), false) THEN 'copies' END,
            CASE WHEN NOT coalesce(bool_or(contains(e.category, '_MEMSET')), false) THEN 'memsets' END,
            CASE WHEN NOT coalesce(bool_or(e.stored_in = 'api_calls'), false) THEN 'CUDA calls' END,
            CASE WHEN NOT coalesce(bool_or(starts_with(e.category, 'NVTX_EVENTS')), false) THEN 'NVTX ranges' END
        ], lambda k: k IS NOT NULL) AS kinds
    FROM picked AS p
    LEFT JOIN event_counts AS e USING (trace_id)
    WHERE p.format = 'nsys'
    GROUP BY p.run
),

checks AS (
    SELECT
        r.run,
        1 AS place,
        'salvaged_files' AS item,
        r.salvaged::DOUBLE AS value,
        NULL AS note
    FROM per_run AS r
    UNION ALL
    SELECT p.run, 2, 'reading_notes', len(from_json(p.warnings, '["VARCHAR"]'))::DOUBLE, parse_filename(p.path) || ': ' || array_to_string(from_json(p.warnings, '["VARCHAR"]'), '; ')
    FROM picked AS p
    WHERE json_array_length(p.warnings) > 0
    UNION ALL
    SELECT e.run, 3, 'unreadable_events', coalesce(e.unreadable, 0)::DOUBLE, NULL
    FROM events AS e
    UNION ALL
    SELECT
        e.run, 4, 'rows_without_usable_time', coalesce(e.untimed, 0)::DOUBLE,
        CASE WHEN e.untimed > 0 THEN format('{:,} row(s) without a usable time left out: {}', e.untimed::BIGINT, e.untimed_where) END
    FROM events AS e
    UNION ALL
    SELECT
        e.run, 5, 'events_of_unknown_category', coalesce(e.unknown, 0)::DOUBLE,
        CASE WHEN e.unknown > 0 THEN format('{:,} event(s) of a category that traceq does not know were skipped', e.unknown::BIGINT) END
    FROM events AS e
    UNION ALL
    SELECT
        r.run, 6, 'gpu_activities', coalesce(g.activities, 0)::DOUBLE,
        CASE
            WHEN g.activities IS NULL AND h.launches > 0 THEN format(
                'no GPU rows were recorded although there are {:,} launch calls: no permission for GPU counters, another '
                || 'profiler attached, or the CUPTI library not found; GPU figures are not available', h.launches
            )
            WHEN g.activities IS NULL THEN 'no GPU rows were recorded; GPU figures are not available'
        END
    FROM per_run AS r
    LEFT JOIN gpu AS g USING (run)
    LEFT JOIN host AS h USING (run)
    UNION ALL
    SELECT
        r.run, 7, 'api_calls', coalesce(c.calls, 0)::DOUBLE,
        CASE
            WHEN c.calls IS NULL AND g.activities > 0
                THEN 'no CUDA calls were recorded, so no work is in a step and idle time has no cause'
        END
    FROM per_run AS r
    LEFT JOIN calling AS c USING (run)
    LEFT JOIN gpu AS g USING (run)
    UNION ALL
    SELECT
        r.run, 8, 'operators', coalesce(o.ops, 0)::DOUBLE,
        CASE
            WHEN o.ops IS NULL AND g.activities > 0
                THEN 'no operators were recorded, so GPU work belongs to no operator or module'
        END
    FROM per_run AS r
    LEFT JOIN operating AS o USING (run)
    LEFT JOIN gpu AS g USING (run)
    UNION ALL
    SELECT
        g.run, 9, 'activities_without_launch', g.carried_over::DOUBLE,
        CASE
            WHEN g.carried_over > 0 THEN format(
                '{:,} of {:,} GPU activities ({:.1f} % of their time) have no launch in the trace{}', g.carried_over, g.activities,
                coalesce(100.0 * g.carried_over_ns / nullif(g.activity_ns, 0), 0),
                CASE WHEN c.calls > 0 THEN ': launched before the recording began, they are in no step' ELSE '' END
            )
        END
    FROM gpu AS g
    LEFT JOIN calling AS c USING (run)
    UNION ALL
    SELECT
        h.run, 10, 'launches_without_activity', h.unanswered::DOUBLE,
        CASE
            WHEN h.unanswered > 0 AND g.activities > 0
                THEN format('{:,} of {:,} launch calls have no kernel in the trace', h.unanswered, h.kernel_launches)
        END
    FROM host AS h
    LEFT JOIN gpu AS g USING (run)
    UNION ALL
    SELECT
        n.run, 25, 'ranges_called_unknown', n.ranges::DOUBLE,
        format('{:,} ranges are called unknown: the exporter of torch writes that for a name with a special character', n.ranges)
    FROM nameless AS n
    UNION ALL
    SELECT
        g.run, 11, 'launched_without_op', g.without_op::DOUBLE,
        CASE
            WHEN o.ops > 0 AND 100 * g.without_op_ns >= g.activity_ns AND g.without_op > 0 THEN format(
                '{:,} of {:,} GPU activities ({:.1f} % of their time) have a launch but no operator', g.without_op, g.activities,
                coalesce(100.0 * g.without_op_ns / nullif(g.activity_ns, 0), 0)
            )
        END
    FROM gpu AS g
    LEFT JOIN operating AS o USING (run)
    UNION ALL
    SELECT
        r.run, 12, 'op_disagreements', r.op_disagreements::DOUBLE,
        CASE
            WHEN r.op_disagreements > 0 THEN format(
                '{:,} of {:,} GPU activities name another operator (External id) than the one open at their launch, which counts',
                r.op_disagreements::BIGINT, g.activities
            )
        END
    FROM per_run AS r
    LEFT JOIN gpu AS g USING (run)
    UNION ALL
    SELECT
        r.run, 13, 'clipped_rows', r.clipped_rows::DOUBLE,
        CASE
            WHEN r.clipped_rows > 0
                THEN format('{:,} row(s) of the host outlast the one around them (clock noise) and count as ending with it', r.clipped_rows::BIGINT)
        END
    FROM per_run AS r
    UNION ALL
    SELECT
        g.run, 14, 'activities_before_launch', g.before_launch::DOUBLE,
        CASE WHEN g.before_launch > 0 THEN format('{:,} GPU activities start before their launch call (clock skew)', g.before_launch) END
    FROM gpu AS g
    UNION ALL
    SELECT
        r.run, 15, 'invisible_replays', r.invisible_replays::DOUBLE,
        CASE
            WHEN r.invisible_replays > 0 THEN format(
                '{:,} CUDA graph launches have no GPU activity: their replays were not recorded, so busy, idle and shares '
                || 'are not available{}', r.invisible_replays::BIGINT,
                CASE WHEN r.exports > 0 THEN ' (record again with nsys profile --cuda-graph-trace=node)' ELSE '' END
            )
        END
    FROM per_run AS r
    UNION ALL
    SELECT
        g.run, 15, 'whole_graph_replays', g.graphs::DOUBLE,
        format(
            '{:,} CUDA graph replays were recorded as a whole: they count as busy, but their kernels are not visible and '
            || 'missing in kernel time and its shares (record again with nsys profile --cuda-graph-trace=node)', g.graphs
        )
    FROM gpu AS g
    WHERE g.graphs > 0
    UNION ALL
    SELECT
        r.run, 15, 'kinds_not_recorded', len(m.kinds)::DOUBLE,
        CASE WHEN len(m.kinds) > 0 THEN format('the nsys export has no {}: not recorded, or there were none', array_to_string(m.kinds, ', ')) END
    FROM per_run AS r
    JOIN missing AS m USING (run)
    UNION ALL
    SELECT
        g.run, 16, 'other_pct',
        CASE WHEN r.invisible_replays = 0 THEN 100.0 * coalesce(g.other_ns, 0) / nullif(g.kernel_ns, 0) END,
        CASE WHEN r.invisible_replays = 0 AND 2000 * g.other_ns >= g.kernel_ns AND g.other_ns > 0 THEN format('{:.1f} % of kernel time is in kernels that no rule knows (other)', 100.0 * g.other_ns / nullif(g.kernel_ns, 0)) END
    FROM gpu AS g
    JOIN per_run AS r USING (run)
    UNION ALL
    SELECT
        i.run, 17, 'unexplained_pct', 100.0 * i.unexplained_ns / nullif(i.idle_ns, 0),
        CASE
            WHEN 100 * i.unexplained_ns >= i.idle_ns AND i.unexplained_ns > 0
                THEN format('{:.1f} % of idle time has no known cause (unexplained)', 100.0 * i.unexplained_ns / nullif(i.idle_ns, 0))
        END
    FROM idle_time AS i
    UNION ALL
    SELECT
        r.run, 18, 'resolution_ns', r.resolution_ns::DOUBLE,
        CASE WHEN r.resolution_ns = 1000 THEN 'times are in whole µs: shorter gaps and kernels are blurred' END
    FROM per_run AS r
    UNION ALL
    SELECT
        o.run, 19, 'profiler_overhead_ns', o.overhead_ns::DOUBLE,
        CASE WHEN o.overhead_ns > 0 THEN format('the profiler itself kept the host for {:,.3f} ms', o.overhead_ns / 1000000) END
    FROM profiler AS o
    UNION ALL
    SELECT
        r.run, 20, 'recorded_with_stacks', r.with_stack::DOUBLE,
        CASE
            WHEN r.with_stack > 0 THEN concat_ws(
                ', ', 'recorded with stacks', CASE WHEN r.with_shapes > 0 THEN 'shapes' END, CASE WHEN r.with_memory > 0 THEN 'memory' END
            ) || ': CPU times and launch gaps are inflated by recording stacks'
        END
    FROM per_run AS r
    UNION ALL
    SELECT
        r.run, 21, 'steps', coalesce(s.steps, 0)::DOUBLE,
        CASE WHEN s.steps IS NULL THEN 'no steps are marked, so there are no figures per step (traceq ingest --step-range GLOB names a range)' END
    FROM per_run AS r
    LEFT JOIN stepped AS s USING (run)
    UNION ALL
    SELECT
        s.run, 22, 'steps_left_out', s.flagged::DOUBLE,
        CASE WHEN s.flagged > 0 THEN format('{:,} of {:,} steps are left out of medians ({})', s.flagged, s.steps, s.flags) END
    FROM stepped AS s
    UNION ALL
    SELECT
        r.run, 23, 'inflation_ratio', s.period_ns / nullif(u.step_pipelined_ns, 0),
        CASE
            WHEN g.activities IS NULL THEN NULL
            WHEN u.step_pipelined_ns IS NULL THEN 'idle time is an upper bound: no un-profiled step time is known (traceq ingest --step 12.3ms)'
            WHEN s.period_ns IS NOT NULL THEN format(
                'under the profiler a step takes {:.2f} times the un-profiled {:,.3f} ms{}',
                s.period_ns / nullif(u.step_pipelined_ns, 0),
                u.step_pipelined_ns / 1000000,
                CASE
                    WHEN s.period_ns > 1.05 * u.step_pipelined_ns THEN ': idle time is inflated'
                    WHEN s.period_ns < 0.8 * u.step_pipelined_ns THEN ': is that time of this program?'
                    ELSE ''
                END
            )
        END
    FROM per_run AS r
    JOIN runs AS u USING (run_id)
    LEFT JOIN gpu AS g USING (run)
    LEFT JOIN stepped AS s USING (run)
    UNION ALL
    -- As is_disturbed of run_facts.
    SELECT
        r.run, 23, 'pipelined_of_synced_ratio', u.step_pipelined_ns / nullif(u.step_synced_ns, 0),
        format(
            'disturbed while timing: un-profiled steps that wait for nothing took {:,.3f} ms, those that wait {:,.3f} ms; '
            || 'no verdict rests on either (capture again)',
            u.step_pipelined_ns / 1000000, u.step_synced_ns / 1000000
        )
    FROM per_run AS r
    JOIN runs AS u USING (run_id)
    WHERE u.step_pipelined_ns > 2 * u.step_synced_ns
    UNION ALL
    SELECT
        r.run, 24, 'ranks_missing', (r.world_size - r.ranks)::DOUBLE,
        CASE WHEN r.world_size > r.ranks THEN format('{:,} of {:,} ranks are here', r.ranks, r.world_size) END
    FROM per_run AS r
)

SELECT
    c.run,
    c.item,
    c.value,
    c.note
FROM checks AS c
JOIN per_run AS r USING (run)
ORDER BY r.run_id, c.place, c.item, c.note
