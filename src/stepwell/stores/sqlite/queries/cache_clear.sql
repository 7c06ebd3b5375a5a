-- Drops what is kept of a graph and a callee; null stands for all of them. Takes the write lock of the cache's file.
delete from cached
where (:graph_id is null or graph_id = :graph_id) and (:callee is null or callee = :callee)
