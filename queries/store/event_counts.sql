-- title: What became of every event in the file
-- what: Events by phase and category: kept in which table, skipped and why, lost and why; their sum is the file's events.
-- value: Shows that nothing was dropped in silence.
-- needs: event_counts
-- layout: wrap
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- column: run VARCHAR -- run label
-- column: rank BIGINT -- rank of the trace; NULL if the file does not say
-- column: ph VARCHAR -- phase: X complete, i instant, M metadata, C counter, s and f flow
-- column: category VARCHAR -- category as recorded; NULL if the event has none
-- column: events BIGINT count -- events in the file
-- column: kept BIGINT count -- rows that the store holds or takes names from
-- column: skipped BIGINT count -- knowingly left out
-- column: lost BIGINT count -- unreadable or without a usable time
-- column: stored_in VARCHAR -- table; NULL if skipped or unreadable
-- column: reason VARCHAR -- why skipped or lost
-- order: run, rank, events DESC
-- example: traceq query event_counts --run eager

SELECT
    l.run,
    l.rank,
    e.ph,
    e.category,
    e.kept + e.skipped + e.lost AS events,
    e.kept,
    e.skipped,
    e.lost,
    e.stored_in,
    e.reason
FROM event_counts AS e
JOIN labels AS l USING (trace_id)
WHERE l.run = coalesce($run::VARCHAR, l.run)
ORDER BY l.run, l.rank, events DESC, e.ph, e.category, e.stored_in, e.reason, e.trace_id
