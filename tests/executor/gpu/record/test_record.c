// What is asked of a recorder and what is made of its answers, with an interpreter that answers as
// the test says (tests/support/fake_python.py), in the recorder's real sandbox.
#include "common/file.h"
#include "executor/gpu/arena.h"
#include "executor/gpu/program/recording.h"
#include "executor/gpu/record/turn.h"
#include "tests/executor/gpu/record/recorder_fixture.h"
#include "tests/support/gpu_cubin.h"
#include <elf.h>
#include <stddef.h>
#include <sys/file.h>

#define FAKE "tests/support/fake_python.py"

// Copies the interpreter into the folder, by this name.
static void install(struct recorder_fixture *f, const char *name)
{
    struct bytes text = {.data = NULL};
    struct err err = ERR_INIT;

    snprintf(f->python, sizeof(f->python), "%s/%s", f->folder, name);
    if (file_read(&text, FAKE, 65536, &err) != 0) {
        fail_msg("%s", err.text);
    }
    FILE *file = fopen(f->python, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text.data, 1, text.len, file), text.len);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(f->python, 0755), 0);
    bytes_clear(&text);
}

static int set_up(void **state)
{
    struct recorder_fixture *f = xcalloc(1, sizeof(*f));

    recorder_init(f);
    install(f, "python3");
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct recorder_fixture *f = *state;

    recorder_release(f);
    recorder_run((const char *const[]){"/bin/rm", "-rf", f->folder, NULL});
    free(f);
    return 0;
}

static void becomes(struct recorder_fixture *f, const char *source, enum verdict verdict,
                    const char *words)
{
    recorder_becomes(f, source, verdict, words);
    assert_null(f->outcome.object.data);
}

// A source that has the interpreter answer with a recording, which is cleared.
static char *replying(struct cuda_recording *recording, struct record_reply *reply)
{
    struct strbuf packed = STRBUF_INIT, source = STRBUF_INIT;
    struct err err = ERR_INIT;

    reply->recording = recording;
    assert_int_equal(message_pack(&record_reply_message, reply, &packed, &err), 0);
    strbuf_adds(&source, "# reply ");
    for (size_t i = 0; i < packed.len; i++) {
        strbuf_addf(&source, "%02x", (unsigned char)packed.data[i]);
    }
    strbuf_adds(&source, "\nimport torch\n");
    strbuf_release(&packed);
    message_clear(&cuda_recording_message, recording);
    return strbuf_detach(&source);
}

static double feature(const struct compiled *compiled, const char *name)
{
    for (size_t i = 0; i < compiled->features_count; i++) {
        if (strcmp(compiled->features[i].name, name) == 0) {
            return compiled->features[i].value;
        }
    }
    fail_msg("no feature %s", name);
    return 0;
}

static void a_recording_becomes_an_object_with_features(void **state)
{
    struct recorder_fixture *f = *state;
    struct cuda_recording recording;
    struct record_reply reply;

    message_init(&record_reply_message, &reply);
    gpu_recording_make(&recording, f->problem, "fk_scale", 1);
    char *source = replying(&recording, &reply);
    const struct compiled *compiled = recorder_record(f, source);
    if (compiled->verdict != 0) {
        fail_msg("%s", compiled->reason);
    }
    struct cuda_object object;
    assert_int_equal(message_read(&cuda_object_message, &object, f->outcome.object.data,
                                  f->outcome.object.len, &f->err),
                     0);
    assert_int_equal(object.recording->cases_count, 2);
    assert_int_equal(object.variants_count, 0);
    message_clear(&cuda_object_message, &object);
    assert_true(feature(compiled, "recorded_kernels") == 1);
    assert_true(feature(compiled, "recorded_blocks") == 8);
    assert_true(feature(compiled, "recorded_waves") == 1);
    assert_string_equal(compiled->sandbox, "on");
    free(source);
}

// Only what was asked for is taken: of these addresses, for each case, and sound.
static void a_recording_of_something_else_is_rejected(void **state)
{
    struct recorder_fixture *f = *state;
    static const char *const words[] = {"it is of other addresses", "a case has not been recorded",
                                        "the recording cannot be replayed: image 0",
                                        "y was recorded at another address than it was given"};

    for (int what = 0; what < 4; what++) {
        struct cuda_recording recording;
        struct record_reply reply;

        message_init(&record_reply_message, &reply);
        gpu_recording_make(&recording, f->problem, "fk_scale", 1);
        if (what == 0) {
            recording.base = ARENA_OPEN;
        } else if (what == 1) {
            recording.cases[1].values[0] = 301;
        } else if (what == 2) {
            recording.images[0].data.len -= 3;
        } else {
            recording.cases[1].tensors[1] += ARENA_ALIGN;
        }
        char *source = replying(&recording, &reply);
        becomes(f, source, VERDICT_REJECTED, words[what]);
        free(source);
    }
}

static void nonsense_is_rejected(void **state)
{
    struct recorder_fixture *f = *state;

    becomes(f, "# reply 00", VERDICT_REJECTED, "what was recorded makes no sense");
    becomes(f, "# reply df0000", VERDICT_REJECTED, "what was recorded makes no sense");
    becomes(f, "# reply df00000000", VERDICT_REJECTED, "neither a recording nor a reason");
    becomes(f, "\xff\xfe", VERDICT_COMPILE_ERROR, "it is no UTF-8 text");
}

// Lists are as long as the protocol has them: a case with 4097 nodes.
static void more_than_a_message_may_have_is_rejected(void **state)
{
    struct strbuf source = STRBUF_INIT;

    strbuf_adds(&source, "# reply 81038301cf00005480000000000290049183019002dd00001001");
    for (int i = 0; i < 4097; i++) {
        strbuf_adds(&source, "810103");
    }
    strbuf_adds(&source, "0490\n");
    becomes(*state, source.data, VERDICT_REJECTED, "what was recorded makes no sense: ");
    assert_non_null(strstr(((struct recorder_fixture *)*state)->outcome.compiled->reason, "nodes"));
    strbuf_release(&source);
}

// Images are fat binaries where a candidate uses the CUDA runtime: one cubin is taken out, and its
// variables are known, however it was packed.
static void cubins_are_taken_out_of_fat_binaries_with_their_variables(void **state)
{
    struct recorder_fixture *f = *state;

    for (int packing = GPU_PLAIN; packing <= GPU_ZSTD; packing++) {
        struct bytes cubin = gpu_cubin("fk_scale", "counter");
        struct cuda_recording recording;
        struct record_reply reply;
        struct cuda_object object;

        message_init(&record_reply_message, &reply);
        gpu_recording_make(&recording, f->problem, "fk_scale", 1);
        bytes_clear(&recording.images[0].data);
        recording.images[0].data = gpu_fat_binary(&cubin, 90, (enum gpu_packing)packing);
        char *source = replying(&recording, &reply);
        recorder_becomes(f, source, VERDICT_NONE, "");
        assert_int_equal(message_read(&cuda_object_message, &object, f->outcome.object.data,
                                      f->outcome.object.len, &f->err),
                         0);
        assert_int_equal(recording_unpack_images(object.recording, &f->err), 0);
        const struct recorded_image *image = &object.recording->images[0];
        assert_int_equal(image->data.len, cubin.len);
        assert_memory_equal(image->data.data, cubin.data, cubin.len);
        assert_int_equal(image->globals_count, 1);
        assert_string_equal(image->globals[0].symbol, "counter");
        message_clear(&cuda_object_message, &object);
        bytes_clear(&cubin);
        free(source);
    }
}

static void a_fat_binary_without_a_sound_cubin_for_the_device_is_rejected(void **state)
{
    struct recorder_fixture *f = *state;
    static const char *const words[] = {
        "a fat binary has no machine code for sm_90, only PTX of sm_80, sm_100; compile it for",
        "the recording cannot be replayed: image 0: the compiled code is damaged",
        "the fat binary is damaged: it is shorter than it says"};

    for (int what = 0; what < 3; what++) {
        struct bytes cubin = gpu_cubin("fk_scale", "counter");
        struct cuda_recording recording;
        struct record_reply reply;

        message_init(&record_reply_message, &reply);
        gpu_recording_make(&recording, f->problem, "fk_scale", 1);
        bytes_clear(&recording.images[0].data);
        cubin.len -= what == 1 ? 8 : 0;
        recording.images[0].data = gpu_fat_binary(&cubin, what == 0 ? 100 : 90, GPU_ZSTD);
        recording.images[0].data.len -= what == 2 ? 1 : 0;
        char *source = replying(&recording, &reply);
        becomes(f, source, VERDICT_REJECTED, words[what]);
        bytes_clear(&cubin);
        free(source);
    }
}

// A cubin without code, with this many variables, all of the same name.
static struct bytes cubin_with_variables(size_t count)
{
    static const char names[] = "\0.names\0.nv.global\0v";
    struct {
        Elf64_Ehdr head;
        Elf64_Shdr section[4];
        char names[sizeof(names)];
    } file = {.head = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB},
                       .e_machine = 190, // EM_CUDA
                       .e_shoff = sizeof(Elf64_Ehdr),
                       .e_shentsize = sizeof(Elf64_Shdr),
                       .e_shnum = 4,
                       .e_shstrndx = 1},
              .section = {{.sh_type = SHT_NULL},
                          {.sh_name = 1,
                           .sh_type = SHT_STRTAB,
                           .sh_offset = offsetof(typeof(file), names),
                           .sh_size = sizeof(names)},
                          {.sh_name = 8, .sh_type = SHT_NOBITS},
                          {.sh_type = SHT_SYMTAB,
                           .sh_link = 1,
                           .sh_entsize = sizeof(Elf64_Sym),
                           .sh_offset = sizeof(file),
                           .sh_size = count * sizeof(Elf64_Sym)}}};
    const Elf64_Sym symbol = {
        .st_name = 19, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT), .st_shndx = 2};
    struct strbuf out;

    memcpy(file.names, names, sizeof(names));
    strbuf_init(&out, 1 << 20);
    strbuf_add(&out, &file, sizeof(file));
    for (size_t i = 0; i < count; i++) {
        strbuf_add(&out, &symbol, sizeof(symbol));
    }
    assert_false(out.truncated);
    return strbuf_detach_bytes(&out);
}

// What comes out of an image, and is not in the reply, has limits, too.
static void an_image_with_too_many_variables_is_rejected(void **state)
{
    struct recorder_fixture *f = *state;

    for (int over = 0; over < 2; over++) {
        struct cuda_recording recording;
        struct record_reply reply;

        message_init(&record_reply_message, &reply);
        gpu_recording_make(&recording, f->problem, "fk_scale", 1);
        bytes_clear(&recording.images[0].data);
        recording.images[0].data = cubin_with_variables(16384 + (size_t)over);
        char *source = replying(&recording, &reply);
        if (over) {
            becomes(f, source, VERDICT_REJECTED, "what was recorded cannot be kept: ");
        } else {
            assert_int_equal(recorder_record(f, source)->verdict, VERDICT_NONE);
        }
        free(source);
    }
}

// A failure of the recorder itself is no verdict; its words come from where a candidate has been.
static void a_failure_of_the_recorder_is_an_error_in_clean_words(void **state)
{
    struct recorder_fixture *f = *state;

    assert_int_equal(recorder_try(f, "# fail no GPU\\e[31m here"), ERR_SYSTEM);
    assert_string_equal(f->err.text, "the recorder has failed: no GPU?[31m here");
    becomes(f, "# refuse rejected next", VERDICT_REJECTED, "next");
}

// From where its code may have run on, the words may be the candidate's.
static void a_failure_that_the_candidate_could_have_told_is_a_verdict(void **state)
{
    struct recorder_fixture *f = *state;

    becomes(f, "# claims no GPU here", VERDICT_REJECTED, "it cannot be recorded: no GPU here");
    becomes(f, "# begins", VERDICT_CRASH, "while it was recorded");
}

static void an_answer_that_is_too_large_has_a_verdict(void **state)
{
    struct recorder_fixture *f = *state;
    struct cuda_recording recording;
    struct record_reply reply;

    becomes(f, "# large", VERDICT_COMPILE_ERROR, "its object is larger than the 48 MiB allowed");
    message_init(&record_reply_message, &reply);
    gpu_recording_make(&recording, f->problem, "fk_scale", 1);
    char *source = replying(&recording, &reply);
    f->plan.max_output = 100; // less than any
    becomes(f, source, VERDICT_COMPILE_ERROR, "its object is larger than");
    free(source);
}

// What is refused by the recorder has its sentence, without what a terminal would obey.
static void a_refusal_has_its_verdict_and_sentence(void **state)
{
    struct recorder_fixture *f = *state;

    becomes(f, "# refuse compile-error candidate.py:3: SyntaxError", VERDICT_COMPILE_ERROR,
            "candidate.py:3: SyntaxError");
    becomes(f, "# refuse crash it needs more", VERDICT_CRASH, "it needs more");
    becomes(f, "# refuse faster than light", VERDICT_REJECTED, "than light");
    becomes(f, "# spends", VERDICT_COMPILE_ERROR, "20 seconds"); // and not what ptxas said
    assert_string_equal(f->outcome.compiled->log, "how it was compiled");
    const struct compiled *compiled = recorder_record(f, "# refuse rejected a\\e[31mb");
    assert_null(strchr(compiled->reason, '\033'));
}

static void what_dies_waits_or_floods_has_a_verdict_and_the_next_is_served(void **state)
{
    struct recorder_fixture *f = *state;

    becomes(f, "# dies", VERDICT_CRASH, "while it was recorded");
    becomes(f, "# silent", VERDICT_CRASH, "while it was recorded");
    f->plan.max_seconds = 0.1;
    becomes(f, "# waits", VERDICT_REJECTED, "it did not end within 0.3 seconds");
    f->plan.max_seconds = RECORDER_LIMIT;
    becomes(f, "# refuse rejected next", VERDICT_REJECTED, "next");
}

// Of all recordings on a device one makes a context at a time, whichever processes they are of.
static void recordings_take_turns_on_a_device(void **state)
{
    static char other[] = "GPU-1";
    struct recorder_fixture *f = *state;
    int turn = turn_open(NULL, &f->err);

    assert_true(turn >= 0);
    becomes(f, "# turn", VERDICT_REJECTED, "free");
    assert_int_equal(flock(turn, LOCK_EX), 0);
    becomes(f, "# turn", VERDICT_REJECTED, "taken");
    f->plan.device = other;
    becomes(f, "# turn", VERDICT_REJECTED, "free");
    f->plan.device = NULL;
    assert_int_equal(setenv("TMPDIR", "/nowhere", 1), 0); // where there can be no such file
    becomes(f, "# turn", VERDICT_REJECTED, "free");
    assert_int_equal(setenv("TMPDIR", f->folder, 1), 0);
    becomes(f, "# turn", VERDICT_REJECTED, "taken");
    close(turn);
    becomes(f, "# turn", VERDICT_REJECTED, "free"); // nobody has kept it
}

static void nothing_is_left_behind(void **state)
{
    struct recorder_fixture *f = *state;
    char source[64];

    const struct compiled *compiled = recorder_record(f, "# leaves");
    snprintf(source, sizeof(source), "# alive %.20s", compiled->reason);
    becomes(f, source, VERDICT_REJECTED, "gone");
}

static void a_candidate_reaches_nothing_of_the_host(void **state)
{
    becomes(*state, "# escapes", VERDICT_REJECTED, "nothing");
}

static void without_pytorch_there_is_one_sentence(void **state)
{
    struct recorder_fixture *f = *state;

    f->plan.python = "/nowhere/python3";
    assert_int_equal(recorder_try(f, "# silent"), ERR_UNSUPPORTED);
    assert_non_null(strstr(f->err.text, "/nowhere/python3 cannot be started; name an interpreter "
                                        "with PyTorch by --python"));
    assert_int_equal(unlink(f->python), 0);
    install(f, "FAKE_PYTHON_LACKS");
    f->plan.python = f->python;
    if (recorder_try(f, "# silent") != ERR_UNSUPPORTED ||
        !strstr(f->err.text, "No module named 'torch'")) {
        fail_msg("%s", f->err.text);
    }
}

// Root can start an interpreter that the sandbox's user cannot go to.
static void an_interpreter_out_of_reach_is_one_sentence(void **state)
{
    struct recorder_fixture *f = *state;

    assert_int_equal(chmod(f->folder, 0700), 0);
    if (geteuid() != 0) {
        assert_int_equal(recorder_record(f, "# refuse rejected it")->verdict, VERDICT_REJECTED);
        return;
    }
    assert_int_equal(recorder_try(f, "# silent"), ERR_UNSUPPORTED);
    assert_non_null(strstr(f->err.text, "is in a folder closed to others (chmod o+x)"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_recording_becomes_an_object_with_features),
        TEST(a_recording_of_something_else_is_rejected),
        TEST(nonsense_is_rejected),
        TEST(more_than_a_message_may_have_is_rejected),
        TEST(cubins_are_taken_out_of_fat_binaries_with_their_variables),
        TEST(a_fat_binary_without_a_sound_cubin_for_the_device_is_rejected),
        TEST(an_image_with_too_many_variables_is_rejected),
        TEST(a_failure_of_the_recorder_is_an_error_in_clean_words),
        TEST(a_failure_that_the_candidate_could_have_told_is_a_verdict),
        TEST(an_answer_that_is_too_large_has_a_verdict),
        TEST(a_refusal_has_its_verdict_and_sentence),
        TEST(what_dies_waits_or_floods_has_a_verdict_and_the_next_is_served),
        TEST(recordings_take_turns_on_a_device),
        TEST(nothing_is_left_behind),
        TEST(a_candidate_reaches_nothing_of_the_host),
        TEST(without_pytorch_there_is_one_sentence),
        TEST(an_interpreter_out_of_reach_is_one_sentence),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
