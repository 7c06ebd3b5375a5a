-- The table of a cache, in a file of its own, where it is not there yet. Takes the write lock of that file.
create table if not exists cached (
    graph_id   text not null,
    callee     text not null,
    digest     text not null,
    expires_at integer,
    value      blob not null,
    primary key (graph_id, callee, digest)
) strict
