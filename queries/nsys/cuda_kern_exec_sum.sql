-- title: From launch to end of kernels, as nsys sums it
-- what: For each thread, device, launching call and kernel: times in the call (a), in the queue (q), in the kernel (k) and in all (t), as nsys stats has it. Ranks are listed apart.
-- value: A long queue is a host that runs ahead, which is good; a kernel shorter than its call is launch-bound. A call that replays a graph counts with each of its kernels.
-- needs: gpu_activities, api_calls
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- param: top BIGINT = 20 -- rows to show for each run; NULL means all
-- column: run VARCHAR -- run label
-- column: rank BIGINT -- rank of the trace; NULL if the file does not say
-- column: pid BIGINT -- process that launches, as the system numbers it; NULL if not recorded
-- column: tid VARCHAR -- thread that launches, as recorded
-- column: device BIGINT -- GPU
-- column: count BIGINT count -- kernels whose launch was recorded; others are left out
-- column: q_count BIGINT count -- those that started after their call had returned, or as it did
-- column: t_avg_ns DOUBLE ns -- from the start of the call to the end of the kernel, or of the call if that is later: mean
-- column: t_med_ns DOUBLE ns -- likewise: median
-- column: t_min_ns BIGINT ns -- likewise: least
-- column: t_max_ns BIGINT ns -- likewise: most
-- column: t_stddev_ns DOUBLE ns -- likewise: standard deviation of a sample; 0 for one
-- column: a_avg_ns DOUBLE ns -- length of the call: mean
-- column: a_med_ns DOUBLE ns -- likewise: median
-- column: a_min_ns BIGINT ns -- likewise: least
-- column: a_max_ns BIGINT ns -- likewise: most
-- column: a_stddev_ns DOUBLE ns -- likewise: standard deviation of a sample; 0 for one
-- column: q_avg_ns DOUBLE ns -- time in the queue, from the end of the call to the start of the kernel, where that is not negative; NULL if it never is: mean
-- column: q_med_ns DOUBLE ns -- likewise: median
-- column: q_min_ns BIGINT ns -- likewise: least
-- column: q_max_ns BIGINT ns -- likewise: most
-- column: q_stddev_ns DOUBLE ns -- likewise: standard deviation of a sample; 0 for one
-- column: k_avg_ns DOUBLE ns -- duration of the kernel: mean
-- column: k_med_ns DOUBLE ns -- likewise: median
-- column: k_min_ns BIGINT ns -- likewise: least
-- column: k_max_ns BIGINT ns -- likewise: most
-- column: k_stddev_ns DOUBLE ns -- likewise: standard deviation of a sample; 0 for one
-- column: api_name VARCHAR -- name of the call as nsys prints it: as recorded, without _v and four digits at its end
-- column: kernel_name VARCHAR -- name of the kernel
-- order: run, t_avg_ns DESC
-- example: traceq query cuda_kern_exec_sum --run eager -p top=5

WITH launched AS (
    SELECT
        l.run,
        l.rank,
        a.trace_id,
        a.activity_id,
        c.pid,
        c.tid,
        a.device,
        c.recorded_name,
        a.name,
        c.start_ns AS api_start_ns,
        c.dur_ns AS api_ns,
        CASE WHEN a.start_ns >= c.start_ns + c.dur_ns THEN a.start_ns - c.start_ns - c.dur_ns END AS queue_ns,
        a.start_ns AS kernel_start_ns,
        a.dur_ns AS kernel_ns,
        greatest(c.start_ns + c.dur_ns, a.start_ns + a.dur_ns) - c.start_ns AS total_ns
    FROM gpu_activities AS a
    JOIN api_calls AS c ON c.trace_id = a.trace_id AND c.call_id = a.launch_id
    JOIN labels AS l ON l.trace_id = a.trace_id
    WHERE a.kind = 'kernel' AND l.run = coalesce($run::VARCHAR, l.run)
),

grouped AS (
    SELECT
        run,
        rank,
        trace_id,
        pid,
        tid,
        device,
        recorded_name,
        name,
        count(*) AS count,
        count(queue_ns) AS q_count,
        sum(total_ns) / nullif(count(total_ns), 0) AS t_avg_ns,
        median(total_ns) AS t_med_ns,
        min(total_ns) AS t_min_ns,
        max(total_ns) AS t_max_ns,
        coalesce(sqrt((count(total_ns) * sum(total_ns::HUGEINT * total_ns) - sum(total_ns) * sum(total_ns))::DOUBLE / nullif(count(total_ns) * (count(total_ns) - 1), 0)), 0) AS t_stddev_ns,
        sum(api_ns) / nullif(count(api_ns), 0) AS a_avg_ns,
        median(api_ns) AS a_med_ns,
        min(api_ns) AS a_min_ns,
        max(api_ns) AS a_max_ns,
        coalesce(sqrt((count(api_ns) * sum(api_ns::HUGEINT * api_ns) - sum(api_ns) * sum(api_ns))::DOUBLE / nullif(count(api_ns) * (count(api_ns) - 1), 0)), 0) AS a_stddev_ns,
        sum(queue_ns) / nullif(count(queue_ns), 0) AS q_avg_ns,
        median(queue_ns) AS q_med_ns,
        min(queue_ns) AS q_min_ns,
        max(queue_ns) AS q_max_ns,
        CASE WHEN count(queue_ns) > 0 THEN coalesce(sqrt((count(queue_ns) * sum(queue_ns::HUGEINT * queue_ns) - sum(queue_ns) * sum(queue_ns))::DOUBLE / nullif(count(queue_ns) * (count(queue_ns) - 1), 0)), 0) END AS q_stddev_ns,
        sum(kernel_ns) / nullif(count(kernel_ns), 0) AS k_avg_ns,
        median(kernel_ns) AS k_med_ns,
        min(kernel_ns) AS k_min_ns,
        max(kernel_ns) AS k_max_ns,
        coalesce(sqrt((count(kernel_ns) * sum(kernel_ns::HUGEINT * kernel_ns) - sum(kernel_ns) * sum(kernel_ns))::DOUBLE / nullif(count(kernel_ns) * (count(kernel_ns) - 1), 0)), 0) AS k_stddev_ns
    FROM launched
    GROUP BY run, rank, trace_id, pid, tid, device, recorded_name, name
),

ranked AS (
    SELECT
        *,
        row_number() OVER (PARTITION BY run ORDER BY t_avg_ns DESC, rank, pid, tid, device, recorded_name, name, trace_id) AS place
    FROM grouped
)

SELECT
    g.run,
    g.rank,
    coalesce(p.os_pid, try_cast(g.pid AS BIGINT)) AS pid,
    g.tid,
    g.device,
    g.count,
    g.q_count,
    g.t_avg_ns,
    g.t_med_ns,
    g.t_min_ns,
    g.t_max_ns,
    g.t_stddev_ns,
    g.a_avg_ns,
    g.a_med_ns,
    g.a_min_ns,
    g.a_max_ns,
    g.a_stddev_ns,
    g.q_avg_ns,
    g.q_med_ns,
    g.q_min_ns,
    g.q_max_ns,
    g.q_stddev_ns,
    g.k_avg_ns,
    g.k_med_ns,
    g.k_min_ns,
    g.k_max_ns,
    g.k_stddev_ns,
    regexp_replace(g.recorded_name, '_v.{4}$', '') AS api_name,
    g.name AS kernel_name
FROM ranked AS g
LEFT JOIN processes AS p ON p.trace_id = g.trace_id AND p.pid = g.pid
WHERE g.place <= coalesce($top::BIGINT, g.place)
ORDER BY g.run, g.place
