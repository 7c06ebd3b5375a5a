-- Lock a thread's row unless another transaction has it: whether it is there, and whether it was free.
select
  exists (select from stepwell.threads where thread_id = $1),
  exists (select from (select from stepwell.threads where thread_id = $1 for update skip locked) as free)
