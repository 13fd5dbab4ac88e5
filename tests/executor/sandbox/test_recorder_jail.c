// The jail in which candidates are recorded, as their own code finds it, and what is left of them.
#include "tests/executor/gpu/record/recorder_fixture.h"

// A candidate that fails with what it has found out.
#define TELL "raise RuntimeError(', '.join(found) or 'nothing')\n"
#define TRIES                                                                                      \
    HEAD "found = []\ndef tries(name, what):\n    try:\n        what()\n"                          \
         "        found.append(name)\n    except OSError:\n        pass\n"

static void a_candidate_has_no_way_out_of_its_jail(void **state)
{
    recorder_becomes(
        *state,
        TRIES "tries('connects', lambda: socket.create_connection(('127.0.0.1', 22), 1))\n"
              "tries('sends', lambda: socket.socket(type=socket.SOCK_DGRAM)"
              ".connect(('192.0.2.1', 9)))\n"
              "tries('packets', lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))\n"
              "for path in ('/x', '/usr/x', '/dev/x', os.path.dirname(torch.__file__) + '/x'):\n"
              "    tries(path, lambda: open(path, 'w'))\n"
              "for path in ('/etc/passwd', '/dev/mem', '/proc/1/mem', '/proc/1/environ'):\n"
              "    tries(path, lambda: open(path, 'rb'))\n"
              "for path in ('/home', '/root', '/var', '/sys', '/proc/1/fd'):\n"
              "    tries(path, lambda: os.listdir(path))\n"
              "tries('kill', lambda: os.kill(1, signal.SIGKILL) or os.kill(1, 0) and 0 or "
              "os.kill(os.getppid() + 1000, 0))\n"
              "tries('root', lambda: os.setuid(0))\n"
              "tries('chroot', lambda: os.chroot('/'))\n"
              "pids = [pid for pid in os.listdir('/proc') if pid.isdigit()]\n"
              "if len(pids) > 2: found.append(f'processes {pids}')\n" TELL,
        VERDICT_COMPILE_ERROR, "RuntimeError: nothing");
}

static void a_candidate_has_no_more_than_its_share(void **state)
{
    struct recorder_fixture *f = *state;

    recorder_becomes(
        f, HEAD "import resource\nraise RuntimeError(resource.getrlimit(resource.RLIMIT_CPU))\n",
        VERDICT_COMPILE_ERROR, "RuntimeError: (20, 21)"); // RECORDER_LIMIT
    recorder_becomes(f, HEAD "bytearray(17 << 30)\n", VERDICT_COMPILE_ERROR,
                     "candidate.py:2: MemoryError");
    recorder_becomes(
        f,
        TRIES "tries('space', lambda: os.posix_fallocate(os.open('x', os.O_CREAT | os.O_RDWR)"
              ", 0, 5 << 30))\n" TELL,
        VERDICT_COMPILE_ERROR, "RuntimeError: nothing");
    recorder_becomes(
        f,
        HEAD "started = 0\ntry:\n    while started < 300:\n"
             "        if os.fork() == 0: signal.pause()\n        started += 1\n"
             "except OSError: pass\nraise RuntimeError('all' if started > 255 else 'some')\n",
        VERDICT_COMPILE_ERROR, "RuntimeError: some");
    recorder_becomes(f, SCALE LAUNCH, VERDICT_NONE, "");
}

// A candidate that looks for what others have left: files, and processes beside the recorder's own.
#define LOOK                                                                                       \
    HEAD "found = [name for name in os.listdir('.') if name != 'candidate.py']\n"                  \
         "found += [pid for pid in os.listdir('/proc') if pid.isdigit()][2:]\n" TELL

// Neither processes, however they have hidden, nor files that nobody may read; and the recorder is
// the same as before, because another one would have to import PyTorch first.
static void nothing_is_left_for_the_next(void **state)
{
    struct recorder_fixture *f = *state;

    recorder_becomes(f, SCALE LAUNCH, VERDICT_NONE, "");
    pid_t pid = f->recorder.pid;
    recorder_becomes(f,
                     HEAD
                     "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0: signal.pause()\n"
                     "    os._exit(0)\n"
                     "os.makedirs('a/b')\nopen('a/b/c', 'w').close()\nos.symlink('/usr', 'a/usr')\n"
                     "os.chmod('a/b', 0)\nos.chmod('a', 0)\nos.symlink('/', 'root')\n"
                     "os.mkfifo('fifo')\nopen(b'\\xff\\n', 'w').close()\nos.mkdir('removed-0')\n"
                     "try: os.chmod('.', 0)\nexcept PermissionError: pass\n"
                     "raise RuntimeError('done')\n",
                     VERDICT_COMPILE_ERROR, "RuntimeError: done");
    recorder_becomes(f, LOOK, VERDICT_COMPILE_ERROR, "RuntimeError: nothing");
    recorder_becomes(f,
                     HEAD "for _ in range(3000):\n    os.mkdir('d')\n    os.chdir('d')\n"
                          "raise RuntimeError('done')\n",
                     VERDICT_COMPILE_ERROR, "RuntimeError: done");
    recorder_becomes(f, LOOK, VERDICT_COMPILE_ERROR, "RuntimeError: nothing");
    assert_int_equal(f->recorder.pid, pid);
}

// Without a sandbox there is a folder of its own below /tmp, which goes with the recorder.
static void without_a_sandbox_it_leaves_nothing_either(void **state)
{
    struct recorder_fixture *f = *state;
    char folder[sizeof(f->recorder.folder)];

    f->plan.sandbox_off = true;
    recorder_becomes(f, SCALE LAUNCH, VERDICT_NONE, "");
    assert_string_equal(f->outcome.compiled->sandbox, "off");
    snprintf(folder, sizeof(folder), "%s", f->recorder.folder);
    assert_int_equal(access(folder, F_OK), 0);
    recorder_becomes(f,
                     HEAD "os.makedirs('a/b')\nos.chmod('a', 0)\nos.chmod('.', 0)\n"
                          "raise RuntimeError('done')\n",
                     VERDICT_COMPILE_ERROR, "RuntimeError: done");
    recorder_becomes(f, SCALE LAUNCH, VERDICT_NONE, "");
    f->plan.sandbox_off = false;
    recorder_becomes(f, SCALE LAUNCH, VERDICT_NONE, "");
    assert_int_equal(access(folder, F_OK), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_candidate_has_no_way_out_of_its_jail),
        cmocka_unit_test(a_candidate_has_no_more_than_its_share),
        cmocka_unit_test(nothing_is_left_for_the_next),
        cmocka_unit_test(without_a_sandbox_it_leaves_nothing_either),
    };

    return cmocka_run_group_tests(tests, recorder_set_up, recorder_tear_down);
}
