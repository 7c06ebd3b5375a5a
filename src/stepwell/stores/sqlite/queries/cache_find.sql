-- The result kept under a key, if it may still serve. Takes no lock that keeps a writer out.
select value from cached
where graph_id = :graph_id and callee = :callee and digest = :digest and (expires_at is null or expires_at > :now)
