-- Keeps a result, in place of what is there under its key. Takes the write lock of the cache's file.
insert or replace into cached (graph_id, callee, digest, expires_at, value)
values (:graph_id, :callee, :digest, :expires_at, :value)
