-- Reads which contents are stored, and keeps them from being swept until the commit.
SELECT hash FROM pelton.flow_content WHERE hash = ANY ($1::bytea[]) AND part = 0 ORDER BY hash FOR KEY SHARE
