-- The first $12 of the ids $11 with $1 <= id < $2. Reads no table.
SELECT DISTINCT u.id, true AS may FROM unnest($11::bigint[]) AS u(id) WHERE u.id >= $1::bigint AND u.id < $2::bigint ORDER BY u.id {order} LIMIT $12
