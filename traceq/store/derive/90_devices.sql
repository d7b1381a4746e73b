-- The GPUs of the trace, as the file lists them or else as its activities show them, and how a process numbers them.
-- Reads stage.listed_devices, stage.listed_ordinals, gpu_activities; fills devices, device_ordinals.

-- What the makers' data sheets say: GB/s, and dense TFLOP/s (tensor cores where there are any). The first that matches counts.
CREATE OR REPLACE TABLE stage.models AS
FROM (VALUES
    (1, 'GB200', 8000, 40, 80, 1250, 2500, 2500, 5000, 5000, 10000),
    (2, 'GH200.*144', 4900, 67, 67, 494.7, 989.4, 989.4, 1978.9, 1978.9, NULL),
    (3, 'GH200', 4000, 67, 67, 494.7, 989.4, 989.4, 1978.9, 1978.9, NULL),
    (4, 'B200', 8000, 37, 75, 1125, 2250, 2250, 4500, 4500, 9000),
    (5, 'B100', 8000, 30, 60, 875, 1750, 1750, 3500, 3500, 7000),
    (6, 'H200 NVL', 4800, 60, 60, 417.5, 835.5, 835.5, 1671, 1671, NULL),
    (7, 'H200', 4800, 67, 67, 494.7, 989.4, 989.4, 1978.9, 1978.9, NULL),
    (8, 'H100 NVL', 3938, 60, 60, 417.5, 835.5, 835.5, 1671, 1671, NULL),
    (9, 'H100 PCIe', 2039, 51, 51, 378, 756, 756, 1513, 1513, NULL),
    (10, 'H100', 3352, 67, 67, 494.7, 989.4, 989.4, 1978.9, 1978.9, NULL),
    (11, 'A100.*80GB PCIe|A100-PCIE-80GB', 1935, 19.5, 19.5, 156, 312, 312, NULL, 624, NULL),
    (12, 'A100.*80GB', 2039, 19.5, 19.5, 156, 312, 312, NULL, 624, NULL),
    (13, 'A100', 1555, 19.5, 19.5, 156, 312, 312, NULL, 624, NULL),
    (14, '\bA30\b', 933, 10.3, 10.3, 82, 165, 165, NULL, 330, NULL),
    (15, '\bA40\b', 696, 0.58, 37.4, 74.8, 149.7, 149.7, NULL, 299.3, NULL),
    (16, '\bA10\b', 600, 0.49, 31.2, 62.5, 125, 125, NULL, 250, NULL),
    (17, 'L40S', 864, 1.4, 91.6, 183, 362, 362, 733, 733, NULL),
    (18, '\bL40\b', 864, 1.4, 90.5, 90.5, 181, 181, 362, 362, NULL),
    (19, '\bL4\b', 300, 0.47, 30.3, 60, 121, 121, 242, 242, NULL),
    (20, '\bT4\b', 320, 0.25, 8.1, NULL, 65, NULL, NULL, 130, NULL),
    (21, 'V100-PCIE', 900, 7, 14, NULL, 112, NULL, NULL, NULL, NULL),
    (22, 'V100', 900, 7.8, 15.7, NULL, 125, NULL, NULL, NULL, NULL),
    (23, 'RTX 5090', 1792, 1.6, 104.8, 104.8, 209.5, 209.5, 419, 838, 1676),
    (24, 'RTX 4090', 1008, 1.3, 82.6, 82.6, 165.2, 165.2, 330.3, 660.6, NULL),
    (25, 'RTX 3090', 936, 0.56, 35.6, 35.6, 71, 71, NULL, 284, NULL),
    (26, 'MI355X', 8000, 78.6, 157.3, NULL, 2516.6, 2516.6, 5033.2, 5033.2, 10066.3),
    (27, 'MI325X', 6000, 163.4, 163.4, 653.7, 1307.4, 1307.4, 2614.9, 2614.9, NULL),
    (28, 'MI300X', 5300, 163.4, 163.4, 653.7, 1307.4, 1307.4, 2614.9, 2614.9, NULL),
    (29, 'MI250X', 1638, 47.9, 47.9, NULL, 191.5, 191.5, NULL, 191.5, NULL),
    (30, 'MI210', 1638, 45.3, 45.3, NULL, 181, 181, NULL, 181, NULL)
) AS t (place, pattern, gb_per_s, float64, float32, tf32, float16, bfloat16, float8, int8, float4);

CREATE OR REPLACE MACRO stage.per_s(tera) AS (tera * 1000)::BIGINT * 1000000000;

INSERT INTO devices BY NAME
WITH used AS (SELECT DISTINCT device FROM gpu_activities),
known AS (
    SELECT l.name, min(m.place) AS place
    FROM (SELECT DISTINCT name FROM stage.listed_devices) AS l JOIN stage.models AS m ON regexp_matches(l.name, m.pattern) GROUP BY ALL
), peaks AS (
    SELECT
        k.name, m.gb_per_s * 1000000000::BIGINT AS peak_bytes_per_s,
        json_merge_patch('{}', to_json({
            'float64': stage.per_s(float64), 'float32': stage.per_s(float32), 'tf32': stage.per_s(tf32), 'float16': stage.per_s(float16),
            'bfloat16': stage.per_s(bfloat16), 'float8': stage.per_s(float8), 'int8': stage.per_s(int8), 'float4': stage.per_s(float4)
        })) AS peak_flops
    FROM known AS k JOIN stage.models AS m USING (place)
)
SELECT
    1 AS trace_id, coalesce(l.device, u.device) AS device, l.name, l.uuid, l.sm_count, l.memory_bytes, l.compute_capability,
    coalesce(l.peak_bytes_per_s, p.peak_bytes_per_s) AS peak_bytes_per_s, p.peak_flops,
    CASE WHEN coalesce(l.peak_bytes_per_s, p.peak_bytes_per_s) IS NOT NULL THEN 'data sheet' END AS peak_source
FROM stage.listed_devices AS l FULL JOIN used AS u ON u.device = l.device
LEFT JOIN peaks AS p ON p.name = l.name
WHERE u.device IS NOT NULL OR NOT EXISTS (FROM used)
ORDER BY 2;

INSERT INTO device_ordinals
SELECT DISTINCT 1, a.pid, coalesce(o.ordinal, a.device), a.device
FROM gpu_activities AS a LEFT JOIN stage.listed_ordinals AS o ON o.pid = a.pid AND o.device = a.device
WHERE a.pid IS NOT NULL ORDER BY ALL;
