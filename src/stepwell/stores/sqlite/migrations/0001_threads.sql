-- Twelve tables hold everything.
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
-- anchors      one row where rows were pruned and one that stays follows them: the digest that was there, so that the chain
--              goes on over the gap; or where a row is only held, since others need it. Replaced when the thread is pruned
--              anew. One more, at seq -1, counts them. A thread that never was pruned has none.
-- inbox        one row a message from outside, in the order in which they came. Anybody appends, under no fence; only the
--              holder of the thread consumes, in the transaction of the record that says what came of it. What was consumed
--              loses its body and stays, so that the same message sent twice is known. The thread need not have begun.
-- shapes       one row a shape of a graph: what its fingerprint, which every checkpoint names, is the hash of. Written
--              by the first admission of a graph with that shape, shared by all threads, never updated.
-- items        one row an item of the item store, which belongs to no thread. Updated and deleted as its users say; what
--              a node wrote changes in the transaction that commits the superstep. `ordinal` is the order they are
--              listed in: that in which they were made.
-- keys         one row a thread of a database that is encrypted, and one ('') for the database: the data key of what is
--              stored there, wrapped by a key that is never here. Inserted in the transaction of the first row that needs it
--              and deleted with the thread; changed only when the data key is wrapped anew.
--
-- The path of a row: an admission writes the thread, the run and the first checkpoints in one transaction; each
-- superstep then updates the thread and inserts what it made; the last commit also settles the run and frees the thread.
-- `seq` is one counter per thread over checkpoints and records of all namespaces and lineages.
--
-- Every row ends in a digest over its other columns; a shape's key is its digest. Tables are STRICT, so that a value of
-- another type cannot enter.
-- checkpoints and records are rowid tables: measured, bodies of a few kilobytes cost a third more in a clustered key.
-- One index on checkpoints and one on records besides the key, each for a read that must not scan a thread, and one of the
-- journal, which costs those alone who keep one. More would cost every superstep: what is newest is found from the end of the key, a lineage's end in `lineages`.

create table threads (
  thread_id   text    not null primary key,
  graph_id    text    not null,
  status      text    not null,
  epoch       integer not null,
  run_id      text    not null,
  holder      text    not null,
  lease_until real    not null,
  head_seq    integer not null,
  head_digest blob    not null,
  lineages    integer not null,
  updated_at  integer not null,
  digest      blob    not null
) strict, without rowid;

create table runs (
  run_id        text    not null primary key,
  thread_id     text    not null,
  lineage       integer not null,
  status        text    not null,
  durability    text    not null,
  input         blob    not null,
  input_digest  blob    not null,
  base_seq      integer not null,
  started_at    integer not null,
  finished_at   integer not null,
  recoveries    integer not null,
  progress_seq  integer not null,
  checkpoint_id text    not null,
  error         text    not null,
  kind          text    not null,
  takeovers     integer not null,
  events        integer not null,
  epoch         integer not null,
  digest        blob    not null
) strict;

create index runs_of_thread on runs (thread_id, epoch);

create table checkpoints (
  thread_id     text    not null,
  namespace     text    not null,
  lineage       integer not null,
  seq           integer not null,
  checkpoint_id text    not null,
  parent_seq    integer,
  parent_digest blob    not null,
  step          integer not null,
  source        text    not null,
  run_id        text    not null,
  graph_id      text    not null,
  version       text    not null,
  fingerprint   text    not null,
  created_at    integer not null,
  metadata      text    not null,
  body          blob    not null,
  digest        blob    not null,
  primary key (thread_id, seq)
) strict;

create unique index checkpoints_by_id on checkpoints (thread_id, checkpoint_id, namespace);

create table lineages (
  thread_id      text    not null,
  lineage        integer not null,
  parent_lineage integer,
  parent_seq     integer,
  head_seq       integer not null,
  digest         blob    not null,
  primary key (thread_id, lineage)
) strict, without rowid;

create table records (
  thread_id   text    not null,
  namespace   text    not null,
  lineage     integer not null,
  seq         integer not null,
  base_seq    integer not null,
  base_digest blob    not null,
  ordinal     integer not null,
  kind        text    not null,
  task_id     text    not null,
  run_id      text    not null,
  created_at  integer not null,
  body        blob    not null,
  digest      blob    not null,
  primary key (thread_id, seq)
) strict;

create unique index records_of_base on records (thread_id, base_seq, ordinal);

create index records_of_journal on records (thread_id, seq)
where kind in ('step', 'intent', 'receipt', 'effect_failed', 'doubt', 'resolved', 'decision', 'arrived');

create table blobs (
  thread_id text not null,
  name      blob not null,
  body      blob not null,
  digest    blob not null,
  primary key (thread_id, name)
) strict;

create table effects (
  key         text    not null,
  thread_id   text    not null,
  scope       text    not null,
  lineage     integer not null,
  position    text    not null,
  node        text    not null,
  activation  integer not null,
  call_id     text    not null,
  name        text    not null,
  status      text    not null,
  epoch       integer not null,
  run_id      text    not null,
  fingerprint text    not null,
  seq         integer not null,
  attempts    integer not null,
  started_at  integer not null,
  finished_at integer not null,
  body        blob    not null,
  digest      blob    not null,
  primary key (key, thread_id)
) strict;

create unique index effects_global on effects (key) where scope = 'global';
create index effects_of_position on effects (thread_id, position, seq, key);
create index effects_by_seq on effects (thread_id, seq, key);
create index effects_open on effects (thread_id, seq, key) where status in ('intent', 'doubt');

create table events (
  run_id          text    not null,
  thread_id       text    not null,
  ordinal         integer not null,
  kind            text    not null,
  created_at      integer not null,
  previous_digest blob    not null,
  body            blob    not null,
  digest          blob    not null,
  primary key (run_id, ordinal)
) strict, without rowid;

create index events_of_thread on events (thread_id) where ordinal = 1;

create table anchors (
  thread_id     text    not null,
  seq           integer not null,
  held          integer not null,
  parent_seq    integer,
  parent_digest blob    not null,
  shown_seq     integer,
  row_digest    blob    not null,
  checkpoints   integer not null,
  records       integer not null,
  notes         integer not null,
  pruned_at     integer not null,
  digest        blob    not null,
  primary key (thread_id, seq)
) strict, without rowid;

create table inbox (
  thread_id    text    not null,
  message_id   text    not null,
  ordinal      integer not null,
  kind         text    not null,
  key          text    not null,
  created_at   integer not null,
  content      blob    not null,
  consumed_seq integer not null,
  body         blob    not null,
  digest       blob    not null,
  primary key (thread_id, message_id)
) strict;

create unique index inbox_in_order on inbox (thread_id, ordinal);

create index inbox_waiting on inbox (thread_id, ordinal) where consumed_seq = 0;

create table shapes (
  fingerprint text not null primary key,
  shape       text not null
) strict, without rowid;

create table items (
  ordinal    integer not null primary key,
  namespace  text    not null,
  key        text    not null,
  value      blob    not null,
  created_at integer not null,
  updated_at integer not null,
  ttl        integer,
  expires_at integer,
  digest     blob    not null
) strict;

create unique index items_by_key on items (namespace, key);
create index items_that_expire on items (expires_at);

create table keys (
  thread_id  text    not null primary key,
  name       blob    not null,
  key_id     text    not null,
  wrapped    blob    not null,
  created_at integer not null,
  digest     blob    not null
) strict, without rowid;
