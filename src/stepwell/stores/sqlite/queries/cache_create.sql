-- The tables of a cache, in a database of its own, where they are not there yet.
create table if not exists cached (
    graph_id   text not null,
    callee     text not null,
    digest     text not null,
    expires_at integer,
    value      blob not null,
    primary key (graph_id, callee, digest)
) strict;
create index if not exists cached_until on cached (expires_at) where expires_at is not null;
