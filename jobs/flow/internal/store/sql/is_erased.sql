-- Was a node's job of the run erased?
SELECT erased_at IS NOT NULL FROM pelton.flow_run WHERE id = $1
