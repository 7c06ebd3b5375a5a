-- How what is too old is found in a cache, where that is not there yet. Takes the write lock of its file.
create index if not exists cached_until on cached (expires_at) where expires_at is not null
