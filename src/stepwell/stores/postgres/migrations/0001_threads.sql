-- The tables of SQLite's body, under the same names. The schema is called stepwell here, and whatever the store was told
-- where a script is run; it is there by then.
--
-- threads      one row a thread: who may write it (epoch, run_id, holder, lease_until) and where its history ends
--              (head_seq, head_digest). Every writing transaction updates this row first and stops if that changed no
--              row, so two writers of one thread cannot both land.
-- runs         one row a drive of a thread, with the input it was given. `epoch` is the admission that last took it, so
--              runs of a thread have an order that no clock decides.
-- checkpoints  one row a superstep, edit or fork; never updated. Chained to its parent by digest.
-- lineages     one row a lineage of a thread that has branched: where it was forked, and its newest checkpoint as of when
--              another lineage got the thread's newest. A thread that never branched has none.
-- records      one row an outcome, failure, question, answer or attempt on a base checkpoint; never updated. Chained to
--              its base by digest and numbered within it from 0, so that a lost one leaves a gap.
-- blobs        one row a large value of a thread, named by its content, so that it is there once however many rows refer to
--              it; never updated.
-- effects      one row an effect, that is a key, in each thread that has it: how it stands now, and which record says so.
--              Replaced in the transaction that writes that record. Rows of the scope "global" outlive their thread, and
--              there is one for a key.
-- events       one row a lifecycle event of a run that keeps a log; never updated. Chained to the event before it by digest
--              and numbered within the run from 1. `runs.events` counts them, so that a lost end is visible too.
-- inbox        one row a message from outside, in the order in which they came. Anybody appends, under no fence; only the
--              holder of the thread consumes, in the transaction of the record that says what came of it. What was consumed
--              loses its body and stays, so that the same message sent twice is known. The thread need not have begun.
-- shapes       one row a shape of a graph: what its fingerprint, which every checkpoint names, is the hash of. Written
--              by the first admission of a graph with that shape, shared by all threads, never updated.
-- items        one row an item of the item store, which belongs to no thread. Updated and deleted as its users say; what
--              a node wrote changes in the transaction that commits the superstep. `ordinal` is the order they are
--              listed in: that in which they were made.
-- keys         one row a thread of a database that is encrypted, and one ('') for the database: the wrapped data key.
--
-- The path of a row: an admission writes the thread, the run and the first checkpoints in one transaction; each
-- superstep then updates the thread and inserts what it made; the last commit also settles the run and frees the thread.
-- `seq` is one counter per thread over checkpoints and records of all namespaces and lineages.
--
-- meta         what a database says of itself: the version of its schema, and by what it is known among all databases.
--
-- Every row ends in a digest over its other columns; a shape's key is its digest. Text is compared byte by byte
-- (collate "C"), as in SQLite: order is the same on both. It holds no NUL here, so `packing.py` escapes it.
-- One index on checkpoints and one on records besides the key, each for a read that must not scan a thread, and one of the
-- journal, which costs those alone who keep one. More would cost every superstep: what is newest is found from the end of
-- the key, a lineage's end in `lineages`.

create table stepwell.meta (
  name  text collate "C" not null primary key,
  value text collate "C" not null
);

create table stepwell.threads (
  thread_id   text collate "C" not null primary key,
  graph_id    text collate "C" not null,
  status      text collate "C" not null,
  epoch       bigint           not null,
  run_id      text collate "C" not null,
  holder      text collate "C" not null,
  lease_until double precision not null,
  head_seq    bigint           not null,
  head_digest bytea            not null,
  lineages    bigint           not null,
  updated_at  bigint           not null,
  digest      bytea            not null
);

create table stepwell.runs (
  run_id        text collate "C" not null primary key,
  thread_id     text collate "C" not null,
  lineage       bigint           not null,
  status        text collate "C" not null,
  durability    text collate "C" not null,
  input         bytea            not null,
  input_digest  bytea            not null,
  base_seq      bigint           not null,
  started_at    bigint           not null,
  finished_at   bigint           not null,
  recoveries    bigint           not null,
  progress_seq  bigint           not null,
  checkpoint_id text collate "C" not null,
  error         text collate "C" not null,
  kind          text collate "C" not null,
  takeovers     bigint           not null,
  events        bigint           not null,
  epoch         bigint           not null,
  digest        bytea            not null
);

create index runs_of_thread on stepwell.runs (thread_id, epoch);

create table stepwell.checkpoints (
  thread_id     text collate "C" not null,
  namespace     text collate "C" not null,
  lineage       bigint           not null,
  seq           bigint           not null,
  checkpoint_id text collate "C" not null,
  parent_seq    bigint,
  parent_digest bytea            not null,
  step          bigint           not null,
  source        text collate "C" not null,
  run_id        text collate "C" not null,
  graph_id      text collate "C" not null,
  version       text collate "C" not null,
  fingerprint   text collate "C" not null,
  created_at    bigint           not null,
  metadata      text collate "C" not null,
  body          bytea            not null,
  digest        bytea            not null,
  primary key (thread_id, seq)
);

create unique index checkpoints_by_id on stepwell.checkpoints (thread_id, checkpoint_id, namespace);

create table stepwell.lineages (
  thread_id      text collate "C" not null,
  lineage        bigint           not null,
  parent_lineage bigint,
  parent_seq     bigint,
  head_seq       bigint           not null,
  digest         bytea            not null,
  primary key (thread_id, lineage)
);

create table stepwell.records (
  thread_id   text collate "C" not null,
  namespace   text collate "C" not null,
  lineage     bigint           not null,
  seq         bigint           not null,
  base_seq    bigint           not null,
  base_digest bytea            not null,
  ordinal     bigint           not null,
  kind        text collate "C" not null,
  task_id     text collate "C" not null,
  run_id      text collate "C" not null,
  created_at  bigint           not null,
  body        bytea            not null,
  digest      bytea            not null,
  primary key (thread_id, seq)
);

create unique index records_of_base on stepwell.records (thread_id, base_seq, ordinal);

create index records_of_journal on stepwell.records (thread_id, seq)
where kind in ('step', 'intent', 'receipt', 'effect_failed', 'doubt', 'resolved', 'decision', 'arrived');

create table stepwell.blobs (
  thread_id text collate "C" not null,
  name      bytea            not null,
  body      bytea            not null,
  digest    bytea            not null,
  primary key (thread_id, name)
);

create table stepwell.effects (
  key         text collate "C" not null,
  thread_id   text collate "C" not null,
  scope       text collate "C" not null,
  lineage     bigint           not null,
  position    text collate "C" not null,
  node        text collate "C" not null,
  activation  bigint           not null,
  call_id     text collate "C" not null,
  name        text collate "C" not null,
  status      text collate "C" not null,
  epoch       bigint           not null,
  run_id      text collate "C" not null,
  fingerprint text collate "C" not null,
  seq         bigint           not null,
  attempts    bigint           not null,
  started_at  bigint           not null,
  finished_at bigint           not null,
  body        bytea            not null,
  digest      bytea            not null,
  primary key (key, thread_id)
);

create unique index effects_global on stepwell.effects (key) where scope = 'global';
create index effects_of_position on stepwell.effects (thread_id, position, seq, key);
create index effects_by_seq on stepwell.effects (thread_id, seq, key);
create index effects_open on stepwell.effects (thread_id, seq, key) where status in ('intent', 'doubt');

create table stepwell.events (
  run_id          text collate "C" not null,
  thread_id       text collate "C" not null,
  ordinal         bigint           not null,
  kind            text collate "C" not null,
  created_at      bigint           not null,
  previous_digest bytea            not null,
  body            bytea            not null,
  digest          bytea            not null,
  primary key (run_id, ordinal)
);

create index events_of_thread on stepwell.events (thread_id) where ordinal = 1;

create table stepwell.anchors (
  thread_id     text collate "C" not null,
  seq           bigint           not null,
  held          bigint           not null,
  parent_seq    bigint,
  parent_digest bytea            not null,
  shown_seq     bigint,
  row_digest    bytea            not null,
  checkpoints   bigint           not null,
  records       bigint           not null,
  notes         bigint           not null,
  pruned_at     bigint           not null,
  digest        bytea            not null,
  primary key (thread_id, seq)
);

create table stepwell.inbox (
  thread_id    text collate "C" not null,
  message_id   text collate "C" not null,
  ordinal      bigint           not null,
  kind         text collate "C" not null,
  key          text collate "C" not null,
  created_at   bigint           not null,
  content      bytea            not null,
  consumed_seq bigint           not null,
  body         bytea            not null,
  digest       bytea            not null,
  primary key (thread_id, message_id)
);

create unique index inbox_in_order on stepwell.inbox (thread_id, ordinal);

create index inbox_waiting on stepwell.inbox (thread_id, ordinal) where consumed_seq = 0;

create table stepwell.shapes (
  fingerprint text collate "C" not null primary key,
  shape       text collate "C" not null
);

create table stepwell.items (
  ordinal    bigint           not null primary key,
  namespace  text collate "C" not null,
  key        text collate "C" not null,
  value      bytea            not null,
  created_at bigint           not null,
  updated_at bigint           not null,
  ttl        bigint,
  expires_at bigint,
  digest     bytea            not null
);

create unique index items_by_key on stepwell.items (namespace, key);
create index items_that_expire on stepwell.items (expires_at);

create sequence stepwell.item_ordinals;

create table stepwell.keys (
  thread_id  text collate "C" not null primary key,
  name       bytea            not null,
  key_id     text collate "C" not null,
  wrapped    bytea            not null,
  created_at bigint           not null,
  digest     bytea            not null
);

insert into stepwell.meta (name, value) values ('schema_version', '1'), ('database', gen_random_uuid());
