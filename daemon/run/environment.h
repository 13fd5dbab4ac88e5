// What of this process's environment kcast-exec gets to see.
#ifndef DAEMON_RUN_ENVIRONMENT_H
#define DAEMON_RUN_ENVIRONMENT_H

// Variables that kcast-exec, its sanitizers and the GPU's libraries need, and LC_ALL=C; nothing
// else. NULL-terminated.
char **environment_create(void);
void environment_free(char **environment); // NULL is fine

#endif
