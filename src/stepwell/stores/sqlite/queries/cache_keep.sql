-- Keeps a result, in place of what is there under its key.
insert or replace into cached (graph_id, callee, digest, expires_at, value)
values (:graph_id, :callee, :digest, :expires_at, :value)
