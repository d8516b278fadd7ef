-- Views over several tables, and macros. In a stack the innermost frame is the first.

CREATE VIEW wall AS
SELECT * EXCLUDE (in_wall, failure) FROM samples WHERE in_wall
UNION ALL BY NAME
SELECT * EXCLUDE (in_wall) FROM waits WHERE in_wall;

CREATE VIEW stack_frames AS
SELECT p.stack_id, p.position, f.*
FROM (
    SELECT stack_id, unnest(frames) AS frame_id, generate_subscripts(frames, 1) AS position
    FROM stacks
) p JOIN frames f USING (frame_id);

CREATE MACRO top(events) AS TABLE
SELECT
    method,
    round(sum(weight_ns) / 1e6, 1) AS self_ms,
    round(100 * sum(weight_ns) / sum(sum(weight_ns)) OVER (), 1) AS percent
FROM query_table(events) GROUP BY method ORDER BY sum(weight_ns) DESC, method;

CREATE MACRO totals(events) AS TABLE
WITH
    sums AS (SELECT stack_id, sum(weight_ns) AS ns FROM query_table(events) GROUP BY stack_id),
    methods AS (
        SELECT DISTINCT stack_id, method FROM stack_frames
        WHERE stack_id IN (SELECT stack_id FROM sums)
    )
SELECT
    method,
    round(sum(ns) / 1e6, 1) AS total_ms,
    round(100 * sum(ns) / (SELECT sum(ns) FROM sums), 1) AS percent
FROM methods JOIN sums USING (stack_id) GROUP BY method ORDER BY sum(ns) DESC, method;

CREATE MACRO callers(events, pattern) AS TABLE
WITH
    sums AS (SELECT stack_id, sum(weight_ns) AS ns FROM query_table(events) GROUP BY stack_id),
    pairs AS (
        SELECT DISTINCT f.stack_id, f.method, o.method AS caller
        FROM stack_frames f
        LEFT JOIN stack_frames o ON o.stack_id = f.stack_id AND o.position = f.position + 1
        WHERE f.method LIKE pattern AND f.stack_id IN (SELECT stack_id FROM sums)
    )
SELECT method, caller, round(sum(ns) / 1e6, 1) AS total_ms
FROM pairs JOIN sums USING (stack_id) GROUP BY ALL ORDER BY sum(ns) DESC, method, caller;

CREATE MACRO callees(events, pattern) AS TABLE
WITH
    sums AS (SELECT stack_id, sum(weight_ns) AS ns FROM query_table(events) GROUP BY stack_id),
    pairs AS (
        SELECT DISTINCT f.stack_id, f.method, o.method AS callee
        FROM stack_frames f
        LEFT JOIN stack_frames o ON o.stack_id = f.stack_id AND o.position = f.position - 1
        WHERE f.method LIKE pattern AND f.stack_id IN (SELECT stack_id FROM sums)
    )
SELECT method, callee, round(sum(ns) / 1e6, 1) AS total_ms
FROM pairs JOIN sums USING (stack_id) GROUP BY ALL ORDER BY sum(ns) DESC, method, callee;

CREATE MACRO with_method(pattern) AS TABLE
SELECT DISTINCT stack_id FROM stack_frames WHERE method LIKE pattern;

CREATE MACRO folded(events) AS TABLE
WITH sums AS (SELECT stack_id, sum(weight_ns) AS ns FROM query_table(events) GROUP BY stack_id)
SELECT
    coalesce(string_agg(f.method, ';' ORDER BY f.position DESC), '[no stack]') AS stack,
    any_value(sums.ns)::BIGINT AS ns
FROM sums LEFT JOIN stack_frames f USING (stack_id)
GROUP BY sums.stack_id ORDER BY stack;
