-- The GPUs of the trace, as the file lists them or else as its activities show them, and how a process numbers them.
-- Reads stage.listed_devices, stage.listed_ordinals, gpu_activities; fills devices, device_ordinals.

INSERT INTO devices
WITH used AS (SELECT DISTINCT device FROM gpu_activities)
SELECT 1, coalesce(l.device, u.device), l.name, l.uuid, l.sm_count, l.memory_bytes, l.compute_capability, l.peak_bytes_per_s
FROM stage.listed_devices AS l FULL JOIN used AS u ON u.device = l.device
WHERE u.device IS NOT NULL OR NOT EXISTS (FROM used)
ORDER BY 2;

INSERT INTO device_ordinals
SELECT DISTINCT 1, a.pid, coalesce(o.ordinal, a.device), a.device
FROM gpu_activities AS a LEFT JOIN stage.listed_ordinals AS o ON o.pid = a.pid AND o.device = a.device
WHERE a.pid IS NOT NULL ORDER BY ALL;
