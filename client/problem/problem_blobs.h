// Gives the files of a problem to the daemons, so that jobs can name them by digest. Called by the
// commands and the check that submit jobs for a problem folder; a search reads these files from its
// run file instead.
#ifndef CLIENT_PROBLEM_PROBLEM_BLOBS_H
#define CLIENT_PROBLEM_PROBLEM_BLOBS_H

struct daemon_pool;
struct problem_dir;

// Adds problem.json, the reference and the baseline to the pool, which copies them.
void problem_blobs_add(struct daemon_pool *daemon_pool, const struct problem_dir *dir);

#endif
