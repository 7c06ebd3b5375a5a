-- Create the schema, which is not there. Holds the lock of `lock_schema.sql`.
create schema stepwell
