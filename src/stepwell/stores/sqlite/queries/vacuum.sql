-- Write the database anew without its free pages. Locks out whoever writes until it is done; all of it, or nothing.
vacuum
