// The environment of kcast-exec: a small part of the daemon's own. Called by child.c.
#ifndef DAEMON_RUN_ENVIRONMENT_H
#define DAEMON_RUN_ENVIRONMENT_H

// Returns the variables that kcast-exec, its sanitizers and the GPU's libraries need, and LC_ALL=C.
// scratch is the folder for temporary files, NULL: the one of the daemon's own TMPDIR.
// NULL-terminated; freed by environment_free.
char **environment_create(const char *scratch);
void environment_free(char **environment); // NULL is fine

#endif
