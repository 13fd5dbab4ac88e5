// The fake driver does what its manual (tests/support/fake_gpu/fake.h) says, because other tests
// rely on it.
#include "executor/gpu/driver.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include "common/file.h"
#include "common/mem.h"
#include "tests/support/gpu.h"
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define N 1000
#define A 0.5f

static struct driver cuda;
static cu_stream stream;
static cu_event begin, end;

#define OK(call) assert_int_equal(cuda.call, CU_OK)

static void open_gpu(const char *settings)
{
    gpu_fake_set(settings);
    OK(init(0));
    cu_context context;
    OK(context_retain(&context, 0));
    OK(context_set(context));
    OK(stream_create(&stream, CU_STREAM_NON_BLOCKING));
    OK(event_create(&begin, CU_EVENT_DEFAULT));
    OK(event_create(&end, CU_EVENT_DEFAULT));
}

static void close_gpu(void)
{
    (void)cuda.event_destroy(begin); // fails after a fault
    (void)cuda.event_destroy(end);
    OK(context_release(0));
}

static cu_result launch(cu_module module, const char *name, unsigned threads, void **parameters)
{
    cu_function function;
    struct cu_launch how = {{4, 1, 1}, {threads, 1, 1}, 0, stream, NULL, 0};

    assert_int_equal(cuda.module_function(&function, module, name), CU_OK);
    return cuda.launch(&how, function, parameters, NULL);
}

// x and y have N floats and room for one more: x[i] = i, y[i] = 1.
struct arrays {
    cu_pointer x, y;
    float *host_x, *host_y; // the same memory, which the fake GPU has on the host
    int n;
    float a;
    void *parameters[4];
};

static void fill_arrays(struct arrays *s)
{
    for (int i = 0; i <= N; i++) {
        s->host_x[i] = (float)i;
        s->host_y[i] = 1;
    }
}

static void make_arrays(struct arrays *s)
{
    OK(allocate(&s->x, (N + 1) * sizeof(float)));
    OK(allocate(&s->y, (N + 1) * sizeof(float)));
    s->host_x = (float *)(uintptr_t)s->x;
    s->host_y = (float *)(uintptr_t)s->y;
    s->n = N;
    s->a = A;
    s->parameters[0] = &s->x;
    s->parameters[1] = &s->y;
    s->parameters[2] = &s->n;
    s->parameters[3] = &s->a;
    fill_arrays(s);
}

static double time_ns(cu_module module, const char *name, unsigned threads, struct arrays *s)
{
    OK(event_record(begin, stream));
    assert_int_equal(launch(module, name, threads, s->parameters), CU_OK);
    OK(event_record(end, stream));
    OK(event_query(end));
    float ms;
    OK(event_elapsed(&ms, begin, end));
    return (double)ms * 1e6;
}

static void devices_are_as_the_settings_say(void **state)
{
    int count, value;

    (void)state;
    gpu_fake_set("count=2;name=NVIDIA A1;arch=80;l2=4M;memory=2G");
    OK(init(0));
    OK(device_count(&count));
    assert_int_equal(count, 2);
    cu_device device;
    OK(device_get(&device, 1));
    char name[64];
    OK(device_name(name, sizeof(name), device));
    assert_string_equal(name, "NVIDIA A1");
    struct cu_uuid uuid;
    OK(device_uuid(&uuid, device));
    assert_int_equal(uuid.byte[0], 0xfa);
    assert_int_equal(uuid.byte[15], 1);
    OK(device_attribute(&value, CU_ATTRIBUTE_MAJOR, device));
    assert_int_equal(value, 8);
    OK(device_attribute(&value, CU_ATTRIBUTE_L2_BYTES, device));
    assert_int_equal(value, 4 << 20);
    assert_int_equal(cuda.device_get(&device, 2), 101);
    gpu_fake_set("count=2;colour=red");
    assert_int_equal(cuda.init(0), 1);
    gpu_fake_set("count=0");
    OK(init(0));
    OK(device_count(&count));
    assert_int_equal(count, 0);
}

static void start_up_faults_happen(void **state)
{
    (void)state;
    gpu_fake_set("fault=no-device");
    assert_int_equal(cuda.init(0), CU_NO_DEVICE);
    gpu_fake_set("fault=init");
    assert_int_equal(cuda.init(0), 999);
    gpu_fake_set("fault=oom");
    assert_int_equal(cuda.init(0), 1); // this fault needs a number
    gpu_fake_set("fault=context");
    OK(init(0));
    cu_context context;
    assert_int_equal(cuda.context_retain(&context, 0), 46);
    open_gpu("fault=oom:2;memory=1M");
    cu_pointer pointer;
    OK(allocate(&pointer, 4096));
    assert_int_equal(cuda.allocate(&pointer, 4096), CU_OUT_OF_MEMORY);
    OK(allocate(&pointer, 4096));
    assert_int_equal(pointer % 256, 0);
    assert_int_equal(cuda.allocate(&pointer, 1 << 20), CU_OUT_OF_MEMORY);
    assert_int_equal(cuda.set_bytes(pointer, 0, 4097, stream), 1); // outside
    close_gpu();
}

static void faults_come_and_go_with_a_file(void **state)
{
    char path[] = "/tmp/kcast-fault-XXXXXX", settings[64];
    int fd = mkstemp(path);

    (void)state;
    snprintf(settings, sizeof(settings), "fault=@%s", path);
    open_gpu(settings);
    cu_pointer pointer;
    OK(allocate(&pointer, 64)); // an empty file is no fault
    assert_int_equal(write(fd, "oom:3", 5), 5);
    close(fd);
    OK(allocate(&pointer, 64));
    assert_int_equal(cuda.allocate(&pointer, 64), CU_OUT_OF_MEMORY);
    assert_int_equal(unlink(path), 0);
    OK(allocate(&pointer, 64));
    close_gpu();
}

static void exactly_the_given_range_is_set(void **state)
{
    const size_t from = 100, size = (2 << 20) + 5, all = 3 << 20;

    (void)state;
    open_gpu("");
    cu_pointer memory;
    OK(allocate(&memory, all));
    const unsigned char *bytes = (const unsigned char *)(uintptr_t)memory;
    OK(set_bytes(memory, 7, all, stream));
    OK(set_bytes(memory + from, 0, size, stream));
    for (size_t i = 0; i < all; i++) {
        assert_int_equal(bytes[i], i >= from && i < from + size ? 0 : 7);
    }
    OK(set_words(memory, 0x01020304, 2, stream));
    assert_int_equal(bytes[4], 4);
    assert_int_equal(bytes[8], 7);
    close_gpu();
}

static void time_follows_the_work(void **state)
{
    double sum = 0, squares = 0;

    (void)state;
    open_gpu("noise=0;block=256;fault=slow:6:50");
    struct arrays s;
    make_arrays(&s);
    cu_module module;
    OK(module_load(&module, "fake:fk_axpy fk_axpy_slow25 fk_axpy_fast50 unknown"));
    OK(event_record(begin, stream));
    OK(event_record(end, stream));
    float ms;
    OK(event_elapsed(&ms, begin, end));
    assert_true(fabs((double)ms * 1e6 - 1250) <= 32);
    assert_true(fabs(time_ns(module, "fk_axpy", 256, &s) - 22250) <= 32);
    assert_true(fabs(time_ns(module, "fk_axpy", 128, &s) - (21000 * 1.1 + 1250)) <= 32);
    assert_true(fabs(time_ns(module, "fk_axpy_slow25", 256, &s) - (21000 * 1.25 + 1250)) <= 32);
    assert_true(fabs(time_ns(module, "fk_axpy_fast50", 256, &s) - (21000 * 0.5 + 1250)) <= 32);
    assert_true(fabs(time_ns(module, "unknown", 256, &s) - 21250) <= 32);
    assert_true(fabs(time_ns(module, "fk_axpy", 256, &s) - (21000 * 1.5 + 1250)) <= 32);
    close_gpu();

    open_gpu("noise=1;seed=7");
    make_arrays(&s);
    OK(module_load(&module, "fake:fk_axpy"));
    for (int i = 0; i < 400; i++) {
        double ns = time_ns(module, "fk_axpy", 256, &s) - 22250;

        sum += ns;
        squares += ns * ns;
    }
    assert_true(fabs(sum / 400) < 40);
    assert_true(fabs(sqrt(squares / 400) - 210) < 30);
    close_gpu();
}

// What is wrong after one launch of fk_axpy, and after a second one on fresh arrays. Bits of
// `seen`.
enum { Y = 1, BEHIND = 2, X = 4, Y_SECOND = 8 };

static int look(const struct arrays *s)
{
    int seen = s->host_y[N] != 1 ? BEHIND : 0;

    for (int i = 0; i < N; i++) {
        seen |= s->host_y[i] != fmaf(A, (float)i, 1) ? Y : 0;
        seen |= s->host_x[i] != (float)i ? X : 0;
    }
    return seen;
}

static void names_choose_what_a_kernel_does(void **state)
{
    static const struct {
        const char *name;
        int seen;
    } cases[] = {
        {"fk_axpy", 0},
        {"_Z14fk_axpy_slow10PKfPfif", 0},
        {"fk_axpy_wrong", Y | Y_SECOND},
        {"fk_axpy_zero", Y | Y_SECOND},
        {"fk_axpy_nothing", Y | Y_SECOND},
        {"fk_axpy_nondet", Y | Y_SECOND},
        {"fk_axpy_oob", BEHIND},
        {"fk_axpy_input", X},
        {"fk_axpy_count", Y_SECOND},
        {"fk_axpy_late", 0},
    };

    (void)state;
    open_gpu("");
    struct arrays s;
    make_arrays(&s);
    cu_module module;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char *image = xasprintf("fake:%s", cases[i].name);

        OK(module_load(&module, image));
        fill_arrays(&s);
        assert_int_equal(launch(module, cases[i].name, 256, s.parameters), CU_OK);
        int seen = look(&s);
        fill_arrays(&s);
        assert_int_equal(launch(module, cases[i].name, 256, s.parameters), CU_OK);
        seen |= (look(&s) & Y) != 0 ? Y_SECOND : 0;
        if (seen != cases[i].seen) {
            fail_msg("%s: saw %d, expected %d", cases[i].name, seen, cases[i].seen);
        }
        OK(module_unload(module));
        free(image);
    }
    OK(module_load(&module, "fake:fk_axpy_toobig"));
    assert_int_equal(launch(module, "fk_axpy_toobig", 256, s.parameters), 701);
    assert_int_equal(launch(module, "fk_axpy_toobig", 2048, s.parameters), 1);
    close_gpu();
}

static void references_give_values_and_scales(void **state)
{
    cu_pointer out, scale;
    const double *y, *bound;

    (void)state;
    open_gpu("");
    struct arrays s;
    make_arrays(&s);
    OK(allocate(&out, N * sizeof(double)));
    OK(allocate(&scale, N * sizeof(double)));
    y = (const double *)(uintptr_t)out;
    bound = (const double *)(uintptr_t)scale;
    cu_module module;
    OK(module_load(&module, "fake:fk_ref_axpy fk_ref_sum"));
    double a = -0.25;
    assert_int_equal(
        launch(module, "fk_ref_axpy", 256, (void *[]){&s.x, &s.y, &out, &scale, &s.n, &a}), CU_OK);
    assert_true(y[8] == -1.0 && bound[8] == 3.0);
    assert_int_equal(launch(module, "fk_ref_sum", 256, (void *[]){&s.x, &out, &scale, &s.n}),
                     CU_OK);
    assert_true(y[0] == N * (N - 1) / 2.0 && bound[0] == y[0]);
    close_gpu();
}

static void a_fault_stays(void **state)
{
    static const struct {
        const char *name;
        cu_result result;
    } cases[] = {{"fk_axpy_fault", CU_ILLEGAL_ADDRESS},
                 {"fk_axpy_misaligned", CU_MISALIGNED_ADDRESS},
                 {"fk_axpy_assert", CU_ASSERT}};

    (void)state;
    struct arrays s;
    cu_module module;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char *image = xasprintf("fake:%s", cases[i].name);

        open_gpu("");
        make_arrays(&s);
        OK(module_load(&module, image));
        assert_int_equal(launch(module, cases[i].name, 256, s.parameters), CU_OK);
        assert_int_equal(cuda.event_query(end), cases[i].result);
        assert_int_equal(cuda.stream_synchronize(stream), cases[i].result);
        assert_int_equal(cuda.allocate(&s.x, 4), cases[i].result);
        assert_int_equal(cuda.context_synchronize(), cases[i].result);
        cuda.context_release(0);
        free(image);
    }
    open_gpu("fault=dies:2");
    make_arrays(&s);
    OK(module_load(&module, "fake:fk_axpy"));
    assert_int_equal(launch(module, "fk_axpy", 256, s.parameters), CU_OK);
    OK(context_synchronize());
    assert_int_equal(launch(module, "fk_axpy", 256, s.parameters), CU_OK);
    assert_int_equal(cuda.context_synchronize(), 214);
    cuda.context_release(0);
    open_gpu("");
    make_arrays(&s);
    OK(module_load(&module, "fake:fk_axpy"));
    s.n = 1 << 20; // behind the arrays
    assert_int_equal(launch(module, "fk_axpy", 256, s.parameters), CU_OK);
    assert_int_equal(cuda.context_synchronize(), CU_ILLEGAL_ADDRESS);
    cuda.context_release(0);
}

static void a_hang_never_ends(void **state)
{
    pid_t child = fork();

    (void)state;
    if (child == 0) { // only the end of its process can end the hang
        struct arrays s;

        open_gpu("");
        make_arrays(&s);
        cu_module module;
        OK(module_load(&module, "fake:fk_axpy_hang fk_copy"));
        OK(event_record(begin, stream));
        assert_int_equal(launch(module, "fk_axpy_hang", 256, s.parameters), CU_OK);
        assert_int_equal(launch(module, "fk_copy", 256, s.parameters), CU_OK);
        OK(event_record(end, stream));
        OK(event_query(begin));
        assert_int_equal(cuda.event_query(end), CU_NOT_READY);
        assert_true(s.host_y[5] == 1); // what is queued behind it does not run
        alarm(1);
        (void)cuda.stream_synchronize(stream);
        _exit(1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM);
}

static void cubins_are_read(void **state)
{
    char *path = xasprintf("%s/tests/data/cuda/variables.cubin",
                           getenv("KCAST_ROOT") ? getenv("KCAST_ROOT") : ".");
    cu_pointer counter, first;

    (void)state;
    struct bytes cubin = {0};
    struct err err = ERR_INIT;
    assert_int_equal(file_read(&cubin, path, 1 << 20, &err), 0);
    open_gpu("arch=80");
    cu_module module;
    assert_int_equal(cuda.module_load(&module, cubin.data), CU_NO_BINARY_FOR_GPU);
    assert_int_equal(cuda.module_load(&module, "hello, world"), 200);
    close_gpu();
    open_gpu("");
    struct arrays s;
    make_arrays(&s);
    OK(module_load(&module, cubin.data));
    cu_function function;
    assert_int_equal(cuda.module_function(&function, module, "fk_sum"), CU_NOT_FOUND);
    OK(module_function(&function, module, "_Z7fk_copyILi4EEvPKfPfi"));
    OK(module_function(&function, module, "fk_axpy_state"));
    int value;
    OK(function_get(&value, CU_FUNCTION_SHARED_BYTES, function));
    assert_int_equal(value, 256);
    OK(function_get(&value, CU_FUNCTION_REGISTERS, function));
    assert_in_range(value, 8, 64);
    size_t size;
    OK(module_global(&first, &size, module, "first"));
    assert_int_equal(size, 4);
    assert_int_equal(*(int *)(uintptr_t)first, 3);
    OK(module_global(&counter, &size, module, "counter"));
    assert_int_equal(launch(module, "fk_axpy_state", 256, s.parameters), CU_OK);
    assert_int_equal(look(&s), 0);
    assert_int_equal(*(int *)(uintptr_t)counter, 1);
    fill_arrays(&s);
    assert_int_equal(launch(module, "fk_axpy_state", 256, s.parameters), CU_OK);
    assert_int_equal(look(&s), Y); // it has seen that it ran before
    fill_arrays(&s);
    OK(set_bytes(counter, 0, 4, stream));
    assert_int_equal(launch(module, "fk_axpy_state", 256, s.parameters), CU_OK);
    assert_int_equal(look(&s), 0);
    close_gpu();
    bytes_clear(&cubin);
    free(path);
}

static void the_executors_kernels_run(void **state)
{
    uint64_t *host, clock;
    uint64_t key = 5, more = 6, count = N, bytes = N * sizeof(float), ns = 1000000;
    int dtype = 0, distribution = 1;
    double low = 2, high = 3;
    struct arrays s;

    (void)state;
    open_gpu("");
    make_arrays(&s);
    cu_pointer words, nothing = 0;
    OK(allocate(&words, 64));
    OK(set_bytes(words, 0, 64, stream));
    host = (uint64_t *)(uintptr_t)words;
    host[4] = host[5] = host[6] = 7;
    cu_module module;
    OK(module_load(&module, "fake:kc_inputs kc_digest kc_stamp kc_spin"));
    void *inputs[] = {&s.x, &dtype, &distribution, &low, &high, &key, &count, &count, &nothing};
    assert_int_equal(launch(module, "kc_inputs", 256, inputs), CU_OK);
    for (int i = 0; i < N; i++) {
        assert_true(s.host_x[i] >= 2 && s.host_x[i] <= 3);
    }
    inputs[8] = &words; // compares
    s.host_x[N - 1] += 1;
    assert_int_equal(launch(module, "kc_inputs", 256, inputs), CU_OK);
    assert_int_equal(host[0], 1);
    s.host_x[3] = NAN;
    void *digest[] = {&s.x, &dtype, &bytes, &key, &more, &words};
    assert_int_equal(launch(module, "kc_digest", 256, digest), CU_OK);
    assert_true(host[1] != 0 && host[3] == 1); // one element is not finite
    void *stamp[] = {&words, &key, &more, &(cu_pointer){words + 32}, &(uint64_t){2}};
    assert_int_equal(launch(module, "kc_stamp", 1, stamp), CU_OK);
    clock = host[0];
    assert_true(host[3] != 1 && host[4] == 0 && host[5] == 0 && host[6] == 7);
    assert_int_equal(launch(module, "kc_spin", 1, (void *[]){&ns}), CU_OK);
    assert_int_equal(launch(module, "kc_stamp", 1, stamp), CU_OK);
    assert_in_range(host[0] - clock, ns, ns + 10000);
    close_gpu();
}

static int load_the_fakes(void **state)
{
    (void)state;
    gpu_fake_use("");
    struct err err = ERR_INIT;
    return driver_load(&cuda, &err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_are_as_the_settings_say),
        cmocka_unit_test(start_up_faults_happen),
        cmocka_unit_test(faults_come_and_go_with_a_file),
        cmocka_unit_test(exactly_the_given_range_is_set),
        cmocka_unit_test(time_follows_the_work),
        cmocka_unit_test(names_choose_what_a_kernel_does),
        cmocka_unit_test(references_give_values_and_scales),
        cmocka_unit_test(a_fault_stays),
        cmocka_unit_test(a_hang_never_ends),
        cmocka_unit_test(cubins_are_read),
        cmocka_unit_test(the_executors_kernels_run),
    };
    return cmocka_run_group_tests(tests, load_the_fakes, NULL);
}
