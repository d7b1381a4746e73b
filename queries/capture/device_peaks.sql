-- title: What the GPUs can do
-- what: The memory bandwidth and the FLOP/s by number format that other answers count shares of, and where they are from.
-- value: Measured peaks are what a large copy or product reaches on this GPU; a data sheet promises more, so shares of it look worse.
-- needs: devices
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- column: run VARCHAR -- run label
-- column: rank BIGINT -- rank of the trace; NULL if the file does not say
-- column: device BIGINT -- GPU
-- column: gpu VARCHAR -- its model
-- column: peak VARCHAR -- memory, or a number format; formats are dense, with tensor cores where there are any
-- column: gb_per_s DOUBLE -- of memory: 10⁹ bytes a second, read and written
-- column: tflop_per_s DOUBLE -- of a format: 10¹² operations a second
-- column: source VARCHAR -- measured (traceq capture), or data sheet
-- chart: bar x=peak y=tflop_per_s
-- order: run, rank, device, peak
-- example: traceq query device_peaks --run eager

WITH picked AS (
    SELECT l.run, l.rank, d.trace_id, d.device, d.name, d.peak_bytes_per_s, d.peak_flops, d.peak_source
    FROM devices AS d
    JOIN labels AS l USING (trace_id)
    WHERE l.run = coalesce($run::VARCHAR, l.run)
),

formats AS (
    SELECT trace_id, device, unnest(json_keys(peak_flops)) AS format
    FROM picked
),

peaks AS (
    SELECT trace_id, device, 'memory' AS peak, peak_bytes_per_s / 1e9 AS gb_per_s, NULL::DOUBLE AS tflop_per_s
    FROM picked
    WHERE peak_bytes_per_s IS NOT NULL
    UNION ALL
    SELECT p.trace_id, p.device, f.format, NULL::DOUBLE, (p.peak_flops ->> f.format)::BIGINT / 1e12
    FROM picked AS p
    JOIN formats AS f ON f.trace_id = p.trace_id AND f.device = p.device
)

SELECT p.run, p.rank, p.device, p.name AS gpu, k.peak, k.gb_per_s, k.tflop_per_s, p.peak_source AS source
FROM peaks AS k
JOIN picked AS p ON p.trace_id = k.trace_id AND p.device = k.device
ORDER BY p.run, p.rank, p.device, k.peak <> 'memory', k.peak, p.trace_id
