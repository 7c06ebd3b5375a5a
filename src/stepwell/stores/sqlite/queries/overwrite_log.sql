-- Write the first page as it is. A transaction whose sync failed may still stand in the log behind the last valid frame;
-- this one takes its place there. Holds the write lock.
pragma application_id = 1400139895
